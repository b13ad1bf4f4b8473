"""Files of notifications: JSON lines, and Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import pyarrow as pa

from tocsin.formats.column_blocks import integers_array, string_array
from tocsin.model.event import Event
from tocsin.model.subscription import Notification, WitnessStep
from tocsin.model.ticks import StreamTicks
from tocsin.model.values import json_of_opaque

encode_json: Final = msgspec.json.Encoder(enc_hook=json_of_opaque).encode
_ROWS: Final = 50_000  # of a row group: enough to compress well, few enough to hold in memory
_NUMBERS: Final = ("start", "end", "generation")
_TEXTS: Final = ("values", "event", "witness", "answer")
_SCHEMA: Final = pa.schema(
    [(name, pa.string()) for name in ("subscription", "event_id", "stream")]
    + [(name, pa.int64()) for name in _NUMBERS]
    + [(name, pa.string()) for name in _TEXTS]
)


def notification_record(note: Notification, ticks: StreamTicks | None = None) -> dict[str, Any]:
    """Return a notification as a JSON object; absent parts are left out.

    Times are ticks. If `ticks` are given, those that count from 1970 are texts of ISO 8601.
    """
    record: dict[str, Any] = {"subscription": note.subscription, "event_ids": list(note.event_ids)}
    if note.values is not None:
        record["values"] = dict(note.values)
    record["events"] = [event_record(event, ticks) for event in note.events]
    if note.witness is not None:
        record["witness"] = [witness_record(step) for step in note.witness]
    if note.view:
        record |= answer_record(note)
    stream = note.events[-1].stream if note.events else None
    for name in ("start", "end"):
        if (time := getattr(note, name)) is not None:
            record[name] = time if ticks is None else ticks.shown(time, stream)
    if note.score is not None:
        record["score"] = note.score
    record["generation"] = note.generation
    return record


def notification_line(note: Notification, ticks: StreamTicks | None = None) -> bytes:
    """Return a notification as a line of JSON, with times as `notification_record` has them."""
    return encode_json(notification_record(note, ticks)) + b"\n"


class JsonNotifications(AbstractContextManager["JsonNotifications"]):
    """Writes notifications as JSON lines; if `live`, each is flushed at once.

    Times are ticks; if `ticks` are given, those that count from 1970 are texts of ISO 8601.
    """

    def __init__(self, file: IO[bytes], *, live: bool = False, ticks: StreamTicks | None = None) -> None:
        self._file = file
        self._live = live
        self.ticks = ticks

    def write(self, note: Notification) -> None:
        """Write one notification."""
        self.write_lines([notification_line(note, self.ticks)])

    def write_lines(self, lines: Iterable[bytes]) -> None:
        """Write notifications that are encoded already, as `notification_line` does."""
        self._file.writelines(lines)
        if self._live:
            self._file.flush()

    def __exit__(self, *_: object) -> None:
        self._file.flush()


class ParquetNotifications(AbstractContextManager["ParquetNotifications"]):
    """Writes notifications to a Parquet file, with values, last event, witness and a view's answers as JSON texts."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet  # noqa: PLC0415 - it takes a while to load

        self._writer = parquet.ParquetWriter(path, _SCHEMA)
        self._tables: list[pa.Table] = []
        self._held = 0  # rows of these

    def write(self, note: Notification) -> None:
        """Write one notification."""
        event = note.events[-1] if note.events else None
        texts = {
            "subscription": note.subscription,
            "event_id": note.event_ids[-1] if note.event_ids else None,
            "stream": None if event is None else event.stream,
            "values": None if note.values is None else encode_json(dict(note.values)).decode(),
            "event": None if event is None else attributes_text(event),
            "witness": None
            if note.witness is None
            else encode_json([witness_record(step) for step in note.witness]).decode(),
            "answer": encode_json(answer_record(note)).decode() if note.view else None,
        }
        columns = {name: string_array([text]) for name, text in texts.items()}
        columns |= {name: integers_array([getattr(note, name)]) for name in _NUMBERS}
        self.write_table(pa.table([columns[name] for name in _SCHEMA.names], schema=_SCHEMA))

    def write_table(self, table: pa.Table) -> None:
        """Write notifications that are columns already, with these names."""
        self._tables.append(table.select(_SCHEMA.names))
        self._held += table.num_rows
        if self._held >= _ROWS:
            self._flush()

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._tables).combine_chunks())
        self._tables.clear()
        self._held = 0


def answer_record(note: Notification) -> dict[str, Any]:
    """Return a view's answers, null where it has none; a first answer has no `old`."""
    old = {"old": note.old} if note.event_ids else {}
    parts = {"removed": note.removed, "added": note.added} if note.removed or note.added else {}
    return {**old, "new": note.new, **parts}


def witness_record(step: WitnessStep) -> dict[str, Any]:
    """Return a step of a sequence's witness as a JSON object."""
    chain = {} if step.chain is None else {"chain": list(step.chain)}
    return {"alias": step.alias, "first": step.first, "last": step.last, **chain}


def attributes_text(event: Event) -> str:
    """Return an event's attributes as a text of JSON."""
    return encode_json(dict(event.attributes)).decode()


def event_record(event: Event, ticks: StreamTicks | None = None) -> dict[str, Any]:
    """Return an event as an object for JSON, with times as `notification_record` has them."""
    stream = {} if event.stream is None else {"stream": event.stream}
    return {
        "id": event.id,
        **stream,
        "start": event.start if ticks is None else ticks.shown(event.start, event.stream),
        "end": event.end if ticks is None else ticks.shown(event.end, event.stream),
        "attributes": dict(event.attributes),
    }
