"""`count`: the number of rows, or of present values. By range it is a total that ignores y."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

from tocsin.language.semantics import value_of
from tocsin.views._kernels.totals import Total
from tocsin.views.aggregates.base import AggregateStrategies, Reads, RowAggregate, RowKey
from tocsin.views.aggregates.totals import totals_by_range
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row


class RowCount(RowAggregate[bool, int]):
    """The number of rows; if a term is counted, of those in which it has a value."""

    new_state = int

    def read(self, row: Row) -> bool | None:
        """Return True if a row counts."""
        return True if self.compiled.y is None or value_of(self.compiled.y, row) is not None else None

    def apply_row(self, row_key: RowKey, value: bool, numbers: Collection[int], step: int) -> None:  # noqa: ARG002 - any row
        """Count a row, or count it off."""
        counts = self.states
        for number in numbers:
            self.touched.setdefault(number, counts[number])
            counts[number] += step

    def log_changes(self, row: int, log: ChangeLog) -> None:
        """Log the counts that changed."""
        for number, old in self.touched.items():
            if self.states[number] != old:
                log.add(row, number, old, self.states[number])
        self.touched.clear()

    def answer(self, number: int) -> int:
        """Return the count."""
        return self.states[number]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the counts."""
        return sys.getsizeof(self.states) + len(self.states) * sys.getsizeof(1)


AGGREGATES: Final = {"count": AggregateStrategies(RowCount, totals_by_range(Total.COUNT, Reads.PRESENCE, 0))}
