"""Sequences that begin and end at set times, over events in the order of their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.options import ALWAYS, FOREVER
from tocsin.sequences.compiling.compiler import CompiledSequence
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.sequences.matches import SequenceMatches

_MANY_STALE: Final = 64  # entries of removed subscriptions that are not worth looking for


class _Scheduled(Struct, eq=False):
    """Subscriptions that begin later, and those of them that were removed meanwhile."""

    numbers: IdArray
    compiled: CompiledSequence
    columns: Mapping[str, Column]
    removed: set[int]


class ScheduledMatcher:
    """Adds a subscription to a matcher just before the first event that it may see, and removes it when it expires.

    Events come in the order of their end, so a batch is split only at the times at which a subscription begins or ends.
    """

    def __init__(self, matcher: InspectableSequenceMatcher) -> None:
        self.matcher = matcher
        self._processed = ALWAYS  # the largest end that was processed
        self._order = count()  # ties in the heaps are resolved by order of arrival
        self._begins: list[tuple[int, int, _Scheduled]] = []  # a heap, by the first end that is seen
        self._begin_of: dict[int, tuple[int, _Scheduled]] = {}  # of subscriptions that have not begun
        self._ends: list[tuple[int, int, IdArray]] = []  # a heap, by the first end not seen; some are stale
        self._end_of: dict[int, int] = {}
        self._expired: set[int] = set()  # subscriptions that are not in the matcher any more, but not removed

    def first_end(self, number: int) -> int | None:
        """Return the first end that a subscription will see; None if it has begun."""
        found = self._begin_of.get(number)
        return None if found is None else found[0]

    def has_expired(self, number: int) -> bool:
        """Tell whether an event has come that ended when the subscription's validity was over."""
        return number in self._expired

    def add(
        self,
        numbers: IdArray,
        compiled: CompiledSequence,
        columns: Mapping[str, Column],
        first_end: int,
        valid_until: int = FOREVER,
    ) -> None:
        """Add subscriptions that see the events whose end is at least `first_end` and before `valid_until`."""
        if first_end <= self._processed + 1:
            self.matcher.add(numbers, compiled, columns)
        else:
            scheduled = _Scheduled(numbers, compiled, columns, set())
            heappush(self._begins, (first_end, next(self._order), scheduled))
            self._begin_of.update(dict.fromkeys(numbers.tolist(), (first_end, scheduled)))
        if valid_until != FOREVER:
            heappush(self._ends, (valid_until, next(self._order), numbers))
            self._end_of.update(dict.fromkeys(numbers.tolist(), valid_until))

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown numbers are ignored."""
        if self._begin_of or self._end_of:
            for number in numbers.tolist():
                self._end_of.pop(number, None)
                scheduled = self._begin_of.pop(number, None)
                if scheduled is not None:
                    scheduled[1].removed.add(number)
        if self._expired:
            self._expired.difference_update(numbers.tolist())
        entries = len(self._begins) + len(self._ends)
        if entries > _MANY_STALE and entries > 4 * (len(self._begin_of) + len(self._end_of)):
            self._drop_stale()
        self.matcher.remove(numbers)

    def _drop_stale(self) -> None:
        """Drop the entries of the heaps whose subscriptions were all removed, long before their time."""
        self._begins = [entry for entry in self._begins if len(entry[2].removed) < len(entry[2].numbers)]
        self._ends = [
            entry for entry in self._ends if any(self._end_of.get(n) == entry[0] for n in entry[2].tolist())
        ]
        heapify(self._begins)
        heapify(self._ends)

    def process(self, events: TimedBatch) -> Iterable[tuple[int, SequenceMatches]]:
        """Process events, and return matches with the number that their rows count from.

        Read each before the next: a match is decoded from the state of its automaton, which further events change.
        """
        if self._begins or self._ends or not len(events.ends):
            return self._process_parts(events)
        self._processed = int(events.ends[-1])
        return ((0, self.matcher.process(events)),)

    def _process_parts(self, events: TimedBatch) -> Iterator[tuple[int, SequenceMatches]]:
        """Process slices of events between which subscriptions begin or end; yield each first row and its matches."""
        ends = events.ends
        begin = 0
        while begin < len(ends):
            self._begin_and_end(int(ends[begin]))
            change = min((heap[0][0] for heap in (self._begins, self._ends) if heap), default=None)
            end = len(ends) if change is None else int(np.searchsorted(ends, change))
            part = events if end - begin == len(ends) else events.slice(begin, end)
            self._processed = int(ends[end - 1])
            yield begin, self.matcher.process(part)
            begin = end

    def _begin_and_end(self, time: int) -> None:
        """Add subscriptions that begin, and remove those that end, before an event that ends then."""
        while self._begins and self._begins[0][0] <= time:
            scheduled = heappop(self._begins)[2]
            numbers = scheduled.numbers.tolist()
            kept = np.array([number not in scheduled.removed for number in numbers], dtype=np.bool_)
            for number in scheduled.numbers[kept].tolist():
                del self._begin_of[number]
            if kept.any():
                columns = {name: column[kept] for name, column in scheduled.columns.items()}
                self.matcher.add(scheduled.numbers[kept], scheduled.compiled, columns)
        while self._ends and self._ends[0][0] <= time:
            until, _, expiring = heappop(self._ends)
            expired = [number for number in expiring.tolist() if self._end_of.get(number) == until]
            for number in expired:
                del self._end_of[number]
            self._expired.update(expired)
            self.matcher.remove(np.array(expired, dtype=np.int64))
