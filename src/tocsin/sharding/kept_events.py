"""Events that are kept until a time of their own, so that filters which are added later meet them once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tocsin.model import Event
from tocsin.model.options import ALWAYS
from tocsin.sharding.output import OutputWriter
from tocsin.sharding.stateful import StatefulSubscriptions
from tocsin.sharding.unit import Unit


class KeptEvents:
    """Events with `valid_until`, in the order they came, until an event has come that ended then or later."""

    def __init__(self, events: Iterable[Event] = (), now: int = ALWAYS) -> None:
        self._events = list(events)
        self._now = now
        self.pass_time(now)

    def add(self, event: Event) -> None:
        """Keep an event, unless its time is over."""
        if event.valid_until is not None and event.valid_until > self._now:
            self._events.append(event)

    def pass_time(self, now: int) -> None:
        """Let go of the events whose time is over."""
        self._now = max(now, self._now)
        self._events = [
            event for event in self._events if event.valid_until is not None and event.valid_until > self._now
        ]

    def meet(self, filters: StatefulSubscriptions, output: OutputWriter) -> None:
        """Write the notifications of new filters that events satisfy which are kept."""
        if not self._events or not len(filters):
            return
        alone = Unit()
        for run in filters.runs:
            alone.add(run)
        for note in alone.match_kept(self._events):
            output.met(note.subscription, note.events[0], note.values)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)
