"""Records with their line numbers, from JSON and CSV; an unreadable record has the reason."""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8 as BOM
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TypeAlias, cast

import msgspec
from msgspec import Struct

from tocsin.model.errors import EventError

_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


class UnreadableRecord(Struct, frozen=True):
    """A record that cannot be read, with the reason."""

    reason: str


Records: TypeAlias = Iterator[tuple[int, Mapping[str, object] | UnreadableRecord]]
"""Line or row numbers, from 1, each with its record."""


def json_lines(lines: Iterable[bytes]) -> Records:
    """Yield each line's number and object; blank lines are skipped."""
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(BOM) if number == 1 else raw
        if not line or line.isspace():
            continue
        try:
            decoded = _decode(line)
        except _NOT_JSON as fault:
            yield number, _not_json(line, fault)
            continue
        if isinstance(decoded, list):  # a batch of CloudEvents, on one line
            for record in decoded:
                yield number, cast("Mapping[str, object]", record)
        else:
            yield number, decoded


def json_array(text: bytes) -> Records:
    """Yield the objects of one array, or the one object, with the position of each."""
    decoded = json_record(text.removeprefix(BOM))
    yield from enumerate(decoded if isinstance(decoded, list) else [decoded], 1)


def json_record(text: bytes | str | None) -> Mapping[str, object] | UnreadableRecord:
    """Return the one object of a text."""
    if text is None:
        return UnreadableRecord("there is no payload")
    try:
        decoded = _decode(text)
    except _NOT_JSON as fault:
        return _not_json(text.encode(errors="replace") if isinstance(text, str) else text, fault)
    return cast("Mapping[str, object]", decoded)


def csv_rows(text: IO[str], *, typed: bool = True) -> Records:
    """Yield each row's line number and attributes; raise `EventError` if the header cannot be read.

    The first line names the attributes. An empty field is an absent attribute. A field that is written as a
    number is a number, unless it has leading zeros (`007` is a string); `true` and `false` are booleans;
    everything else is a string. Unless `typed`, every field is a string.
    """
    reader = csv.reader(text, strict=True)
    try:
        header = next(reader, None)
    except csv.Error as fault:
        raise EventError(f"the first line names no columns: {fault}") from None
    if header is None:
        return
    repeated = next((name for i, name in enumerate(header) if name in header[:i]), None)
    if repeated is not None:
        raise EventError(f"two columns are called `{repeated}`")
    while True:
        line = reader.line_num + 1  # a record may span several lines
        try:
            row = next(reader, None)
        except csv.Error as fault:
            yield line, UnreadableRecord(f"not CSV: {fault}")
            continue
        if row is None:
            return
        if not row:
            continue
        if len(row) != len(header):
            yield line, UnreadableRecord(f"{len(row)} fields, but the header names {len(header)}")
            continue
        fields = {name: field for name, field in zip(header, row, strict=True) if field}
        yield line, {name: _csv_value(field) for name, field in fields.items()} if typed else fields


def _csv_value(field: str) -> object:
    if _INTEGER.fullmatch(field) and len(field) <= 4000:  # Python refuses to convert more than 4,300 digits
        return int(field)
    if _DECIMAL.fullmatch(field):
        return float(field)
    return _BOOLEANS.get(field, field)


def _not_json(text: bytes, fault: Exception) -> UnreadableRecord:
    stripped = text.strip()
    shown = stripped[:60].decode(errors="replace") + ("…" if len(stripped) > 60 else "")
    return UnreadableRecord(f"not JSON: {str(fault).removeprefix('JSON is malformed: ')}: {shown}")
