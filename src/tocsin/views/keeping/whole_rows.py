"""The rows themselves, or what is selected of them."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from msgspec import Struct

from tocsin.language.semantics import value_of
from tocsin.model.values import Value
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import LEFT, CompiledRowView
from tocsin.views.keeping.keeper import Keeper, Place, parted

_Shown: TypeAlias = Mapping[str, Value | None]


class _Told(Struct, frozen=True, eq=False):
    """What is told of one row; `same` equals that of another of which the same is told, kinds and all."""

    row: _Shown
    same: frozenset[tuple[str, bool, Value | None]]


class _Rows:
    """The rows of one subscription, by the order of their places."""

    __slots__ = ("places", "told")

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.told: list[_Told] = []

    def put(self, place: Place, told: _Told) -> None:
        at = bisect_left(self.places, place)
        self.places.insert(at, place)
        self.told.insert(at, told)

    def take(self, place: Place) -> _Told:
        at = bisect_left(self.places, place)
        del self.places[at]
        return self.told.pop(at)

    def shown(self) -> tuple[_Shown, ...]:
        return tuple(told.row for told in self.told)


class _Touched:
    """What a change has done to one subscription's rows so far."""

    __slots__ = ("added", "old", "removed")

    def __init__(self, old: tuple[_Shown, ...]) -> None:
        self.old = old
        self.removed: list[_Told] = []
        self.added: list[_Told] = []


class WholeRows(Keeper[_Told]):
    """The rows in the order in which they came to their table, pairs by the left row first; equal ones all count."""

    def __init__(self, plan: CompiledRowView) -> None:
        super().__init__(plan)
        self._rows: dict[int, _Rows] = {}
        self._touched: dict[int, _Touched] = {}

    def read(self, row: Row) -> _Told:
        """Return what is told of a row."""
        shown: _Shown
        if self.plan.select:
            shown = {item.name: value_of(item.term, row) for item in self.plan.select}
        elif len(self.plan.tables) == 1:
            shown = row
        else:
            shown = {self._named(name): value for name, value in row.items()}
        return _Told(shown, frozenset((name, type(value) is bool, value) for name, value in shown.items()))

    def _named(self, name: str) -> str:
        """Return an attribute of a pair as the view names it."""
        place, path = name.split(".", 1)
        return f"{self.plan.aliases[place + '.' != LEFT]}.{path}"

    def begin(self, number: int) -> None:
        """Let a subscription begin, with no row yet."""
        self._rows[number] = _Rows()

    def end(self, number: int) -> None:
        """Let go of a subscription's rows."""
        del self._rows[number]
        self._touched.pop(number, None)

    def follow(
        self,
        place: Place,
        old: _Told | None,
        new: _Told | None,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Take a row out of answers, and the new one into them."""
        same = old is not None and new is not None and old.same == new.same
        gone, come = parted(same, before, after)
        if old is not None:
            for number in gone:
                self._touch(number).removed.append(self._rows[number].take(place))
        if new is not None:
            for number in come:
                self._touch(number).added.append(new)
                self._rows[number].put(place, new)

    def _touch(self, number: int) -> _Touched:
        found = self._touched.get(number)
        if found is None:
            found = self._touched[number] = _Touched(self._rows[number].shown())
        return found

    def settle(self, row: int, log: ChangeLog) -> None:
        """Log the sets of rows that changed; a row that went and came back is no difference."""
        for number, touched in sorted(self._touched.items(), key=itemgetter(0)):
            removed = _without(touched.removed, touched.added)
            added = _without(touched.added, touched.removed)
            if removed or added:
                log.add(row, number, touched.old, self._rows[number].shown(), (removed, added))
        self._touched.clear()

    def answer(self, number: int) -> tuple[_Shown, ...]:
        """Return the rows."""
        return self._rows[number].shown()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the lists of rows; what is told of a row is shared by all that are told of it."""
        lists = sum(sys.getsizeof(one.places) + sys.getsizeof(one.told) for one in self._rows.values())
        told = {id(one): one for rows in self._rows.values() for one in rows.told}.values()
        shared = sum(sys.getsizeof(one.row) + sys.getsizeof(one.same) for one in told)
        return sys.getsizeof(self._rows) + lists + shared


def _without(rows: Sequence[_Told], others: Sequence[_Told]) -> tuple[_Shown, ...]:
    """Return what is told of rows, less one for each of the others that is the same."""
    if not rows or not others:
        return tuple(told.row for told in rows)
    left = Counter(other.same for other in others)
    kept = []
    for told in rows:
        if left[told.same]:
            left[told.same] -= 1
        else:
            kept.append(told.row)
    return tuple(kept)
