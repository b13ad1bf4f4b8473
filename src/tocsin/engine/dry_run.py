"""Dry runs: the matches that a query would have had, without subscribing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin.engine.filter_runtime import FilterRuntime
from tocsin.engine.notifications import FilterNotifications, ViewNotifications
from tocsin.engine.reorder_buffer import Delay, ReorderBuffer
from tocsin.engine.results import DryRun
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.formats import Fault
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Filter, Notification, View
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.event import is_deletion
from tocsin.model.queries import Query
from tocsin.sequences.matches import sequence_notification
from tocsin.sequences.runtime import SequenceRuntime
from tocsin.views.runtime import ViewRuntime

_ID = "test"


def dry_run(
    query: Query, rows: Sequence[Event | Fault], store: SubscriptionStore, out_of_orderness: Delay
) -> DryRun:
    """Return the matches that a query would have had in these events alone, and the faults among them."""
    faults = tuple(row for row in rows if isinstance(row, Fault))
    events = [row for row in rows if isinstance(row, Event)]
    if isinstance(query, Filter):
        return _dry_run_filter(query, events, faults, store.filters)
    if isinstance(query, View):
        return _dry_run_view(query, events, faults, store.views)
    return _dry_run_sequence(query, events, faults, store.sequences, out_of_orderness)


def _dry_run_filter(
    query: Filter, events: Sequence[Event], faults: tuple[Fault, ...], filters: FilterRuntime
) -> DryRun:
    """Return the events that a filter matches, and their notifications."""
    matched = filters.dry_run(query, events)
    rows = np.arange(len(matched))
    selects = [query.select] * len(matched) if query.select else None
    part = FilterNotifications(rows, None, TimedBatch(matched), rows, [_ID] * len(matched), selects, 0)
    return DryRun(matched, len(events), faults, tuple(map(part.notification, range(len(matched)))))


def _dry_run_sequence(
    query: SequenceQuery,
    events: Sequence[Event],
    faults: tuple[Fault, ...],
    sequences: SequenceRuntime,
    out_of_orderness: Delay,
) -> DryRun:
    """Return the sequences that events complete, in a matcher of its own."""
    compiled, matcher = sequences.dry_run(query)
    buffer = ReorderBuffer(sequences.ticks, out_of_orderness)
    deletions = [row for row, event in enumerate(events) if is_deletion(event)]
    released = buffer.push(TimedBatch(events), compiled.reads, deletions) + buffer.flush()
    completing: dict[int, Event] = {}
    notifications: list[Notification] = []
    for one in released:
        for first, matches in matcher.process(one.events):
            for i, row in enumerate((matches.rows + first).tolist()):
                event = one.events.event(row)
                completing[id(event)] = event
                start, end = int(matches.starts[i]), int(matches.ends[i])
                notifications.append(sequence_notification(_ID, matches.match(i), start, end, 0))
    late = tuple(buffer.drain_late())
    return DryRun(tuple(completing.values()), len(events), faults, tuple(notifications), late)


def _dry_run_view(
    query: View, events: Sequence[Event], faults: tuple[Fault, ...], views: ViewRuntime
) -> DryRun:
    """Return the changes of a view's answer, over tables that are empty at first."""
    changes, refused = views.dry_run(query, events)
    part = ViewNotifications(changes.rows, changes, TimedBatch(events), [_ID] * len(changes), 0)
    return DryRun(
        tuple(events[row] for row in changes.rows.tolist()),
        len(events),
        (*faults, *(Fault("event", row + 1, reason) for row, reason in refused)),
        tuple(part.notification(i) for i in range(len(changes))),
    )
