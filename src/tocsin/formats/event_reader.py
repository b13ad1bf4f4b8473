"""Events from records: the fields that hold id and time, and counts of refused records."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock

from msgspec import Struct

from tocsin.formats.cloud_events import SPEC_VERSION, read_cloud_event
from tocsin.formats.records import UnreadableRecord
from tocsin.model.errors import EventError
from tocsin.model.event import Event, check_event, read_event, read_given_time
from tocsin.model.ticks import StreamTicks
from tocsin.model.values import json_type


class Fault(Struct, frozen=True):
    """A record that could not be read, with its location; if `line` is 0, `source` is the whole location."""

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}" if self.line else f"{self.source}: {self.reason}"


class EventFields(Struct, frozen=True):
    """The attributes of a record that hold an event's id, times and stream; None where no attribute does."""

    id: str | None = None
    time: str | None = None
    start: str | None = None
    stream: str | None = None
    valid_until: str | None = None
    is_published: bool = False  # whether the events are published, so that their times matter


class EventReader:
    """Turns records into events.

    `stream` is the stream of records that name none. `clock` gives the time of records without one, by default the time of
    day; a published record is refused instead where `has_no_time(stream)` says that the clock has no time for its stream.
    `ticks` holds the length of each stream's tick. `read` and `refused` count records; `opaque` counts values that cannot be
    compared, by path, and `on_opaque` is called with each path when it has the first one.
    """

    def __init__(
        self,
        fields: EventFields | None = None,
        *,
        stream: str | None = None,
        clock: Callable[[], int] | None = None,
        ticks: StreamTicks | None = None,
        has_no_time: Callable[[str | None], bool] | None = None,
        on_opaque: Callable[[str], object] | None = None,
    ) -> None:
        self.fields = fields or EventFields()
        self.stream = stream
        self.ticks = ticks or StreamTicks()
        self._clock = clock
        self._has_no_time = has_no_time
        self.read = 0
        self.refused = 0
        self.opaque: Counter[str] = Counter()
        self._on_opaque = on_opaque
        self._counting = Lock()  # several threads may publish through one engine, and so one reader

    def of_source(self, stream: str | None, fields: EventFields) -> EventReader:
        """Return a reader for another source, with the same clock and ticks, and counts of its own."""
        return EventReader(
            fields,
            stream=stream,
            clock=self._clock,
            ticks=self.ticks,
            has_no_time=self._has_no_time,
            on_opaque=self._on_opaque,
        )

    def event(
        self,
        record: Mapping[str, object] | UnreadableRecord,
        source: str | None,
        line: int,
        stream: str | None = None,
        fields: EventFields | None = None,
        *,
        part: int = 1,
    ) -> Event | Fault:
        """Return the record as an event, or its fault; `fields` replace the reader's own.

        An event from a `source` without an id of its own is named after its line there, and after its `part` of the
        line if that is not the first: `events.jsonl:7`, `events.jsonl:7.2`.
        """
        try:
            if isinstance(record, UnreadableRecord):
                raise EventError(record.reason)
            name = None if source is None else f"{source}:{line}" if part == 1 else f"{source}:{line}.{part}"
            event = self._event(record, name, stream or self.stream, fields or self.fields)
        except EventError as fault:
            self.refuse()
            return Fault(source or "event", line, str(fault))
        self.count(read=1)
        return event

    def check(self, event: Event, line: int) -> Event | Fault:
        """Return an event that was made elsewhere, checked, or its fault, which is counted."""
        try:
            return check_event(event, self.note_opaque, zone=self.ticks.zone)
        except EventError as fault:
            self.refuse()
            return Fault("event", line, str(fault))

    def now(self, stream: str | None) -> int:
        """Return the time of an event of this stream that has none of its own."""
        if self._clock is not None:
            return self._clock()
        return now_in_microseconds() // self.ticks.length(stream)

    def check_clock(self, stream: str | None) -> None:
        """Raise `EventError` if the clock has no time for an event that is published to a stream."""
        if self._has_no_time is not None and self._has_no_time(stream):
            raise EventError(
                "the event has no time, and an `EventClock` takes the time from events; give `time`, or use the "
                "`SystemClock`"
            )

    def refuse(self) -> None:
        """Count a record that was refused."""
        self.count(refused=1)

    def count(self, *, read: int = 0, refused: int = 0) -> None:
        """Count records that were read or refused elsewhere."""
        with self._counting:
            self.read += read
            self.refused += refused

    def count_opaque(self, counts: Mapping[str, int]) -> None:
        """Count values that cannot be compared, by path."""
        if not counts:
            return
        with self._counting:
            new = [path for path in counts if path not in self.opaque]
            self.opaque.update(counts)
        if self._on_opaque is not None:
            for path in new:
                self._on_opaque(path)

    def note_opaque(self, path: str) -> None:
        """Count one value that cannot be compared."""
        self.count_opaque({path: 1})

    def _event(
        self, record: Mapping[str, object], name: str | None, stream: str | None, fields: EventFields
    ) -> Event:
        """Return the event that a record describes; `name` is its id if no field has one."""
        if type(record) is not dict and not isinstance(record, Mapping):
            raise EventError(f"an event is an object with attributes, not {json_type(record)}")
        if SPEC_VERSION in record:
            now = self.now(str(record.get("type")))
            return read_cloud_event(record, now=now, opaque=self.note_opaque, ticks=self.ticks)
        of = stream if fields.stream is None else str(required_field(record, fields.stream, "stream"))
        end = self._time_at(record, fields.time, "time", of)
        if end is None and fields.is_published:
            self.check_clock(of)
        return read_event(
            record,
            stream=of,
            id=name if fields.id is None else str(required_field(record, fields.id, "id")),
            time=self.now(of) if end is None else end,
            start=self._time_at(record, fields.start, "start", of),
            valid_until=self._time_at(record, fields.valid_until, "valid_until", of, is_required=False),
            opaque=self.note_opaque,
            ticks=self.ticks,
        )

    def _time_at(
        self,
        record: Mapping[str, object],
        path: str | None,
        what: str,
        stream: str | None,
        *,
        is_required: bool = True,
    ) -> int | None:
        """Return the time at a path, in the stream's ticks; None without a path, or if there is no time and none is required."""
        if path is None:
            return None
        raw = required_field(record, path, what) if is_required else find(record, path)
        return None if raw is None else read_given_time(self.ticks, stream, what, raw)


def now_in_microseconds() -> int:
    """Return the time of day, in microseconds since 1970."""
    return time.time_ns() // 1000


def find(record: Mapping[str, object], path: str | None) -> object | None:
    """Return the value at a dotted path of a nested record, or None."""
    if path is None:
        return None
    if path in record:
        return record[path]
    head, _, rest = path.partition(".")
    inner = record.get(head)
    return find(inner, rest) if rest and isinstance(inner, Mapping) else None


def required_field(record: Mapping[str, object], path: str, what: str) -> object:
    """Return the value at a dotted path of a nested record, or raise `EventError` if there is none."""
    found = find(record, path)
    if found is None:
        raise missing_field(path, what)
    return found


def missing_field(path: str, what: str) -> EventError:
    """Return the error of a record without the field that should hold its time, id or stream."""
    return EventError(f"the record has no `{path}`, which should hold its {what}")
