"""Records with their line numbers, from JSON and CSV; an unreadable record has the reason."""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8 as BOM
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Final, Protocol, TypeAlias, cast

import msgspec
from msgspec import Struct

from tocsin.model.errors import EventError
from tocsin.model.values import Value

NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
decode_json = msgspec.json.Decoder().decode

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OTHER_NOTATIONS: Final = (
    (re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity)\b"), "it has no NaN and no Infinity: write null"),
    (re.compile(rb"[:\[,]\s*(?:True|False|None)\b"), "it writes true, false and null"),
    (re.compile(rb"^[\[{]\s*'"), "its strings are in double quotes"),
)
_IN_LINES: Final = (
    " (a document on each line is JSON lines: name the file .jsonl, or give --input-format jsonl)"
)
_OVER_LINES: Final = (
    " (a document over several lines is no JSON lines: name the file .json, or give --input-format json)"
)
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


class UnreadableRecord(Struct, frozen=True):
    """A record that cannot be read, with the reason."""

    reason: str


class CsvReader(Protocol):
    """What `csv.reader` returns."""

    line_num: int

    def __next__(self) -> list[str]: ...

    def __iter__(self) -> Iterator[list[str]]: ...


Records: TypeAlias = Iterator[tuple[int, Mapping[str, object] | UnreadableRecord]]
"""Line or row numbers, from 1, each with its record."""


def json_lines(lines: Iterable[bytes], first: int = 1) -> Records:
    """Yield each line's number, counted from `first`, and its object; blank lines are skipped."""
    for number, raw in enumerate(lines, first):
        line = raw.removeprefix(BOM) if number == 1 else raw
        if not line or line.isspace():
            continue
        try:
            decoded = decode_json(line)
        except NOT_JSON as fault:
            is_begun = number == 1 and "truncated" in str(fault)
            yield number, _not_json(line, fault, _OVER_LINES if is_begun else "")
            continue
        if isinstance(decoded, list):  # a batch of CloudEvents, on one line
            for record in decoded:
                yield number, cast("Mapping[str, object]", record)
        else:
            yield number, decoded


def json_array(text: bytes) -> Records:
    """Yield the objects of one array, or the one object, with the position of each."""
    decoded = json_record(text.removeprefix(BOM))
    if isinstance(decoded, UnreadableRecord) and _is_json(
        text.removeprefix(BOM).lstrip().partition(b"\n")[0]
    ):
        decoded = UnreadableRecord(
            f"not one JSON document{_IN_LINES}{decoded.reason.removeprefix('not JSON')}"
        )
    yield from enumerate(decoded if isinstance(decoded, list) else [decoded], 1)


def json_record(text: bytes | str | None) -> Mapping[str, object] | UnreadableRecord:
    """Return the one object of a text."""
    if text is None:
        return UnreadableRecord("there is no payload")
    try:
        decoded = decode_json(text)
    except NOT_JSON as fault:
        return _not_json(text.encode(errors="replace") if isinstance(text, str) else text, fault)
    return cast("Mapping[str, object]", decoded)


def csv_rows(text: IO[str], *, typed: bool = True) -> Records:
    """Yield each row's line number and attributes; raise `EventError` if the header cannot be read.

    The first line names the attributes. An empty field is an absent attribute. A field that is written as a
    number is a number, unless it has leading zeros (`007` is a string); `true` and `false` are booleans;
    everything else is a string. Unless `typed`, every field is a string.
    """
    reader = csv.reader(text, strict=True)
    header = csv_header(reader)
    if header is not None:
        for line, row in csv_fields(reader, header):
            yield line, row if isinstance(row, UnreadableRecord) else csv_record(header, row, typed=typed)


def csv_header(reader: CsvReader) -> list[str] | None:
    """Return the names of the columns, None if there is no line; raise `EventError` if it cannot be read."""
    try:
        header = next(reader, None)
    except csv.Error as fault:
        raise EventError(f"the first line names no columns: {fault}") from None
    if header is None:
        return None
    separator = next((sign for sign in ";\t|" if len(header) == 1 and sign in header[0]), None)
    if separator is not None:
        shown = "tabs" if separator == "\t" else f"`{separator}`"
        raise EventError(
            f"the first line names one column, `{header[0]}`: columns are separated by commas, here it seems by {shown}; "
            f"write the file anew, as pandas does: read_csv(path, sep={separator!r}).to_csv(path, index=False)"
        )
    repeated = next((name for i, name in enumerate(header) if name in header[:i]), None)
    if repeated is not None:
        raise EventError(f"two columns are called `{repeated}`")
    return header


def csv_fields(
    reader: CsvReader, header: Sequence[str]
) -> Iterator[tuple[int, list[str] | UnreadableRecord]]:
    """Yield each row's line number, counted by the reader, and its fields, as many as the header names."""
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
            yield (
                line,
                UnreadableRecord(
                    f"{len(row)} field{'' if len(row) == 1 else 's'}, but the header names {len(header)}"
                ),
            )
            continue
        yield line, row


def csv_record(header: Sequence[str], row: Sequence[str], *, typed: bool = True) -> Mapping[str, object]:
    """Return the attributes of a row; an empty field is absent."""
    fields = {name: field for name, field in zip(header, row, strict=True) if field}
    return {name: csv_value(field) for name, field in fields.items()} if typed else fields


def csv_value(field: str) -> Value:
    """Return the value of a field, by how it is written."""
    if _INTEGER.fullmatch(field) and len(field) <= 4000:  # Python refuses to convert more than 4,300 digits
        return int(field)
    if _DECIMAL.fullmatch(field):
        return float(field)
    return _BOOLEANS.get(field, field)


def _is_json(text: bytes) -> bool:
    try:
        return isinstance(decode_json(text), dict)
    except NOT_JSON:
        return False


def _not_json(text: bytes, fault: Exception, otherwise: str = "") -> UnreadableRecord:
    """Return the record for a text that is not JSON, with a hint that says why, or else `otherwise`."""
    stripped = text.strip()
    shown = stripped[:60].decode(errors="replace") + ("…" if len(stripped) > 60 else "")
    hint = next((f" ({hint})" for sign, hint in _OTHER_NOTATIONS if sign.search(stripped)), otherwise)
    return UnreadableRecord(f"not JSON{hint}: {str(fault).removeprefix('JSON is malformed: ')}: {shown}")
