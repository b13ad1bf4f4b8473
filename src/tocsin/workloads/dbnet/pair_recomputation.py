"""The pairs of two tables as they are defined, recomputed from all rows: joins are compared with it before a figure counts."""

from __future__ import annotations

from typing import TypeAlias

from tocsin.dissemination.questions.join_rows import JoinChanges, Table
from tocsin.dissemination.questions.joins import JoinQuestion
from tocsin.matching import IdArray
from tocsin.workloads.dbnet.recomputation import Altered

__all__ = ["PairRecomputation"]

_Rows: TypeAlias = dict[int, tuple[float, float]]  # key and value by id


class PairRecomputation:
    """Both tables, as they are after some changes, and which of their pairs each subscription wants."""

    def __init__(self, question: JoinQuestion) -> None:
        self._question = question
        self._tables: dict[Table, _Rows] = {
            table: {
                id: (key, value)
                for id, key, value in zip(
                    rows.id.tolist(), rows.key.tolist(), rows.value.tolist(), strict=True
                )
            }
            for table, rows in ((Table.R, question.r), (Table.S, question.s))
        }
        self._by_key = self._indexed()

    def change_all(self, changes: JoinChanges) -> None:
        """Make all changes."""
        for place in range(len(changes)):
            self._change(changes, place)
        self._by_key = self._indexed()

    def answer(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs that a subscription wants, ascending."""
        asked = self._question
        low, high = float(asked.lows[number]), float(asked.highs[number])
        z_low, z_high = float(asked.z_lows[number]), float(asked.z_highs[number])
        wanted = (
            (r, s)
            for r, (key, x) in self._tables[Table.R].items()
            if low <= x <= high
            for s, z in self._by_key.get(key, ())
            if z_low <= z <= z_high
        )
        return tuple(sorted(wanted))

    def follow(self, changes: JoinChanges, numbers: IdArray) -> list[Altered]:
        """Make changes one after another, and return which of some subscriptions' answers they alter."""
        answers = {number: self.answer(number) for number in numbers.tolist()}
        found = []
        for place in range(len(changes)):
            self._change(changes, place)
            self._by_key = self._indexed()
            for number, before in answers.items():
                if (after := self.answer(number)) != before:
                    found.append(Altered(place, number, before, after))
                    answers[number] = after
        return found

    def _change(self, changes: JoinChanges, place: int) -> None:
        rows, id = self._tables[Table(int(changes.table[place]))], int(changes.id[place])
        key, value = float(changes.new_key[place]), float(changes.new_value[place])
        rows.pop(id, None)
        if key == key:  # noqa: PLR0124 - NaN, of a row that goes, differs from itself
            rows[id] = key, value

    def _indexed(self) -> dict[float, list[tuple[int, float]]]:
        """Return the rows of S by key."""
        found: dict[float, list[tuple[int, float]]] = {}
        for id, (key, z) in self._tables[Table.S].items():
            found.setdefault(key, []).append((id, z))
        return found
