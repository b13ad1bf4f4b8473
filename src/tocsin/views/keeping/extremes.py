"""The least and the greatest: each subscription keeps the numbers of its rows in a heap."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, TypeAlias

from tocsin.language.semantics import value_of
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import CompiledRowView
from tocsin.views.keeping.keeper import Keeper, Place
from tocsin.views.keeping.numbers import Number, finite, told

_SLACK: Final = 16  # entries that a heap may have before any is looked at whether it still stands for a row


class _Standing:
    """A row that some subscriptions have: its number now, and how many they are; 0 when it is theirs no more."""

    __slots__ = ("holders", "order", "place", "value")

    def __init__(self, place: Place, order: int, value: Number) -> None:
        self.place = place
        self.order = order
        self.value = value
        self.holders = 0


_Entry: TypeAlias = tuple[Number, int, _Standing]
"""A number that the row's is not below, and what decides between equal ones."""


class _Heap:
    """The entries of one subscription, some of them of rows that have gone, and the least number that was told."""

    __slots__ = ("best", "entries", "limit")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.best: Number = math.inf  # no row
        self.limit = _SLACK


class Least(Keeper[Number]):
    """The least number.

    A row that goes is not looked for in the heaps: it is marked for all of them at once, and passed over when its
    entry comes to the top; nor is one whose number grows while it stays theirs, whose entry then sinks. Only
    subscriptions whose least number it was, or is now, are looked at again.
    """

    sign = 1

    def __init__(self, plan: CompiledRowView) -> None:
        super().__init__(plan)
        self._heaps: dict[int, _Heap] = {}
        self._standing: dict[Place, _Standing] = {}
        self._order = count()
        self._touched: set[int] = set()

    def read(self, row: Row) -> Number | None:
        """Return the aggregated number, its sign changed if the greatest is asked for."""
        assert self.plan.y is not None  # noqa: S101 - the language has no other
        number = finite(value_of(self.plan.y, row))
        return None if number is None else self.sign * number

    def begin(self, number: int) -> None:
        """Let a subscription begin, with no row yet."""
        self._heaps[number] = _Heap()

    def end(self, number: int) -> None:
        """Let go of a subscription's heap, and of the rows that nobody else has."""
        for _, _, standing in self._heaps.pop(number).entries:
            if standing.holders:
                standing.holders -= 1
                if not standing.holders:
                    del self._standing[standing.place]
        self._touched.discard(number)

    def follow(
        self,
        place: Place,
        old: Number | None,
        new: Number | None,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Take a row's numbers before and after a change."""
        if old is not None and before:
            if new is not None and new >= old and before == after:
                if new > old:
                    self._standing[place].value = new
                    self._touch(before, old)
                return
            self._standing.pop(place).holders = 0
            self._touch(before, old)
        if new is not None and after:
            self._enter(place, new, after)

    def _touch(self, numbers: Sequence[int], value: Number) -> None:
        """Take note of those whose least number was this."""
        heaps = self._heaps
        self._touched.update([number for number in numbers if heaps[number].best == value])

    def _enter(self, place: Place, value: Number, after: Sequence[int]) -> None:
        standing = self._standing.get(place)  # it is there if only further subscriptions begin
        if standing is None:
            standing = self._standing[place] = _Standing(place, next(self._order), value)
        standing.holders += len(after)
        entry = (value, standing.order, standing)
        for number in after:
            heap = self._heaps[number]
            heappush(heap.entries, entry)
            if value < heap.best:
                self._touched.add(number)
            if len(heap.entries) > heap.limit:
                heap.entries = [one for one in heap.entries if one[2].holders]
                heapify(heap.entries)
                heap.limit = 2 * len(heap.entries) + _SLACK

    def settle(self, row: int, log: ChangeLog) -> None:
        """Log the least numbers that changed."""
        for number in sorted(self._touched):
            heap = self._heaps[number]
            best = _least(heap.entries)
            if best != heap.best:
                old, heap.best = self.answer(number), best
                log.add(row, number, old, self.answer(number))
        self._touched.clear()

    def answer(self, number: int) -> int | float | None:
        """Return the least number; None if there is none."""
        best = self._heaps[number].best
        return None if best == math.inf else told(self.sign * best)

    def __len__(self) -> int:
        return len(self._heaps)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the heaps, and of the rows' entries that they share."""
        heaps = sum(sys.getsizeof(heap) + sys.getsizeof(heap.entries) for heap in self._heaps.values())
        each = sum(map(sys.getsizeof, ((0,), (0, 0, 0), _Standing((), 0, 0))))
        shared = sys.getsizeof(self._standing) + len(self._standing) * each
        return sys.getsizeof(self._heaps) + heaps + shared


class Greatest(Least):
    """The greatest number: the least with the sign changed."""

    sign = -1


def _least(entries: list[_Entry]) -> Number:
    """Return the least number of the rows that are there still, infinite if there are none."""
    while entries:
        value, order, standing = entries[0]
        if not standing.holders:
            heappop(entries)
        elif standing.value != value:
            heapreplace(entries, (standing.value, order, standing))
        else:
            return value
    return math.inf
