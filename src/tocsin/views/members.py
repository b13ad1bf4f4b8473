"""What a view's condition looks at: the rows of a table, each a member by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Protocol

from msgspec import Struct

from tocsin.views.changes import Row, RowChange
from tocsin.views.keeping.keeper import Place


class Step(Struct, frozen=True, gc=False):
    """What a change makes of one member: it came if there is no `old`, and went if there is no `new`."""

    place: Place
    old: Row | None
    new: Row | None


class Members(Protocol):
    """The rows of a table, or the pairs of rows of two, each at its place for as long as it stays."""

    def load(self, rows: Mapping[str, Iterable[tuple[int, Row]]]) -> None:
        """Take the present rows of the tables, each with its slot."""

    def follow(self, change: RowChange) -> Iterable[Step]:
        """Make a change of a row, and return what it makes of the members, each once."""

    def present(self) -> Iterator[tuple[Place, Row]]:
        """Return all members, each at its place."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is held, without the rows, which are the table's."""


class Rows:
    """The rows of one table, in the order in which they came."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._order = count()
        self._rows: dict[int, tuple[Place, Row]] = {}  # by slot

    def load(self, rows: Mapping[str, Iterable[tuple[int, Row]]]) -> None:
        """Take the present rows of the table."""
        for slot, row in rows[self._table]:
            self._rows[slot] = ((next(self._order),), row)

    def follow(self, change: RowChange) -> tuple[Step, ...]:
        """Make a change of a row, and return it; none if it is another table's."""
        if change.table != self._table:
            return ()
        place, old = self._rows.pop(change.slot) if change.old is not None else ((next(self._order),), None)
        if change.new is not None:
            self._rows[change.slot] = (place, change.new)
        return (Step(place, old, change.new),)

    def present(self) -> Iterator[tuple[Place, Row]]:
        """Return all rows."""
        return iter(self._rows.values())

    @property
    def nbytes(self) -> int:
        """Return the bytes of the places by slot."""
        each = sum(map(sys.getsizeof, (((0,), None), (0,), 0, 0)))
        return sys.getsizeof(self._rows) + len(self._rows) * each
