"""What a sequence would have told of events, without being subscribed."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.engine.results import Trial
from tocsin.engine.timelines import Timelines
from tocsin.formats import Fault
from tocsin.model import Event, Notification
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.event import is_deletion
from tocsin.sequences.matches import SequenceMatches, sequence_notification
from tocsin.sequences.timed_batch import TimedBatch


def try_sequence(
    query: SequenceQuery, events: Sequence[Event], faults: tuple[Fault, ...], timelines: Timelines
) -> Trial:
    """Return what a sequence would have told of these events alone."""
    prepared, line = timelines.alone(query, "test")
    told: list[tuple[Event, Notification]] = []

    def tell(_: Sequence[int], arrivals: TimedBatch, found: SequenceMatches) -> None:
        for place, (start, end) in enumerate(zip(found.starts.tolist(), found.ends.tolist(), strict=True)):
            note = sequence_notification("test", found.match(place), start, end, 0)
            told.append((arrivals.event(int(found.rows[place])), note))

    late = [
        event
        for mark, event in enumerate(events)
        if event.stream in prepared.reads and not is_deletion(event) and not line.take(event, mark)
    ]
    line.flush(tell, len(events))
    completed = {id(event): event for event, _ in told}
    return Trial(tuple(completed.values()), len(events), faults, tuple(note for _, note in told), tuple(late))
