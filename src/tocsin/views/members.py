"""The members of a view: the rows of a table, or the joined rows of two tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from operator import attrgetter
from typing import Final, Protocol, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.model.values import Opaque, Value
from tocsin.structures.array_types import Bools, Int64s
from tocsin.structures.growth import roomier
from tocsin.views.aggregates.base import RowKey
from tocsin.views.batch import BatchChanges
from tocsin.views.changes import Row, RowChange
from tocsin.views.compiled import LEFT, RIGHT
from tocsin.views.table import StoredRows

_SLOTS: Final = 64  # that there is room for at first

_Key: TypeAlias = tuple[tuple[bool, Value], ...]
"""The values that are to be equal, each with whether it is a boolean: to Python `True` is 1."""


class MemberChange(Struct, frozen=True, gc=False):
    """A change of one member: it was added if there is no `old`, and removed if there is no `new`."""

    row_key: RowKey
    old: Row | None
    new: Row | None


class Members(Protocol):
    """The rows of a table, or the pairs of rows of two, each with its key for as long as it stays."""

    def load(self, rows: Mapping[str, Iterable[tuple[int, Row]]]) -> None:
        """Take the present rows of the tables, each with its slot."""

    def apply_change(self, change: RowChange) -> Iterable[MemberChange]:
        """Apply a change of a row, and return the changes of members, each once."""

    def present(self) -> Iterator[tuple[RowKey, Row]]:
        """Return all members, each with its key."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of this state, without the rows, which the table stores."""


class Rows:
    """The rows of one table, each with the number of its arrival for as long as it stays.

    Only rows that a caller `keep`s are stored: a row that satisfies no subscription is read from the table if a new
    subscription asks for it.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._arrived = 0
        self._arrivals: Int64s = np.full(_SLOTS, -1, dtype=np.int64)  # [slot] -1: no row
        self._is_kept: Bools = np.zeros(_SLOTS, dtype=np.bool_)  # [slot]
        self._kept: dict[int, Row] = {}  # by slot
        self._read: Callable[[int], Row] = self._kept.__getitem__  # returns a row that is not kept

    def load(self, rows: Mapping[str, Iterable[tuple[int, Row]]]) -> None:
        """Take the present rows of the table."""
        stored = rows[self._table]
        if isinstance(stored, StoredRows):  # which are read when the first subscription comes
            self._read = stored.row
            self._arrived = len(stored.slots)
            self._make_room(int(stored.slots.max(initial=-1)) + 1)
            self._arrivals[stored.slots] = np.arange(self._arrived)
            return
        for slot, row in stored:
            self._arrive(slot)
            self.keep(slot, row)

    def apply_change(self, change: RowChange) -> tuple[MemberChange, ...]:
        """Apply a change of a row, and return it as a change of a member; none if it is another table's."""
        if change.table != self._table:
            return ()
        slot, new = change.slot, change.new
        if slot >= len(self._arrivals) or self._arrivals[slot] < 0:
            self._arrive(slot)
        row_key, old = (self._arrivals.item(slot),), self._kept.get(slot)
        if new is None:
            self.drop(slot)
            self._arrivals[slot] = -1
        else:
            self.keep(slot, new)
        return (MemberChange(row_key, old, new),)

    def apply_batch(self, changes: BatchChanges) -> Bools:
        """Take the arrivals of a batch; tell of which of its changes the row before was kept."""
        slots = changes.slots
        self._read = changes.row
        if len(slots) and (top := int(slots.max())) >= len(self._arrivals):
            self._make_room(top + 1)
        fresh = slots[(changes.previous < 0) & (self._arrivals[slots] < 0)]
        self._arrivals[fresh] = np.arange(self._arrived, self._arrived + len(fresh))
        self._arrived += len(fresh)
        return (changes.previous < 0) & self._is_kept[slots]

    def row_key(self, slot: int) -> RowKey:
        """Return the key of the row in a slot."""
        return (self._arrivals.item(slot),)

    def kept(self, slot: int) -> Row:
        """Return the row of a slot, which is kept."""
        return self._kept[slot]

    def keep(self, slot: int, row: Row) -> None:
        """Store the row of a slot, in place of the one before."""
        self._kept[slot] = row
        self._is_kept[slot] = True

    def drop(self, slot: int) -> None:
        """Store the row of a slot no longer."""
        self._kept.pop(slot, None)
        self._is_kept[slot] = False

    def present(self) -> Iterator[tuple[RowKey, Row]]:
        """Return all rows, which are kept from now on."""
        slots = np.flatnonzero(self._arrivals >= 0)
        for slot in slots[np.argsort(self._arrivals[slots])].tolist():
            if not self._is_kept[slot]:
                self.keep(slot, self._read(slot))
            yield self.row_key(slot), self._kept[slot]

    def _arrive(self, slot: int) -> None:
        if slot >= len(self._arrivals):
            self._make_room(slot + 1)
        self._arrivals[slot] = self._arrived
        self._arrived += 1

    def _make_room(self, slots: int) -> None:
        more = roomier(len(self._arrivals), slots) - len(self._arrivals)
        self._arrivals = np.concatenate([self._arrivals, np.full(more, -1, dtype=np.int64)])
        self._is_kept = np.concatenate([self._is_kept, np.zeros(more, dtype=np.bool_)])

    @property
    def nbytes(self) -> int:
        """Return the bytes of the arrivals, and of the references to rows."""
        return self._arrivals.nbytes + self._is_kept.nbytes + sys.getsizeof(self._kept)


class Pairs:
    """The pairs of rows, in the order of the left rows, then of the right.

    A table may be joined with itself: each of its rows is then a left one and a right one, and a pair with itself
    is one pair.
    """

    def __init__(self, tables: tuple[str, str], equal: tuple[tuple[str, str], ...]) -> None:
        self._left = _Side(tables[0], LEFT, tuple(left for left, _ in equal))
        self._right = _Side(tables[1], RIGHT, tuple(right for _, right in equal))

    def load(self, rows: Mapping[str, Iterable[tuple[int, Row]]]) -> None:
        """Take the present rows of both tables."""
        for side in (self._left, self._right):
            for slot, row in rows[side.table]:
                side.put(slot, row)

    def apply_change(self, change: RowChange) -> list[MemberChange]:
        """Apply a change of a row, and return the changes of its pairs, in the pairs' order."""
        old = dict(self._of(change))
        for side in (self._left, self._right):
            if side.table == change.table:
                side.put(change.slot, change.new)
        new = dict(self._of(change))
        steps = [MemberChange(row_key, pair, new.pop(row_key, None)) for row_key, pair in old.items()]
        steps += [MemberChange(row_key, None, pair) for row_key, pair in new.items()]
        # In the order of the rows, and not of the changes that led to them: a restored table has only the former.
        steps.sort(key=_by_key)
        return steps

    def _of(self, change: RowChange) -> Iterator[tuple[RowKey, Row]]:
        """Return the pairs in which a row is now, as a left one or as a right one."""
        if self._left.table == change.table and (one := self._left.rows.get(change.slot)) is not None:
            yield from (_join_rows(one, other) for other in self._right.equal_to(one))
        if self._right.table == change.table and (one := self._right.rows.get(change.slot)) is not None:
            yield from (_join_rows(other, one) for other in self._left.equal_to(one))

    def present(self) -> Iterator[tuple[RowKey, Row]]:
        """Return all pairs."""
        for one in self._left.rows.values():
            for other in self._right.equal_to(one):
                yield _join_rows(one, other)

    @property
    def nbytes(self) -> int:
        """Return the bytes of both sides' rows and indexes."""
        return self._left.nbytes + self._right.nbytes


class _JoinRow(Struct, frozen=True):
    """A row on one side: its arrival number, its attributes as a pair names them, and its join key, None without one."""

    arrival: int
    named: dict[str, Value]
    key: _Key | None


class _Side:
    """The rows of one side by slot, and by join key, in the order of arrival."""

    def __init__(self, table: str, prefix: str, paths: tuple[str, ...]) -> None:
        self.table = table
        self.rows: dict[int, _JoinRow] = {}
        self._prefix = prefix
        self._paths = paths
        self._order = count()
        self._joining: dict[_Key, dict[int, _JoinRow]] = {}

    def put(self, slot: int, row: Row | None) -> None:
        """Insert or replace the row in a slot, or remove it if `row` is None."""
        old = self.rows.pop(slot, None)
        if row is None:
            self._unindex(slot, old)
            return
        named = {self._prefix + path: value for path, value in row.items()}
        new = _JoinRow(next(self._order) if old is None else old.arrival, named, self._key(row))
        if old is not None and old.key != new.key:
            self._unindex(slot, old)
        self.rows[slot] = new
        if new.key is not None:
            self._joining.setdefault(new.key, {})[slot] = new

    def equal_to(self, other: _JoinRow) -> Iterable[_JoinRow]:
        """Return the rows that join a row of the other side."""
        return self._joining.get(other.key, {}).values() if other.key is not None else ()

    def _unindex(self, slot: int, row: _JoinRow | None) -> None:
        """Remove a row from the index by join key, if it is there."""
        if row is not None and row.key is not None:
            joining = self._joining[row.key]
            del joining[slot]
            if not joining:
                del self._joining[row.key]

    def _key(self, row: Row) -> _Key | None:
        """Return the join key of a row; None if the row lacks one of its values."""
        key = []
        for path in self._paths:
            value = row.get(path)
            if (
                value is None or type(value) is Opaque
            ):  # a missing value equals nothing, and so does an opaque one
                return None
            key.append((type(value) is bool, value))
        return tuple(key)

    @property
    def nbytes(self) -> int:
        rows = sum(sys.getsizeof(one) + sys.getsizeof(one.named) for one in self.rows.values())
        joining = sum(sys.getsizeof(key) + sys.getsizeof(slots) for key, slots in self._joining.items())
        return sys.getsizeof(self.rows) + sys.getsizeof(self._joining) + rows + joining


_by_key: Final = attrgetter("row_key")


def _join_rows(left: _JoinRow, right: _JoinRow) -> tuple[RowKey, Row]:
    """Return the pair of two rows, with its key."""
    return (left.arrival, right.arrival), left.named | right.named
