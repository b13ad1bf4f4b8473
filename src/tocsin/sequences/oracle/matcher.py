"""Running sequences by evaluating the algebra from the beginning for every batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.event import Event
from tocsin.sequences.algebra import Expression, output_values
from tocsin.sequences.binding import bind_expression, bound_names
from tocsin.sequences.compiling.compiler import CompiledSequence
from tocsin.sequences.dependencies import Dependencies
from tocsin.sequences.matches import SequenceMatch, SequenceMatches, published_event
from tocsin.sequences.oracle.occurrences import Occurrence, match_of, occurrences


class _Added(Struct, frozen=True):
    """A subscription, and the largest end processed before it was added."""

    expression: Expression
    compiled: CompiledSequence
    since: int | None


class OracleSequenceMatcher:
    """Evaluates every subscription over all events, and returns the matches that the latest events completed.

    It keeps every event, and its cost grows with their number: it is the reference for tests.
    """

    def __init__(self) -> None:
        self._added: dict[int, _Added] = {}
        self._events: list[Event] = []  # including published ones
        self._now: int | None = None
        self._dependencies = Dependencies()

    def add(self, numbers: IdArray, compiled: CompiledSequence, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        self._dependencies.add(compiled.reads, compiled.publishes, len(numbers))
        for row, number in enumerate(numbers.tolist()):
            values = bindings_at(columns, row)
            expression = bind_expression(compiled.expression, values, bound_names(compiled.query, values))
            self._added[number] = _Added(expression, compiled, self._now)

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown numbers are ignored."""
        for number in numbers.tolist():
            added = self._added.pop(number, None)
            if added is not None:
                self._dependencies.remove(added.compiled.reads, added.compiled.publishes)

    def process(self, events: TimedBatch) -> SequenceMatches:
        """Process further events, which end no earlier than those before, and return the sequences they complete."""
        known = len(self._events)
        rows = list(range(len(events)))  # of the new events, including published ones
        self._events += [events.event(row) for row in rows]
        if len(events):
            self._now = int(events.ends[-1])
        found: list[tuple[int, int, Occurrence]] = []
        for number in self._in_order():
            added = self._added[number]
            new = [
                occurrence
                for occurrence in occurrences(added.expression, self._events)
                if occurrence.position >= known and (added.since is None or occurrence.began > added.since)
            ]
            found += [(rows[occurrence.position - known], number, occurrence) for occurrence in new]
            if added.compiled.publishes is not None:
                self._events += [_publish(added, added.compiled.publishes, occurrence) for occurrence in new]
                rows += [rows[occurrence.position - known] for occurrence in new]
        published = [(row, event) for row, event in zip(rows, self._events[known:], strict=True)]
        return self._matches(sorted(found, key=lambda one: one[:2]), tuple(published[len(events) :]))

    def _matches(
        self, found: list[tuple[int, int, Occurrence]], published: tuple[tuple[int, Event], ...]
    ) -> SequenceMatches:
        """Return these occurrences as sequence matches."""
        added = dict(self._added)

        def match(i: int) -> SequenceMatch:
            _, number, occurrence = found[i]
            subscription = added[number]
            return match_of(subscription.expression, occurrence, full=subscription.compiled.full)

        return SequenceMatches(
            np.array([number for _, number, _ in found], dtype=np.int64),
            np.array([row for row, _, _ in found], dtype=np.int64),
            np.array([each.start for _, _, each in found], dtype=np.int64),
            np.array([each.end for _, _, each in found], dtype=np.int64),
            match,
            tuple(sorted(published, key=lambda each: each[0])),
        )

    def _in_order(self) -> list[int]:
        """Return the subscriptions' numbers, each after the publishers of its streams."""
        ranks = self._dependencies.ranks()
        return sorted(
            self._added, key=lambda number: max(ranks[name] for name in self._added[number].compiled.reads)
        )


def _publish(added: _Added, name: str, occurrence: Occurrence) -> Event:
    selected = output_values(added.expression).selected
    match = match_of(added.expression, occurrence)
    return published_event(name, match, selected=selected, start=occurrence.start, end=occurrence.end)
