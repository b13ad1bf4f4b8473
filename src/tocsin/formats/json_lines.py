"""Events as JSON: one object a line, or one array of them."""

from __future__ import annotations

from codecs import BOM_UTF8 as BOM
from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from tocsin.formats.records import Broken, Records

_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode


def json_lines(lines: Iterable[bytes]) -> Records:
    """Return each line's number and object, or what is wrong with the line; blank lines are passed over."""
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(BOM) if number == 1 else raw
        if not line or line.isspace():
            continue
        try:
            decoded = _decode(line)
        except _NOT_JSON as fault:
            yield number, _broken(line, fault)
            continue
        if isinstance(decoded, dict):
            yield number, decoded
        elif isinstance(decoded, list):  # a batch of CloudEvents, on one line
            for record in decoded:
                yield number, cast("Mapping[str, object]", record)
        else:
            yield number, decoded


def json_array(text: bytes) -> Records:
    """Return the objects of one array, or the one object, with the position of each."""
    try:
        decoded = _decode(text.removeprefix(BOM))
    except _NOT_JSON as fault:
        yield 1, _broken(text, fault)
        return
    yield from enumerate(decoded if isinstance(decoded, list) else [decoded], 1)


def json_record(text: bytes | str | None) -> Mapping[str, object] | Broken:
    """Return the one object of a text, or what is wrong with it."""
    if text is None:
        return Broken("there is no payload")
    try:
        decoded = _decode(text)
    except _NOT_JSON as fault:
        return _broken(text.encode(errors="replace") if isinstance(text, str) else text, fault)
    return cast("Mapping[str, object]", decoded)


def _broken(text: bytes, fault: Exception) -> Broken:
    shown = text.strip()[:60].decode(errors="replace")
    return Broken(
        f"not JSON: {str(fault).removeprefix('JSON is malformed: ')}: {shown}{'…' if len(text.strip()) > 60 else ''}"
    )
