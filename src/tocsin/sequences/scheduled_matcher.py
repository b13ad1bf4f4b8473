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
from tocsin.sequences.saved_schedule import (
    EXPIRED,
    SavedSchedule,
    Standing,
    nothing_saved,
    write_schedule,
)
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Bools, Int64s

_MANY_STALE: Final = 64  # entries of removed subscriptions that are not worth looking for


class _Scheduled(Struct, eq=False):
    """Subscriptions that begin or end at one time, and those of them that were removed meanwhile."""

    numbers: IdArray
    compiled: CompiledSequence
    columns: Mapping[str, Column]
    removed: set[int]

    def part(self, chosen: Bools) -> _Scheduled:
        """Return some of the subscriptions."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return _Scheduled(self.numbers[chosen], self.compiled, columns, set())

    def present(self) -> _Scheduled:
        """Return the subscriptions that were not removed."""
        kept = [number not in self.removed for number in self.numbers.tolist()]
        return self.part(np.array(kept, dtype=np.bool_))


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
        self._silent: dict[int, int] = {}  # first ends of those that are in the matcher before their time
        self._ends: list[tuple[int, int, _Scheduled]] = []  # a heap, by the first end not seen, or stale
        self._end_of: dict[int, int] = {}
        # Subscriptions that are not in the matcher any more, but not removed: an older state may need them again.
        self._expired: dict[int, tuple[int, _Scheduled]] = {}

    def first_end(self, number: int) -> int | None:
        """Return the first end that a subscription will see; None if it has begun."""
        found = self._begin_of.get(number)
        first = self._silent.get(number, ALWAYS) if found is None else found[0]
        return first if found is not None or first > self._processed + 1 else None

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
        scheduled = _Scheduled(numbers, compiled, columns, set())
        if first_end <= self._processed + 1:
            self.matcher.add(numbers, compiled, columns)
        else:
            self._begin_later(scheduled, first_end)
        if valid_until != FOREVER:
            self._end_later(scheduled, valid_until)

    def _begin_later(self, scheduled: _Scheduled, first_end: int) -> None:
        heappush(self._begins, (first_end, next(self._order), scheduled))
        self._begin_of.update(dict.fromkeys(scheduled.numbers.tolist(), (first_end, scheduled)))

    def _end_later(self, scheduled: _Scheduled, valid_until: int) -> None:
        heappush(self._ends, (valid_until, next(self._order), scheduled))
        self._end_of.update(dict.fromkeys(scheduled.numbers.tolist(), valid_until))

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown numbers are ignored."""
        if self._begin_of or self._end_of or self._silent or self._expired:
            for number in numbers.tolist():
                self._end_of.pop(number, None)
                self._expired.pop(number, None)
                self._silent.pop(number, None)
                scheduled = self._begin_of.pop(number, None)
                if scheduled is not None:
                    scheduled[1].removed.add(number)
        entries = len(self._begins) + len(self._ends)
        if entries > _MANY_STALE and entries > 4 * (len(self._begin_of) + len(self._end_of)):
            self._drop_stale()
        self.matcher.remove(numbers)

    def _drop_stale(self) -> None:
        """Drop the entries of the heaps whose subscriptions were all removed, long before their time."""
        self._begins = [entry for entry in self._begins if len(entry[2].removed) < len(entry[2].numbers)]
        self._ends = [
            entry
            for entry in self._ends
            if any(self._end_of.get(n) == entry[0] for n in entry[2].numbers.tolist())
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
            self._begin(heappop(self._begins)[2])
        while self._ends and self._ends[0][0] <= time:
            until, _, expiring = heappop(self._ends)
            chosen = [self._end_of.get(number) == until for number in expiring.numbers.tolist()]
            self._expire(expiring.part(np.array(chosen, dtype=np.bool_)), until)

    def _begin(self, scheduled: _Scheduled) -> None:
        """Add scheduled subscriptions to the matcher."""
        kept = scheduled.present()
        for number in kept.numbers.tolist():
            del self._begin_of[number]
        if len(kept.numbers):
            self.matcher.add(kept.numbers, kept.compiled, kept.columns)

    def _expire(self, expiring: _Scheduled, until: int) -> None:
        """Remove subscriptions, whose validity is over, from the matcher."""
        for number in expiring.numbers.tolist():
            del self._end_of[number]
            self._expired[number] = until, expiring
            waiting = self._begin_of.pop(number, None)  # it expires before it begins
            if waiting is not None:
                waiting[1].removed.add(number)
        self.matcher.remove(expiring.numbers)

    # saving

    def snapshot(self, numbers: IdArray) -> Parts:
        """Return the state, with that of these subscriptions in this order; others are passed over."""
        first_ends, is_known = self.matcher.first_ends(numbers)
        standings = np.where(is_known, Standing.ACTIVE, Standing.UNKNOWN)
        if self._begin_of or self._expired:
            for i, number in enumerate(numbers.tolist()):
                scheduled = self._begin_of.get(number)
                if scheduled is not None:
                    first_ends[i], standings[i] = scheduled[0], Standing.ACTIVE
                elif number in self._expired:
                    standings[i] = Standing.EXPIRED
        return write_schedule(self._processed, standings, first_ends, self.matcher.snapshot())

    def read_snapshot(self, parts: Parts) -> SavedSchedule:
        """Return a snapshot, checked, or raise `SavedError`; nothing changes."""
        return SavedSchedule.read(parts, self.matcher.read_snapshot)

    def nothing_saved(self, count: int) -> SavedSchedule:
        """Return the snapshot of a new matcher, taken with so many numbers."""
        return nothing_saved(count, self.matcher.nothing_saved())

    def restore(self, saved: SavedSchedule, numbers: IdArray, first_ends: Int64s) -> int:
        """Replace the state by that of a snapshot; return how many partial matches no subscription can continue.

        `numbers` are all subscriptions; each sees events from its first end on, or has expired if that is `EXPIRED`.
        """
        self._revive_expired()
        self._processed = saved.processed
        if self._begins:
            self._restore_begins(dict(zip(numbers.tolist(), first_ends.tolist(), strict=True)))
        has_expired = first_ends == EXPIRED
        if has_expired.any():
            self._restore_expired(set(numbers[has_expired].tolist()))
        dropped = self.matcher.restore(saved.matches)
        numbers, first_ends = numbers[~has_expired], first_ends[~has_expired]
        is_known = self.matcher.set_first_ends(numbers, first_ends)
        silent = is_known & (first_ends > saved.processed + 1)
        self._silent = dict(zip(numbers[silent].tolist(), first_ends[silent].tolist(), strict=True))
        return dropped

    def _revive_expired(self) -> None:
        """Add the expired subscriptions to the matcher again: in an older state they have not expired."""
        groups = {id(scheduled): (until, scheduled) for until, scheduled in self._expired.values()}
        for until, scheduled in groups.values():
            present = [number in self._expired for number in scheduled.numbers.tolist()]
            part = scheduled.part(np.array(present, dtype=np.bool_))
            self.matcher.add(part.numbers, part.compiled, part.columns)
            self._end_later(part, until)
        self._expired = {}

    def _restore_begins(self, first_ends: Mapping[int, int]) -> None:
        """Have the subscriptions that have not begun begin at these ends, or now."""
        begins, self._begins, self._begin_of = self._begins, [], {}
        for _, _, scheduled in begins:
            present = scheduled.present()
            own = [first_ends[number] for number in present.numbers.tolist()]
            moments = np.maximum(np.array(own, dtype=np.int64), self._processed + 1)
            for moment in np.unique(moments).tolist():
                part = present.part(moments == moment)
                if moment == self._processed + 1:
                    self.matcher.add(part.numbers, part.compiled, part.columns)
                else:
                    self._begin_later(part, moment)

    def _restore_expired(self, numbers: set[int]) -> None:
        """Have subscriptions expire."""
        for until, _, scheduled in list(self._ends):
            chosen = [n in numbers and self._end_of.get(n) == until for n in scheduled.numbers.tolist()]
            if any(chosen):
                self._expire(scheduled.part(np.array(chosen, dtype=np.bool_)), until)
