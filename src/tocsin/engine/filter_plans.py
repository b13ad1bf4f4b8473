"""What filters cost, and why: the plans of the matcher, by the ids of subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from threading import RLock

from msgspec.structs import replace

from tocsin.engine.event_sources import EventSource, checked_source, read_events
from tocsin.engine.pipeline import Report
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.formats import EventReader, Fault
from tocsin.matching import EventBatch
from tocsin.matching.plans import FilterCosts, FilterPlan
from tocsin.model import Event, Filter, Sequence
from tocsin.model.errors import SubscriptionError
from tocsin.model.event import is_deletion, matchable

_TOGETHER = 512  # events that are matched at once


class FilterPlans:
    """Explains what filters cost, and adapts their index to events; its methods take the lock."""

    def __init__(self, store: SubscriptionStore, reader: EventReader, lock: RLock) -> None:
        self._store = store
        self._reader = reader
        self._lock = lock

    def plan(self, id_: str) -> FilterPlan:
        """Return the plan of a filter; raise `SubscriptionError` for a sequence and a view."""
        number = self._store.registry.number(id_)
        kind = self._store.queries.kind(number)
        if kind is not Filter:
            what, where = (
                ("sequence", "`explain` shows its automaton, with the conditions that an index evaluates")
                if kind is Sequence
                else ("view", "`explain` shows how its answer is maintained")
            )
            raise SubscriptionError(f"it is a {what}, and plans are of filters; {where}", id_)
        return replace(self._store.filters.explain_plan(number), subscription=id_)

    def costs(self, top: int) -> FilterCosts:
        """Return what all filters cost an event, with the plans of the costliest."""
        found = self._store.filters.explain_costs(top)
        names = (self._store.registry.id(int(one.subscription)) for one in found.filters)
        plans = (replace(one, subscription=name) for one, name in zip(found.filters, names, strict=True))
        return replace(found, filters=tuple(plans))

    def adapt(self, events: EventSource, stream: str | None, report: Report) -> int:
        """Have the index count events, and plan for all filters; return how many events there were."""
        source = checked_source(events, self._reader, stream)
        count = 0
        read = _events(read_events(source, self._reader, stream), report)
        while some := list(islice(read, _TOGETHER)):
            count += len(some)
            with self._lock:
                self._store.filters.observe(EventBatch.of(some))
        with self._lock:
            self._store.filters.maintain()
        return count


def _events(rows: Iterable[Event | Fault], report: Report) -> Iterator[Event]:
    """Return the events that can reach a filter; report the records that are none."""
    for row in rows:
        if isinstance(row, Fault):
            report(row)
        elif not is_deletion(row):
            yield matchable(row)
