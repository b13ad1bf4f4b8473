"""`rows`: the rows themselves, or the terms that are selected of them. They are kept by row only."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.language.semantics import selected_values
from tocsin.model.terms import Star
from tocsin.model.values import Value
from tocsin.views.aggregates.base import AggregateStrategies, RowAggregate, RowKey
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import LEFT

_Shown: TypeAlias = Mapping[str, Value | None]


class _ShownRow(Struct, frozen=True, eq=False):
    """A row as subscribers see it. Two are equal if they show the same; `true` is not 1."""

    row: _Shown
    identity: frozenset[tuple[str, bool, Value | None]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ShownRow) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


class _Rows(Struct):
    """The rows of one subscription, in the order of their keys."""

    row_keys: list[RowKey] = []
    shown_rows: list[_ShownRow] = []

    def put(self, row_key: RowKey, row: _ShownRow) -> None:
        at = bisect_left(self.row_keys, row_key)
        self.row_keys.insert(at, row_key)
        self.shown_rows.insert(at, row)

    def take(self, row_key: RowKey) -> _ShownRow:
        at = bisect_left(self.row_keys, row_key)
        del self.row_keys[at]
        return self.shown_rows.pop(at)

    def shown(self) -> tuple[_Shown, ...]:
        return tuple(shown.row for shown in self.shown_rows)


class _Touched(Struct):
    """The rows of one subscription before a change, and those that have left and entered since."""

    old: tuple[_Shown, ...]
    removed: list[_ShownRow] = []
    added: list[_ShownRow] = []


class WholeRows(RowAggregate[_ShownRow, _Rows]):
    """The rows in the order in which they came to their table, pairs by the left row first; equal ones all count."""

    new_state = _Rows

    def read(self, row: Row) -> _ShownRow:
        """Return a row as subscribers see it."""
        shown: _Shown = row
        select = self.compiled.select
        if len(self.compiled.tables) == 2 and (not select or type(select[0].term) is Star):
            shown = {self._named(name): value for name, value in row.items()}
        if select:
            shown = selected_values(select, row, shown)
        return _ShownRow(
            shown, frozenset((name, type(value) is bool, value) for name, value in shown.items())
        )

    def _named(self, name: str) -> str:
        """Return an attribute of a pair as the view names it."""
        prefix, path = name.split(".", 1)
        return f"{self.compiled.aliases[prefix + '.' != LEFT]}.{path}"

    def apply_row(self, row_key: RowKey, value: _ShownRow, numbers: Collection[int], step: int) -> None:
        """Add a row to answers, or remove it from them: each has its own."""
        for number in numbers:
            touched, rows = self._touch(number), self.states[number]
            if step > 0:
                touched.added.append(value)
                rows.put(row_key, value)
            else:
                touched.removed.append(rows.take(row_key))

    def _touch(self, number: int) -> _Touched:
        found: _Touched | None = self.touched.get(number)
        if found is None:
            found = self.touched[number] = _Touched(self.states[number].shown())
        return found

    def log_changes(self, row: int, log: ChangeLog) -> None:
        """Log the sets of rows that changed; a row that left and came back is no difference."""
        for number, touched in self.touched.items():
            removed = _without(touched.removed, touched.added)
            added = _without(touched.added, touched.removed)
            if removed or added:
                log.add(row, number, touched.old, self.states[number].shown(), (removed, added))
        self.touched.clear()

    def answer(self, number: int) -> tuple[_Shown, ...]:
        """Return the rows."""
        return self.states[number].shown()

    @property
    def nbytes(self) -> int:
        """Return the bytes of the lists of rows; subscriptions share the rows themselves."""
        lists = sum(
            sys.getsizeof(one.row_keys) + sys.getsizeof(one.shown_rows) for one in self.states.values()
        )
        distinct = {id(one): one for rows in self.states.values() for one in rows.shown_rows}.values()
        shared = sum(sys.getsizeof(one.row) + sys.getsizeof(one.identity) for one in distinct)
        return sys.getsizeof(self.states) + lists + shared


def _without(rows: Sequence[_ShownRow], others: Sequence[_ShownRow]) -> tuple[_Shown, ...]:
    """Return rows as subscribers see them, less one for each equal one of the others."""
    if not rows or not others:
        return tuple(shown.row for shown in rows)
    left = Counter(others)
    kept = []
    for shown in rows:
        if left[shown]:
            left[shown] -= 1
        else:
            kept.append(shown.row)
    return tuple(kept)


AGGREGATES: Final = {"rows": AggregateStrategies(WholeRows)}
