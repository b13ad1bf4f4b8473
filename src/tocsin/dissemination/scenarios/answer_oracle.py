"""The answers of subscriptions by definition, recomputed from all rows: simulations and benchmarks are checked against them.

Unlike `tocsin.views.oracle` it works on arrays and on a sample of the subscriptions, since scenarios are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinSide
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.scenarios.scenario import Prepared
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats, PointChanges

AnswerValue: TypeAlias = "float | tuple[Any, ...]"
"""An answer: a number, NaN for null, or sorted codes of distinct values, or pairs."""


class AlteredAnswer(NamedTuple):
    """A change of one subscription's answer, by the number of the row's change."""

    change: int
    subscription: int
    old: AnswerValue
    new: AnswerValue


def _exact_sum(y: Floats) -> float:
    """Return the answer of `sum`: the float nearest to the exact sum, infinite beyond the floats, NaN of no numbers."""
    if not len(y):
        return math.nan
    try:
        return math.fsum(y)
    except OverflowError:  # perhaps on the way only: 1e308 + 1e308 - 1e308 is a float
        exact = sum(map(Fraction, y.tolist()))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _mean(y: Floats) -> float:
    return _exact_sum(y) / len(y) if len(y) else math.nan


_ANSWERS: Final[Mapping[str, Callable[[Floats], AnswerValue]]] = {
    "min": lambda y: float(y.min()) if len(y) else math.nan,
    "max": lambda y: float(y.max()) if len(y) else math.nan,
    "count": lambda y: float(len(y)),
    "sum": _exact_sum,
    "avg": _mean,
    "distinct": lambda y: tuple(np.unique(y).astype(np.int64).tolist()),
}


class Recomputation:
    """All points after some changes, and the subscriptions to ranges of them."""

    def __init__(self, kind: str, x: Floats, y: Floats, lows: Floats, highs: Floats) -> None:
        self._answer = _ANSWERS[kind]
        self._x, self._y = x.copy(), y.copy()
        self._lows, self._highs = lows, highs

    def change(self, changes: PointChanges, position: int) -> None:
        """Apply one of the changes."""
        old = changes.old_x[position], changes.old_y[position]
        if np.isnan(old[0]):
            self._x, self._y = np.append(self._x, np.nan), np.append(self._y, np.nan)
            row = len(self._x) - 1
        else:
            row = int(np.flatnonzero((self._x == old[0]) & (self._y == old[1]))[0])
        self._x[row], self._y[row] = changes.new_x[position], changes.new_y[position]

    def change_all(self, changes: PointChanges) -> None:
        """Apply all changes at once: add the new points and remove the old ones; equal points count."""
        comes, goes = ~np.isnan(changes.new_x), ~np.isnan(changes.old_x)
        present = ~np.isnan(self._x)
        x = np.concatenate([self._x[present], changes.new_x[comes], changes.old_x[goes]])
        y = np.concatenate([self._y[present], changes.new_y[comes], changes.old_y[goes]])
        signs = np.ones(len(x), dtype=np.int64)
        signs[len(x) - np.count_nonzero(goes) :] = -1
        points, which = np.unique(x + 1j * y, return_inverse=True)
        counts = np.zeros(len(points), dtype=np.int64)
        np.add.at(counts, which, signs)
        if len(gone := points[counts < 0]):
            raise TocsinError(
                f"the changes do not follow from each other: the point ({gone[0].real}, {gone[0].imag}) is removed more often than it was added"
            )
        left = np.repeat(points, counts)
        self._x, self._y = left.real.copy(), left.imag.copy()

    def answer(self, number: int) -> AnswerValue:
        """Return a subscription's answer; both ends of its range are included."""
        return self._answer(self._y[(self._x >= self._lows[number]) & (self._x <= self._highs[number])])

    def apply_changes(self, changes: PointChanges, numbers: IdArray) -> list[AlteredAnswer]:
        """Apply changes one after another, and return how they change some subscriptions' answers."""
        found = []
        lows, highs = self._lows[numbers], self._highs[numbers]
        for position in range(len(changes)):
            concerned = np.zeros(len(numbers), dtype=np.bool_)
            for x in (changes.old_x[position], changes.new_x[position]):
                concerned |= (lows <= x) & (x <= highs)
            before = {number: self.answer(number) for number in numbers[concerned].tolist()}
            self.change(changes, position)
            for number, old in before.items():
                if not is_same(old, new := self.answer(number)):
                    found.append(AlteredAnswer(position, number, old, new))
        return found


def sample_numbers(count: int, sample: int) -> IdArray:
    """Return a sample of the subscriptions' numbers, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(sample, count)).astype(np.int64))


def sampled_changes(changes: AnswerChanges, numbers: IdArray) -> list[AlteredAnswer]:
    """Return the changes of some subscriptions' answers, by the row's change and then by subscription."""
    kept = np.flatnonzero(np.isin(changes.numbers, numbers))
    kept = kept[np.lexsort((changes.numbers[kept], changes.rows[kept]))]
    columns = (changes.rows, changes.numbers, changes.old, changes.new)
    return [AlteredAnswer(*one) for one in zip(*(column[kept].tolist() for column in columns), strict=True)]


def is_same(one: AnswerValue, two: AnswerValue) -> bool:
    """Return whether two answers are equal; null is equal to null."""
    return one == two or (one != one and two != two)  # noqa: PLR0124 - of null, which is NaN


class _Pairs(NamedTuple):
    """All pairs of rows with the same key, as columns."""

    r: IdArray
    s: IdArray
    x: Floats
    z: Floats


class PairRecomputation:
    """Two tables after some changes, and the subscriptions to their pairs."""

    def __init__(self, queries: JoinQueries) -> None:
        self._queries = queries
        self._tables: dict[JoinSide, dict[int, tuple[float, float]]] = {  # key and value by id
            table: dict(
                zip(rows.id.tolist(), zip(rows.key.tolist(), rows.value.tolist(), strict=True), strict=True)
            )
            for table, rows in ((JoinSide.R, queries.r), (JoinSide.S, queries.s))
        }
        self._pairs = self._paired()

    def change_all(self, changes: JoinChanges) -> None:
        """Apply all changes."""
        for position in range(len(changes)):
            self._change(changes, position)
        self._pairs = self._paired()

    def answer(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs in a subscription's ranges, ascending."""
        queries, pairs = self._queries, self._pairs
        inside = (
            (queries.lows[number] <= pairs.x)
            & (pairs.x <= queries.highs[number])
            & (queries.z_lows[number] <= pairs.z)
            & (pairs.z <= queries.z_highs[number])
        )
        return tuple(zip(pairs.r[inside].tolist(), pairs.s[inside].tolist(), strict=True))

    def apply_changes(self, changes: JoinChanges, numbers: IdArray) -> list[AlteredAnswer]:
        """Apply changes one after another, and return how they change some subscriptions' answers."""
        answers = {number: self.answer(number) for number in numbers.tolist()}
        found = []
        for position in range(len(changes)):
            self._change(changes, position)
            self._pairs = self._paired()
            for number, before in answers.items():
                if (after := self.answer(number)) != before:
                    found.append(AlteredAnswer(position, number, before, after))
                    answers[number] = after
        return found

    def _change(self, changes: JoinChanges, position: int) -> None:
        rows, id = self._tables[JoinSide(int(changes.table[position]))], int(changes.id[position])
        key, value = float(changes.new_key[position]), float(changes.new_value[position])
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


def definition_of(prepared: Prepared) -> Recomputation | PairRecomputation:
    """Return the answers of a scenario before its changes."""
    queries = prepared.queries
    if isinstance(queries, JoinQueries):
        return PairRecomputation(queries)
    return Recomputation(queries.kind, queries.x, queries.y, queries.lows, queries.highs)


def first_difference(
    answer: Callable[[int], Any], expected: Mapping[int, AnswerValue]
) -> tuple[int, AnswerValue, AnswerValue] | None:
    """Return the first subscription with an unexpected answer, and the actual and the expected one, with NaN for null."""
    for number, correct in expected.items():
        actual = math.nan if (value := answer(number)) is None else value
        if not is_same(actual, correct):
            return number, actual, correct
    return None
