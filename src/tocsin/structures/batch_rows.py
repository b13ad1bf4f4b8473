"""Numbers that came in batches: which batch each is of, and its row there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from tocsin.structures.array_types import Bools, Int32s, Int64s
from tocsin.structures.growth import grown
from tocsin.structures.slots import Slots

_NONE: Final = -1
_FEW: Final = 256  # rows from which on a batch is worth compacting


class RowBatch(Protocol):
    """Rows that belong together, as columns or otherwise."""

    def __len__(self) -> int:
        """Return how many rows there are."""

    def take(self, positions: Int64s, /) -> Self:
        """Return the batch with the rows at these positions."""


Batch = TypeVar("Batch", bound=RowBatch)


class _Columns(NamedTuple):
    batch: Int32s  # [number] or _NONE
    row: Int32s  # [number]


class BatchRows(Generic[Batch]):
    """Batches by the numbers of their rows.

    A batch is dropped with its last row. One that has lost three quarters of its rows is made anew from the others, so
    that a removal costs amortised constant time and memory is in proportion to the rows that are left.

    >>> from tocsin.structures.packed_strings import PackedStrings
    >>> rows = BatchRows[PackedStrings]()
    >>> rows.add(np.array([4, 2]), PackedStrings(["a", "b"]))
    >>> [(batch[row]) for batch, row in [rows.find(2)]], 3 in rows, rows.remove(4), 4 in rows
    (['b'], False, None, False)
    """

    def __init__(self) -> None:
        self._columns = _Columns(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))
        self._batches: list[Any] = []  # by code, None where it is free
        self._left: list[int] = []  # rows of each batch
        self._slots = Slots()

    def __contains__(self, number: int) -> bool:
        batch = self._columns.batch
        return number < len(batch) and batch.item(number) != _NONE

    def has(self, numbers: Int64s) -> Bools:
        """Tell which of these numbers are in a batch."""
        batch = self._columns.batch
        known = numbers < len(batch)
        known[known] = batch[numbers[known]] != _NONE
        return known

    def add(self, numbers: Int64s, batch: Batch) -> None:
        """Add a batch whose rows have these numbers."""
        if not len(numbers):
            return
        code = self._slots.take()
        if code == len(self._batches):
            self._batches.append(None)
            self._left.append(0)
        known = len(self._columns.batch)
        self._columns = grown(self._columns, _Columns._fields, int(numbers.max()) + 1)
        self._columns.batch[known:] = _NONE
        self._batches[code], self._left[code] = batch, len(numbers)
        self._columns.batch[numbers] = code
        self._columns.row[numbers] = np.arange(len(numbers))

    def codes(self, numbers: Int64s) -> Int32s:
        """Return a code for the batch of each number, -1 for numbers that are in none."""
        batch = self._columns.batch
        found = np.full(len(numbers), _NONE, dtype=np.int32)
        known = numbers < len(batch)
        found[known] = batch[numbers[known]]
        return found

    def rows_of(self, numbers: Int64s) -> Batch:
        """Return the rows of these numbers, which are all in one batch; the batch itself if they are all of it, in its order."""
        batch: Batch = self._batches[self._columns.batch.item(numbers.item(0))]
        rows = self._columns.row[numbers].astype(np.int64)
        is_whole = len(rows) == len(batch) and bool((rows == np.arange(len(rows))).all())
        return batch if is_whole else batch.take(rows)

    def batches(self) -> Iterator[Batch]:
        """Yield the batches."""
        return (batch for batch in self._batches if batch is not None)

    def find(self, number: int) -> tuple[Batch, int]:
        """Return the batch of a number, and its row there; the number must be in one."""
        batch, row = self._columns
        return self._batches[batch.item(number)], row.item(number)

    def group(self, numbers: Int64s) -> list[tuple[Batch, Int64s, Int64s]]:
        """Return each batch that these numbers are of, with the positions in `numbers` and the rows."""
        codes = self._columns.batch[numbers]
        found = []
        for code in np.unique(codes).tolist():
            positions = np.flatnonzero(codes == code)
            rows = self._columns.row[numbers[positions]].astype(np.int64)
            found.append((self._batches[code], positions, rows))
        return found

    def remove(self, number: int) -> None:
        """Remove a number that is in a batch."""
        code = self._columns.batch.item(number)
        self._columns.batch[number] = _NONE
        self._lose(code, 1)

    def remove_all(self, numbers: Int64s) -> None:
        """Remove numbers that are in batches."""
        codes, counts = np.unique(self._columns.batch[numbers], return_counts=True)
        self._columns.batch[numbers] = _NONE
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._lose(code, count)

    def _lose(self, code: int, rows: int) -> None:
        """Count rows that a batch has lost, and drop it or make it anew if they are most of it."""
        self._left[code] -= rows
        if not self._left[code]:
            self._batches[code] = None
            self._slots.give(code)
        elif len(self._batches[code]) >= _FEW and 4 * self._left[code] < len(self._batches[code]):
            self._compact(code)

    def _compact(self, code: int) -> None:
        numbers = np.flatnonzero(self._columns.batch == code)
        rows = self._columns.row[numbers].astype(np.int64)
        numbers, rows = numbers[order := np.argsort(rows)], rows[order]
        self._batches[code] = self._batches[code].take(rows)
        self._columns.row[numbers] = np.arange(len(numbers))
