"""Events, and the checks that every event passes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, date, tzinfo
from itertools import count
from typing import Any, Final, cast
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from tocsin.model.errors import EventError, KindError
from tocsin.model.ticks import StreamTicks
from tocsin.model.values import Opaque, Value, read_attribute

STREAM: Final = "$stream"
"""The attribute that holds an event's stream inside matchers, so that filters can be indexed by stream."""

DELETIONS: Final = ("$delete", "_deleted")
"""The attributes of which one is true in an event that deletes a row."""

_WIDE = 2**63  # integers within 64 bits need no further check
_MOST_LEVELS: Final = 1_000  # of nested mappings, more than JSON is read with
_MICROSECONDS: Final = StreamTicks()  # the default tick of every stream


class Event(Struct, frozen=True, gc=False):
    """An event: flat attributes by dotted path, and the ticks at which it started and ended.

    An event with `valid_until` is kept until then and matched against later subscriptions. `attributes` must not
    change after the event is made.
    """

    id: str
    attributes: Mapping[str, Value]
    stream: str | None = None
    start: int = 0
    end: int = 0
    valid_until: int | None = None


def _hint(data: object) -> str:
    """Return what to do with what is no event, but holds several, or is a row of a frame."""
    if hasattr(data, "to_dict") and getattr(data, "ndim", 0) == 1:
        return "; its `to_dict()` is one"
    if isinstance(data, (list, tuple)) or hasattr(data, "columns"):
        return "; `publish_many` takes several"
    return ""


def read_event(
    data: Mapping[str, object],
    *,
    stream: str | None = None,
    id: str | None = None,
    time: object = 0,
    start: object | None = None,
    valid_until: object | None = None,
    opaque: Callable[[str], None] | None = None,
    ticks: StreamTicks | None = None,
) -> Event:
    """Return `data` as an event, or raise `EventError` with the attribute at fault.

    `time` is the end of the event, and its start unless `start` is given; a number is in ticks. `ticks` holds the length of
    each stream's tick, by default a microsecond. `opaque` is called with the path of each value that cannot be compared.

    >>> read_event({"symbol": "IBM", "data": {"price": 101.5, "note": None}}, id="e1", time=17)
    Event(id='e1', attributes={'symbol': 'IBM', 'data.price': 101.5}, stream=None, start=17, end=17, ...)
    """
    if type(data) is not dict and not isinstance(data, Mapping):
        raise EventError(f"an event is a mapping of attributes, not {type(data).__name__}{_hint(data)}")
    if stream is not None:
        check_stream(stream)
    stream_ticks = _MICROSECONDS if ticks is None else ticks
    # Most times are integers, and most attributes plain: they need no further call.
    is_counted = type(time) is int and -_WIDE <= time < _WIDE
    end = cast("int", time) if is_counted else _moment(time, "time", stream, stream_ticks)
    begin = end if start is None else _moment(start, "start", stream, stream_ticks)
    if begin > end:
        raise EventError(f"the event starts at {begin}, after its end at {end}")
    plain = is_plain(data)
    attributes = dict(cast("Mapping[str, Value]", data)) if plain else flatten(data, stream_ticks.zone)
    if STREAM in attributes:
        raise EventError("the name is reserved; give an event's stream beside its attributes", STREAM)
    event = Event(
        id=_ids.make() if id is None else id,
        attributes=attributes,
        stream=stream,
        start=begin,
        end=end,
        valid_until=None
        if valid_until is None
        else _moment(valid_until, "valid_until", stream, stream_ticks),
    )
    if opaque is not None and not plain:
        _name_opaque(attributes, opaque)
    return event


def new_event(
    attributes: Mapping[str, Value],
    stream: str | None,
    start: int,
    end: int,
    *,
    id: str | None = None,
    valid_until: int | None = None,
) -> Event:
    """Return an event of attributes that are flat and checked; without an id, one is made for it."""
    return Event(_ids.make() if id is None else id, attributes, stream, start, end, valid_until)


def check_event(event: Event, opaque: Callable[[str], None] | None = None, *, zone: tzinfo = UTC) -> Event:
    """Return a given `Event` with its attributes as `read_event` makes them, or raise `EventError`.

    An event that needs no change is returned itself. `opaque` is called with the path of each value that cannot be
    compared; a datetime without a time zone is one of `zone`.

    >>> check_event(Event("e1", {"a": 1, "b": {"c": "x", "d": None}})).attributes
    {'a': 1, 'b.c': 'x'}
    """
    check_stream(event.stream)
    if type(event.id) is not str:
        raise EventError(f"an event's id is a string, not {event.id!r}")
    if not _is_timed(event):
        event = _read_times(event)
    attributes = event.attributes
    if is_plain(attributes):
        return event
    read = flatten(attributes, zone)
    if opaque is not None:
        _name_opaque(read, opaque)
    same = len(read) == len(attributes) and all(read.get(name) is raw for name, raw in attributes.items())
    return event if same else replace(event, attributes=read)


def matchable(event: Event) -> Event:
    """Return the event as matchers see it: with its stream among its attributes."""
    if STREAM in event.attributes:
        raise EventError("the name is reserved; give an event's stream beside its attributes", STREAM)
    if event.stream is None:
        return event
    return Event(event.id, {**event.attributes, STREAM: event.stream}, event.stream, event.start, event.end)


def is_deletion(event: Event) -> bool:
    """Return whether an event deletes a row; such an event reaches no filter and no sequence."""
    attributes = event.attributes
    return attributes.get("$delete") is True or attributes.get("_deleted") is True


def _is_timed(event: Event) -> bool:
    """Return True if a quick check proves the times valid; after False they need the full check."""
    start, end = event.start, event.end
    return (
        type(start) is int
        and type(end) is int
        and event.valid_until is None
        and -_WIDE <= start <= end < _WIDE
    )


def _read_times(event: Event) -> Event:
    """Return an event with its times as Python integers, or raise `EventError` if they are invalid."""
    raw_times = {name: getattr(event, name) for name in ("start", "end", "valid_until")}
    times = {
        name: _ticks(raw, name) for name, raw in raw_times.items() if raw is not None or name != "valid_until"
    }
    if times["start"] > times["end"]:
        raise EventError(f"the event starts at {times['start']}, after its end at {times['end']}")
    return event if all(raw_times[name] is time for name, time in times.items()) else replace(event, **times)


def _ticks(raw: object, name: str) -> int:
    if isinstance(raw, (str, date)):
        raise EventError(f"`{name}`: an `Event` object takes ticks of its stream, not {raw!r}")
    return _moment(raw, name, None, _MICROSECONDS)


def read_given_time(ticks: StreamTicks, stream: str | None, name: str, raw: object) -> int:
    """Return a time as users give it in a stream's ticks, or raise `EventError`; `name` says which time it is."""
    try:
        return ticks.read_field(raw, stream)
    except KindError as fault:
        raise EventError(f"`{name}`: {fault}") from None


def check_stream(stream: object) -> None:
    """Raise `EventError` for what is no name of a stream, and not None."""
    if stream is None or (isinstance(stream, str) and (stream.isascii() or _is_unicode(stream))):
        return
    raise EventError(f"a stream's name is a string of valid Unicode, not {stream!r}")


def _moment(raw: object, name: str, stream: str | None, ticks: StreamTicks) -> int:
    try:
        return ticks.read(raw, stream)
    except KindError as fault:
        raise EventError(f"`{name}`: {fault}") from None


def flatten(data: Mapping[str, object], zone: tzinfo = UTC) -> dict[str, Value]:
    """Return `data` with nested mappings as dotted paths, without nulls and NaN; what cannot be compared is `Opaque`.

    A datetime without a time zone is one of `zone`.

    >>> flatten({"address": {"city": "Oslo"}, "tags": [1, 2], "gone": None})
    {'tags': Opaque('list'), 'address.city': 'Oslo'}
    """
    flat: dict[str, Value] = {}
    waiting: list[tuple[str, Mapping[str, object]]] = [("", data)]
    while waiting:
        prefix, level = waiting.pop()
        if prefix.count(".") > _MOST_LEVELS:
            outer = prefix.partition(".")[0]
            raise EventError(
                f"it is nested more than {_MOST_LEVELS:,} levels deep; does it contain itself?", outer
            )
        for name, raw in level.items():
            kind = type(raw)
            if type(name) is not str or not (name.isascii() or _is_unicode(name)):
                raise EventError(f"an attribute's name is a string of valid Unicode, not {name!r}")
            path = prefix + name if prefix else name
            if _is_plain_value(raw, kind):
                _keep(flat, path, raw)
            elif kind is dict or isinstance(raw, Mapping):
                waiting.append((path + ".", cast("Mapping[str, object]", raw)))
            else:
                _keep(flat, path, _read(raw, path, zone))
    return flat


def _name_opaque(attributes: Mapping[str, Value], name: Callable[[str], None]) -> None:
    """Call `name` with the path of each opaque value."""
    for path, value in attributes.items():
        if type(value) is Opaque:
            name(path)


def is_plain(data: Mapping[Any, Any]) -> bool:
    """Return True if a quick check proves that `flatten` changes nothing; after False it may or may not.

    Names must be ASCII; values must be ASCII strings, booleans, floats other than NaN, or 64-bit integers.
    """
    for name, value in data.items():
        kind = type(value)
        if type(name) is not str or not name.isascii():
            return False
        if kind is str:
            if not value.isascii():
                return False
        elif kind is int:
            if not -_WIDE < value < _WIDE:
                return False
        elif kind is float:
            if value != value:  # noqa: PLR0124 - NaN alone differs from itself
                return False
        elif kind is not bool:
            return False
    return True


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain_value(raw: Any, kind: type) -> bool:
    """Return whether a value needs no further check, as most do not."""
    if kind is str:
        return bool(raw.isascii())
    if kind is int:
        return bool(-_WIDE < raw < _WIDE)
    return kind is float and raw == raw  # noqa: PLR0124 - NaN alone differs from itself


def _read(raw: object, path: str, zone: tzinfo) -> Value | None:
    try:
        return read_attribute(raw, zone)
    except KindError as fault:
        raise EventError(str(fault), path) from None


def _keep(flat: dict[str, Value], path: str, value: object) -> None:
    if value is None:
        return
    if path in flat:
        raise EventError("the path is given twice, once nested and once with a dot in its name", path)
    flat[path] = value  # type: ignore[assignment]


class _Ids:
    """Ids that no other process makes: a random prefix per process, and a counter."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):  # a platform without fork needs none
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._prefix = uuid4().hex[:20]
        self._count = count(1)

    def make(self) -> str:
        return f"{self._prefix}-{next(self._count)}"


_ids = _Ids()
