"""The events that a filter is explained by: one in JSON, or those of a file or of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path

from tocsin.cli.options import ReplayOptions, say_that_input_is_read
from tocsin.cli.terminal import shortened
from tocsin.formats import EventFields, EventFile, EventReader, Fault, Format
from tocsin.formats.files import is_readable, is_standard, known_format, unreadable_reason
from tocsin.formats.records import Records, UnreadableRecord, json_array, json_lines
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.ticks import StreamTicks


class _JsonText:
    """The events of a text in memory: one JSON document, or JSON lines."""

    def __init__(
        self, text: bytes, name: str, replay: ReplayOptions, stream: str | None, ticks: StreamTicks
    ) -> None:
        self.size: int | None = None
        self.position = 0
        self._text = text
        self._name = name
        fields = EventFields(id=replay.id_field, stream=replay.stream_field)
        self._reader = EventReader(fields, stream=stream, clock=lambda: 0, ticks=ticks)

    def __iter__(self) -> Iterator[Event | Fault]:
        for line, record in self._records():
            yield self._reader.event(record, self._name, line)

    def _records(self) -> Records:
        if not self._text.strip():
            return
        whole = json_array(self._text.strip())
        first = next(whole, None)
        if first is not None and isinstance(first[1], UnreadableRecord) and b"\n" in self._text.strip():
            yield from json_lines(BytesIO(self._text))
        elif first is not None:
            yield from chain([first], whole)


def open_explained(given: str, replay: ReplayOptions, ticks: StreamTicks) -> EventFile | _JsonText:
    """Return the events of an argument: an object or array in JSON, a file, or `-`; raise `EventError` if it is none of these.

    A file whose name says nothing may hold one JSON document over several lines. `ticks` says how times are read.
    """
    if is_json(given):
        return _JsonText(_encoded(given), "event", replay, replay.stream, ticks)
    if is_standard(given):
        if replay.input_format not in (None, Format.JSON, Format.JSONL):
            return replay.open(given, ticks)
        say_that_input_is_read()
        return _JsonText(sys.stdin.buffer.read(), "stdin", replay, replay.stream, ticks)
    path = Path(given)
    if not is_readable(path):
        folder = f": {unreadable_reason(path)}" if path.is_dir() else ""
        raise EventError(f"`{shortened(given, 60)}` is neither an event in JSON nor a file{folder}")
    if (replay.input_format or known_format(path) or Format.JSON) is Format.JSON and path.suffix not in (
        ".gz",
        ".zst",
    ):
        return _JsonText(path.read_bytes(), given, replay, replay.stream_of(given), ticks)
    return replay.open(given, ticks)


def is_json(given: str) -> bool:
    """Tell whether an argument is a JSON text, and not the name of a file."""
    return given.lstrip().startswith(("{", "[")) and not is_readable(Path(given))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as fault:  # a shell hands on bytes that are no UTF-8 as lone surrogates
        raise EventError(
            f"the event is not valid Unicode: a lone surrogate at position {fault.start}; write it in UTF-8"
        ) from None
