"""The number of rows, or of present values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tocsin.language.semantics import value_of
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import CompiledRowView
from tocsin.views.keeping.keeper import Keeper, Place, parted


class Count(Keeper[bool]):
    """How many rows there are; if a term is counted, those in which it has a value."""

    def __init__(self, plan: CompiledRowView) -> None:
        super().__init__(plan)
        self._counts: dict[int, int] = {}
        self._old: dict[int, int] = {}  # of those that were touched

    def read(self, row: Row) -> bool | None:
        """Return True if a row counts."""
        return True if self.plan.y is None or value_of(self.plan.y, row) is not None else None

    def begin(self, number: int) -> None:
        """Let a subscription begin, with no row yet."""
        self._counts[number] = 0

    def end(self, number: int) -> None:
        """Let go of a subscription's count."""
        del self._counts[number]
        self._old.pop(number, None)

    def follow(
        self,
        place: Place,  # noqa: ARG002 - it does not matter which row it is
        old: bool | None,
        new: bool | None,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Count a row that came or went."""
        gone, come = parted(old == new, before, after)
        if old:
            self._add(gone, -1)
        if new:
            self._add(come, 1)

    def _add(self, numbers: Iterable[int], step: int) -> None:
        counts = self._counts
        for number in numbers:
            self._old.setdefault(number, counts[number])
            counts[number] += step

    def settle(self, row: int, log: ChangeLog) -> None:
        """Log the counts that changed."""
        for number, old in sorted(self._old.items()):
            if self._counts[number] != old:
                log.add(row, number, old, self._counts[number])
        self._old.clear()

    def answer(self, number: int) -> int:
        """Return the count."""
        return self._counts[number]

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the counts."""
        return sys.getsizeof(self._counts) + len(self._counts) * sys.getsizeof(1)
