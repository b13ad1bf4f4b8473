"""Events as JSON: one object a line, or one array of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import msgspec

__all__ = ["json_array", "json_lines"]

_decode = msgspec.json.Decoder().decode


def json_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Return each line's number and object, or what is wrong with the line; blank lines are passed over."""
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            decoded = _decode(line)
        except msgspec.MsgspecError as fault:
            yield number, _reason(line, fault)
            continue
        if isinstance(decoded, dict):
            yield number, decoded
        elif isinstance(decoded, list):  # a batch of CloudEvents, on one line
            for record in decoded:
                yield number, cast("Mapping[str, object]", record)
        else:
            yield number, f"an event is an object with attributes, not {type(decoded).__name__}"


def json_array(text: bytes) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Return the objects of one array, or the one object, with the position of each."""
    try:
        decoded = _decode(text)
    except msgspec.MsgspecError as fault:
        yield 1, _reason(text, fault)
        return
    yield from enumerate(decoded if isinstance(decoded, list) else [decoded], 1)


def _reason(text: bytes, fault: msgspec.MsgspecError) -> str:
    shown = text.strip()[:60].decode(errors="replace")
    return f"not JSON: {str(fault).removeprefix('JSON is malformed: ')}: {shown}{'…' if len(text.strip()) > 60 else ''}"
