"""The pairs of two tables as they are defined, recomputed from all rows: joins are compared with it before a figure counts."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinSide
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.scenarios.recomputation import AlteredAnswer
from tocsin.matching import IdArray
from tocsin.views.changes import Floats

_Rows: TypeAlias = dict[int, tuple[float, float]]  # key and value by id


class _Pairs(NamedTuple):
    """All pairs of rows with the same key, as columns."""

    r: IdArray
    s: IdArray
    x: Floats
    z: Floats


class PairRecomputation:
    """Both tables, as they are after some changes, and which of their pairs each subscription wants."""

    def __init__(self, queries: JoinQueries) -> None:
        self._queries = queries
        self._tables: dict[JoinSide, _Rows] = {
            table: {
                id: (key, value)
                for id, key, value in zip(
                    rows.id.tolist(), rows.key.tolist(), rows.value.tolist(), strict=True
                )
            }
            for table, rows in ((JoinSide.R, queries.r), (JoinSide.S, queries.s))
        }
        self._pairs = self._paired()

    def change_all(self, changes: JoinChanges) -> None:
        """Make all changes."""
        for place in range(len(changes)):
            self._change(changes, place)
        self._pairs = self._paired()

    def answer(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs that a subscription wants, ascending."""
        asked, pairs = self._queries, self._pairs
        wanted = (
            (asked.lows[number] <= pairs.x)
            & (pairs.x <= asked.highs[number])
            & (asked.z_lows[number] <= pairs.z)
            & (pairs.z <= asked.z_highs[number])
        )
        return tuple(zip(pairs.r[wanted].tolist(), pairs.s[wanted].tolist(), strict=True))

    def follow(self, changes: JoinChanges, numbers: IdArray) -> list[AlteredAnswer]:
        """Make changes one after another, and return which of some subscriptions' answers they alter."""
        answers = {number: self.answer(number) for number in numbers.tolist()}
        found = []
        for place in range(len(changes)):
            self._change(changes, place)
            self._pairs = self._paired()
            for number, before in answers.items():
                if (after := self.answer(number)) != before:
                    found.append(AlteredAnswer(place, number, before, after))
                    answers[number] = after
        return found

    def _change(self, changes: JoinChanges, place: int) -> None:
        rows, id = self._tables[JoinSide(int(changes.table[place]))], int(changes.id[place])
        key, value = float(changes.new_key[place]), float(changes.new_value[place])
        rows.pop(id, None)
        if key == key:  # noqa: PLR0124 - NaN, of a row that goes, differs from itself
            rows[id] = key, value

    def _paired(self) -> _Pairs:
        """Return all rows of R with all of S that have the same key, in the order of their ids."""
        of_key: dict[float, list[tuple[int, float]]] = {}
        for id, (key, value) in sorted(self._tables[JoinSide.S].items()):
            of_key.setdefault(key, []).append((id, value))
        found = [
            (id, other, value, other_value)
            for id, (key, value) in sorted(self._tables[JoinSide.R].items())
            for other, other_value in of_key.get(key, ())
        ]
        numbers, values = [one[:2] for one in found], [one[2:] for one in found]
        r, s = np.array(numbers, dtype=np.int64).reshape(-1, 2).T
        x, z = np.array(values, dtype=np.float64).reshape(-1, 2).T
        return _Pairs(r, s, x, z)
