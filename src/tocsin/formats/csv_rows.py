"""Events as CSV: the first line names the attributes."""

from __future__ import annotations

import csv
import re
from typing import IO

from tocsin.formats.records import Broken, Records
from tocsin.model.errors import EventError

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


def csv_rows(text: IO[str], *, typed: bool = True) -> Records:
    """Return each row's line number and attributes, or what is wrong with it; raise `EventError` for the header.

    An empty field is absent. What is written as a number is one, unless its zeros say otherwise (`007` is a
    string); `true` and `false` are booleans; everything else is a string. Unless `typed`, all are strings.
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
        line = reader.line_num + 1  # a record may go on over several
        try:
            row = next(reader, None)
        except csv.Error as fault:
            yield line, Broken(f"not CSV: {fault}")
            continue
        if row is None:
            return
        if not row:
            continue
        if len(row) != len(header):
            yield line, Broken(f"{len(row)} fields, but the header names {len(header)}")
            continue
        given = {name: field for name, field in zip(header, row, strict=True) if field}
        yield line, {name: _value(field) for name, field in given.items()} if typed else given


def _value(field: str) -> object:
    if _INTEGER.fullmatch(field) and len(field) <= 4000:
        return int(field)
    if _DECIMAL.fullmatch(field):
        return float(field)
    return _BOOLEANS.get(field, field)
