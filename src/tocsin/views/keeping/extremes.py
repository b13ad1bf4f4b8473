"""The least and the greatest: each subscription keeps the numbers of its rows in a heap."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, TypeAlias

from tocsin.language.semantics import value_of
from tocsin.views.changes import Row
from tocsin.views.keeping.keeper import Altered, Keeper, Place
from tocsin.views.keeping.numbers import Number, finite, told
from tocsin.views.plan import RowPlan

__all__ = ["Greatest", "Least"]

_SLACK: Final = 16  # entries that a heap may have before any is looked at whether it still stands for a row


class _Standing:
    """How many subscriptions have a row, and where it is; none has it any more if 0."""

    __slots__ = ("holders", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.holders = 0


_Entry: TypeAlias = tuple[Number, int, _Standing]
"""A row's number, the least first, and what decides between equal ones; all heaps share it."""


class _Heap:
    """The entries of one subscription, some of them of rows that have gone, and the least number that was told."""

    __slots__ = ("best", "entries", "limit")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.best: Number = math.inf  # no row
        self.limit = _SLACK


class Least(Keeper[Number]):
    """The least number.

    A row that goes is not looked for in the heaps: its entry is marked for all of them at once, and passed over when
    it comes to the top. Only subscriptions whose least number it was, or is now, are looked at again.
    """

    sign = 1

    def __init__(self, plan: RowPlan) -> None:
        super().__init__(plan)
        self._heaps: dict[int, _Heap] = {}
        self._entries: dict[Place, _Entry] = {}  # of the rows that some subscription has
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
                    del self._entries[standing.place]

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
            if old == new and before == after:
                return
            self._entries.pop(place)[2].holders = 0
            for number in before:
                if self._heaps[number].best == old:
                    self._touched.add(number)
        if new is not None and after:
            self._enter(place, new, after)

    def _enter(self, place: Place, value: Number, after: Sequence[int]) -> None:
        entry = self._entries.get(place)  # it is there if only further subscriptions begin
        if entry is None:
            entry = self._entries[place] = (value, next(self._order), _Standing(place))
        entry[2].holders += len(after)
        for number in after:
            heap = self._heaps[number]
            heappush(heap.entries, entry)
            if value < heap.best:
                self._touched.add(number)
            if len(heap.entries) > heap.limit:
                heap.entries = [one for one in heap.entries if one[2].holders]
                heapify(heap.entries)
                heap.limit = 2 * len(heap.entries) + _SLACK

    def settle(self) -> Iterator[Altered]:
        """Return whose least number is another."""
        for number in sorted(self._touched):
            heap = self._heaps[number]
            entries = heap.entries
            while entries and not entries[0][2].holders:
                heappop(entries)
            best = entries[0][0] if entries else math.inf
            if best != heap.best:
                old, heap.best = self.answer(number), best
                yield Altered(number, old, self.answer(number))
        self._touched.clear()

    def answer(self, number: int) -> int | float | None:
        """Return the least number; None if there is none."""
        best = self._heaps[number].best
        return None if best == math.inf else told(self.sign * best)

    def __len__(self) -> int:
        return len(self._heaps)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the heaps, and of the entries that they share."""
        heaps = sum(sys.getsizeof(heap) + sys.getsizeof(heap.entries) for heap in self._heaps.values())
        each = sum(map(sys.getsizeof, next(iter(self._entries.items()), ()))) + sys.getsizeof(_Standing(()))
        shared = sys.getsizeof(self._entries) + len(self._entries) * each
        return sys.getsizeof(self._heaps) + heaps + shared


class Greatest(Least):
    """The greatest number: the least with the sign changed."""

    sign = -1
