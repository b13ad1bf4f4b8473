"""What the writer of a dry run's query should know: names that no event has, and events without a time of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tocsin.engine.clock import Clock, EventClock, SystemClock
from tocsin.formats.time_fields import time_field_of
from tocsin.language.schema_inference import ObservedSchema
from tocsin.model import Event
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.queries import Query
from tocsin.model.ticks import StreamTicks


def unseen_names(query: Query, events: Iterable[Event]) -> tuple[str, ...]:
    """Return a warning for each stream and attribute that a query names and no event has, and for values of another kind."""
    schema = ObservedSchema()
    for event in events:
        schema.add(event)
    return schema.warnings(query)


def unknown_times(
    query: Query, events: Sequence[Event], clock: Clock, began: int, ticks: StreamTicks
) -> tuple[str, ...]:
    """Return a warning if a sequence took the time of reading for that of events which have another, or have to.

    `began` is the clock's time before the events were read. Events that come in the order in which they happened need no
    time, so that nothing is said where none of their attributes is one.
    """
    if not isinstance(query, SequenceQuery) or not _are_timed_by(clock, events, began, ticks):
        return ()
    field = time_field_of(event.attributes for event in events)
    if field is None and not isinstance(clock, EventClock):
        return ()
    example = "`time=`" if field is None else f'perhaps `time="{field}"`'
    return (f"the events have the time at which they are read: name the attribute with their own, {example}",)


def _are_timed_by(clock: Clock, events: Iterable[Event], began: int, ticks: StreamTicks) -> bool:
    """Tell whether some event has its time from a clock, since it brought none."""
    in_microseconds = isinstance(clock, SystemClock)
    for event in events:
        tick = ticks.length(event.stream) if in_microseconds else 1
        if began // tick <= event.end <= clock.now() // tick:
            return True
    return False
