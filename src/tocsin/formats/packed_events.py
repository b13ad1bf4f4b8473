"""Events as bytes, and back: attributes by the column of names that events have in common, values in MessagePack.

Every value keeps its kind and, unlike in JSON, its exact type: 1 and 1.0, infinities, timestamps, integers of any length,
and opaque values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from tocsin.model.event import Event
from tocsin.model.values import Opaque, Value

_OPAQUE: Final = 1  # codes of extension types
_INTEGER: Final = 2
_WIDE: Final = 2**63


def pack_events(events: Sequence[Event]) -> bytes:
    """Return events as bytes.

    >>> unpack_events(pack_events([Event("e1", {"x": 2**70, "y": 1.0}, "s", 3, 4)]))
    [Event(id='e1', attributes={'x': 1180591620717411303424, 'y': 1.0}, stream='s', start=3, end=4, ...)]
    """
    shapes: dict[tuple[str | None, tuple[str, ...]], int] = {}
    of_events: list[int] = []
    values: list[Any] = []
    for event in events:
        attributes = event.attributes
        of_events.append(shapes.setdefault((event.stream, tuple(attributes)), len(shapes)))
        values += attributes.values()
    ends = [event.end for event in events]
    lengths = [event.end - event.start for event in events]
    until = {row: event.valid_until for row, event in enumerate(events) if event.valid_until is not None}
    ids = [event.id for event in events]
    columns = [list(shapes), of_events, ids, ends, lengths, until]
    return _ENCODER.encode([*columns, _without_wide(values)])


def unpack_events(data: bytes) -> list[Event]:
    """Return the events of which these are the bytes, or raise `ValueError`."""
    if not data:
        return []
    try:
        shapes, of_events, ids, ends, lengths, until, values = _DECODER.decode(data)
        names = [(stream, tuple(paths)) for stream, paths in shapes]
        rest = iter(values)
        events = []
        for row, (shape, id_, end, length) in enumerate(zip(of_events, ids, ends, lengths, strict=True)):
            stream, paths = names[shape]
            attributes: dict[str, Value] = dict(zip(paths, islice(rest, len(paths)), strict=True))
            events.append(Event(id_, attributes, stream, end - length, end, until.get(row)))
    except (msgspec.DecodeError, ValueError, TypeError, IndexError, AttributeError) as fault:
        raise ValueError(f"the events cannot be read ({fault})") from fault
    if next(rest, None) is not None:
        raise ValueError("the events have too many values")
    return events


def _without_wide(values: list[Any]) -> list[Any]:
    """Return values with integers of more than 64 bits as extensions; there are hardly ever any."""
    if any(type(value) is int and not -_WIDE <= value < _WIDE for value in values):
        return [_extension(value) for value in values]
    return values


def _extension(value: Any) -> Any:
    is_wide = type(value) is int and not -_WIDE <= value < _WIDE
    return Ext(_INTEGER, hex(value).encode()) if is_wide else value


def _plain(value: object) -> Ext:
    if isinstance(value, Opaque):
        return Ext(_OPAQUE, value.type.encode())
    raise NotImplementedError(f"a value of type {type(value).__name__}")


def _read_extension(code: int, data: memoryview) -> Value:
    text = bytes(data).decode()
    if code == _OPAQUE:
        return Opaque(text)
    if code == _INTEGER:
        return int(text, 16)
    raise ValueError(f"there is no value of kind {code}")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_plain)
_DECODER: Final = msgspec.msgpack.Decoder(ext_hook=_read_extension)
