"""Running sequences by asking the algebra again whenever events have come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.model.event import Event
from tocsin.sequences.algebra import Expression
from tocsin.sequences.binding import bind_expression, bound_names
from tocsin.sequences.compilation import CompiledSequence
from tocsin.sequences.contents import telling_of
from tocsin.sequences.dependencies import Dependencies
from tocsin.sequences.matches import SequenceMatch, SequenceMatches, published_event
from tocsin.sequences.oracle.occurrences import Occurrence, match_of, occurrences
from tocsin.sequences.timed_batch import TimedBatch


class _Held(Struct, frozen=True):
    """A subscription, and the largest end that had come when it was added."""

    expression: Expression
    prepared: CompiledSequence
    since: int | None


class OracleSequenceMatcher:
    """Evaluates every subscription over all events, and tells what the latest of them completed.

    It keeps every event, and its cost grows with their number: for tests, and to look things up.
    """

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._events: list[Event] = []  # what sequences published among them
        self._now: int | None = None
        self._dependencies = Dependencies()

    def add(self, numbers: IdArray, prepared: CompiledSequence, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        self._dependencies.add(prepared.reads, prepared.publishes, len(numbers))
        for row, number in enumerate(numbers.tolist()):
            values = bindings_at(columns, row)
            expression = bind_expression(prepared.expression, values, bound_names(prepared.query, values))
            self._held[number] = _Held(expression, prepared, self._now)

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; those that are not there are passed over."""
        for number in numbers.tolist():
            held = self._held.pop(number, None)
            if held is not None:
                self._dependencies.remove(held.prepared.reads, held.prepared.publishes)

    def process(self, arrivals: TimedBatch) -> SequenceMatches:
        """Take further events, which end no earlier than those before, and return what they completed."""
        known = len(self._events)
        places = list(range(len(arrivals)))  # of the events since, those that were published included
        self._events += [arrivals.event(place) for place in places]
        if len(arrivals):
            self._now = int(arrivals.ends[-1])
        found: list[tuple[int, int, Occurrence]] = []
        for number in self._in_order():
            held = self._held[number]
            new = [
                each
                for each in occurrences(held.expression, self._events)
                if each.place >= known and (held.since is None or each.began > held.since)
            ]
            found += [(places[each.place - known], number, each) for each in new]
            if held.prepared.publishes is not None:
                self._events += [_published(held, held.prepared.publishes, each) for each in new]
                places += [places[each.place - known] for each in new]
        made = [(place, event) for place, event in zip(places, self._events[known:], strict=True)]
        return self._witnesses(sorted(found, key=lambda each: each[:2]), tuple(made[len(arrivals) :]))

    def _witnesses(
        self, found: list[tuple[int, int, Occurrence]], published: tuple[tuple[int, Event], ...]
    ) -> SequenceMatches:
        held = dict(self._held)

        def match(place: int) -> SequenceMatch:
            _, number, occurrence = found[place]
            subscription = held[number]
            return match_of(subscription.expression, occurrence, full=subscription.prepared.full)

        return SequenceMatches(
            np.array([number for _, number, _ in found], dtype=np.int64),
            np.array([place for place, _, _ in found], dtype=np.int64),
            np.array([each.start for _, _, each in found], dtype=np.int64),
            np.array([each.end for _, _, each in found], dtype=np.int64),
            match,
            tuple(sorted(published, key=lambda each: each[0])),
        )

    def _in_order(self) -> list[int]:
        """Return the subscriptions' numbers, each after those that publish what it reads."""
        ranks = self._dependencies.ranks()
        return sorted(
            self._held, key=lambda number: max(ranks[name] for name in self._held[number].prepared.reads)
        )


def _published(held: _Held, name: str, found: Occurrence) -> Event:
    selected = telling_of(held.expression).selected
    told = match_of(held.expression, found)
    return published_event(name, told, selected=selected, start=found.start, end=found.end)
