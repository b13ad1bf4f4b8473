"""Sums and averages, exact: each subscription keeps the whole sum of its rows, and their count."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tocsin.language.semantics import value_of
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import CompiledRowView
from tocsin.views.keeping.keeper import Keeper, Place, parted
from tocsin.views.keeping.numbers import Number, finite, parts, rounded, told


class _Sum:
    """The sum of one subscription's numbers in parts, how many they are, and what was told of them."""

    __slots__ = ("count", "parts", "told")

    def __init__(self) -> None:
        self.count = 0
        self.parts = 0
        self.told: Number | None = None


class Total(Keeper[Number]):
    """The sum, rounded once: whatever has come and gone, it is that of the numbers that are there."""

    def __init__(self, plan: CompiledRowView) -> None:
        super().__init__(plan)
        self._sums: dict[int, _Sum] = {}
        self._touched: set[int] = set()

    def read(self, row: Row) -> Number | None:
        """Return the aggregated number."""
        assert self.plan.y is not None  # noqa: S101 - the language has no other
        return finite(value_of(self.plan.y, row))

    def begin(self, number: int) -> None:
        """Let a subscription begin, with no row yet."""
        self._sums[number] = _Sum()

    def end(self, number: int) -> None:
        """Let go of a subscription's sum."""
        del self._sums[number]
        self._touched.discard(number)

    def follow(
        self,
        place: Place,  # noqa: ARG002 - it does not matter which row it is
        old: Number | None,
        new: Number | None,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Take a row's number out of sums, and its new one into them."""
        gone, come = parted(old == new, before, after)
        if old is not None:
            self._add(gone, -1, -parts(old))
        if new is not None:
            self._add(come, 1, parts(new))

    def _add(self, numbers: Iterable[int], step: int, amount: int) -> None:
        sums = self._sums
        for number in numbers:
            one = sums[number]
            one.count += step
            one.parts += amount
        self._touched.update(numbers)

    def settle(self, row: int, log: ChangeLog) -> None:
        """Log the sums that changed."""
        for number in sorted(self._touched):
            one = self._sums[number]
            new = told(self._of(rounded(one.parts), one.count)) if one.count else None
            if new != one.told:
                old, one.told = one.told, new
                log.add(row, number, old, new)
        self._touched.clear()

    def _of(self, total: float, _count: int) -> float:
        """Return what is told of a sum over some rows."""
        return total

    def answer(self, number: int) -> Number | None:
        """Return what was told last; None if there is no number."""
        return self._sums[number].told

    def __len__(self) -> int:
        return len(self._sums)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the sums."""
        each = sum(sys.getsizeof(one) + sys.getsizeof(one.parts) for one in self._sums.values())
        return sys.getsizeof(self._sums) + each


class Average(Total):
    """The rounded sum, divided by the count."""

    def _of(self, total: float, count: int) -> float:
        return total / count
