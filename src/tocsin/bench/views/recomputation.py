"""Answers by recomputing them from all points: what families tell is compared with it before a figure counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.kind import Reformulator, Told
from tocsin.views.range_family import RangeFamily
from tocsin.workloads.dbnet.ranges import Ranges

__all__ = ["Recomputation", "check_answers", "check_family", "check_server", "sampled"]

Found: TypeAlias = "float | tuple[int, ...]"
"""An answer: a number, NaN for null, or the sorted codes of distinct values."""


def _mean(y: Floats) -> float:
    return math.fsum(y) / len(y) if len(y) else math.nan


_ANSWERS: Final[Mapping[str, Callable[[Floats], Found]]] = {
    "min": lambda y: float(y.min()) if len(y) else math.nan,
    "max": lambda y: float(y.max()) if len(y) else math.nan,
    "count": lambda y: float(len(y)),
    "sum": lambda y: math.fsum(y) if len(y) else math.nan,
    "avg": _mean,
    "distinct": lambda y: tuple(np.unique(y).astype(np.int64).tolist()),
}


class Recomputation:
    """All points, as they are after some changes."""

    def __init__(self, kind: str, x: Floats, y: Floats) -> None:
        self._answer = _ANSWERS[kind]
        self._x, self._y = x.copy(), y.copy()

    def change(self, changes: PointChanges, place: int) -> None:
        """Make one of the changes."""
        old = changes.old_x[place], changes.old_y[place]
        if np.isnan(old[0]):
            self._x, self._y = np.append(self._x, np.nan), np.append(self._y, np.nan)
            row = len(self._x) - 1
        else:
            row = int(np.flatnonzero((self._x == old[0]) & (self._y == old[1]))[0])
        self._x[row], self._y[row] = changes.new_x[place], changes.new_y[place]

    def answer(self, low: float, high: float) -> Found:
        """Return the answer of a range, both ends included."""
        return self._answer(self._y[(self._x >= low) & (self._x <= high)])


def sampled(count: int, sample: int) -> IdArray:
    """Return some subscriptions' numbers, spread over all."""
    return np.unique(np.linspace(0, count - 1, min(sample, count)).astype(np.int64))


def check_family(
    family: RangeFamily, now: Recomputation, ranges: Ranges, changes: PointChanges, numbers: IdArray
) -> None:
    """Let a family follow changes, and raise `MatcherError` if some subscriptions are not told just what they should."""
    expected: list[tuple[int, int, Found, Found]] = []
    lows, highs = ranges.lows[numbers], ranges.highs[numbers]
    for place in range(len(changes)):
        concerned = np.zeros(len(numbers), dtype=np.bool_)
        for x in (changes.old_x[place], changes.new_x[place]):
            concerned |= (lows <= x) & (x <= highs)
        places = np.flatnonzero(concerned).tolist()
        before = [now.answer(lows[i], highs[i]) for i in places]
        now.change(changes, place)
        for i, old in zip(places, before, strict=True):
            if not _is_same(old, new := now.answer(lows[i], highs[i])):
                expected.append((place, int(numbers[i]), old, new))
    told = _of(family.change_points(changes), numbers)
    wrong = [i for i, (one, two) in enumerate(zip(expected, told, strict=False)) if not _is_told(one, two)]
    if wrong or len(expected) != len(told):
        first = wrong[0] if wrong else min(len(expected), len(told))
        shown = [
            told[first] if first < len(told) else None,
            expected[first] if first < len(expected) else None,
        ]
        raise MatcherError(
            f"recomputing gives {len(expected):,} changes of {len(numbers):,} answers, {len(told):,} were told;"
            f" the first that differs is {shown[0]}, and should be {shown[1]} (change, subscription, old, new)"
        )


def check_answers(family: RangeFamily, now: Recomputation, ranges: Ranges, numbers: IdArray) -> None:
    """Raise `MatcherError` if some subscriptions' answers are not those that are recomputed."""
    for number in numbers.tolist():
        answer = family.answers.answer(number)
        found: Found = math.nan if answer is None else answer
        if not _is_same(found, meant := now.answer(ranges.lows[number], ranges.highs[number])):
            raise MatcherError(f"subscription {number} was told {found}, and recomputing gives {meant}")


def check_server(server: Reformulator, now: Recomputation, lows: Floats, highs: Floats) -> None:
    """Raise `MatcherError` if what new subscribers of these ranges would begin with is not what is recomputed."""
    present = server.present(lows, highs)["value"]
    for low, high, found in zip(lows.tolist(), highs.tolist(), present.tolist(), strict=True):
        if not _is_same(found, meant := now.answer(low, high)):
            raise MatcherError(
                f"the server answers {found} for [{low}, {high}], and recomputing gives {meant}"
            )


def _of(told: Told, numbers: IdArray) -> list[tuple[int, int, Found, Found]]:
    """Return what some subscriptions are told, by change and then by subscription."""
    kept = np.flatnonzero(np.isin(told.places, numbers))
    kept = kept[np.lexsort((told.places[kept], told.change[kept]))]
    columns = (told.change, told.places, told.old, told.new)
    return list(zip(*(column[kept].tolist() for column in columns), strict=True))


def _is_told(one: tuple[int, int, Found, Found], two: tuple[int, int, Found, Found]) -> bool:
    return one[:2] == two[:2] and _is_same(one[2], two[2]) and _is_same(one[3], two[3])


def _is_same(one: Found, two: Found) -> bool:
    return one == two or (one != one and two != two)  # noqa: PLR0124 - of null, which is NaN
