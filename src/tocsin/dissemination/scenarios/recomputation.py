"""The answers as they are defined, recomputed from all points: what is told is compared with it before a figure counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats, PointChanges

Found: TypeAlias = "float | tuple[Any, ...]"
"""An answer: a number, NaN for null, or sorted codes of distinct values, or pairs."""


class AlteredAnswer(NamedTuple):
    """An answer that a change alters."""

    change: int
    subscription: int
    old: Found
    new: Found


def _total(y: Floats) -> float:
    """Return the float that is nearest to the exact sum, infinite beyond all of them; null of no numbers."""
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
    return _total(y) / len(y) if len(y) else math.nan


_ANSWERS: Final[Mapping[str, Callable[[Floats], Found]]] = {
    "min": lambda y: float(y.min()) if len(y) else math.nan,
    "max": lambda y: float(y.max()) if len(y) else math.nan,
    "count": lambda y: float(len(y)),
    "sum": _total,
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

    def change_all(self, changes: PointChanges) -> None:
        """Make all changes at once: what comes, less what goes, however often a point is equal to another."""
        comes, goes = ~np.isnan(changes.new_x), ~np.isnan(changes.old_x)
        held = ~np.isnan(self._x)
        x = np.concatenate([self._x[held], changes.new_x[comes], changes.old_x[goes]])
        y = np.concatenate([self._y[held], changes.new_y[comes], changes.old_y[goes]])
        signs = np.ones(len(x), dtype=np.int64)
        signs[len(x) - np.count_nonzero(goes) :] = -1
        points, which = np.unique(x + 1j * y, return_inverse=True)
        counts = np.zeros(len(points), dtype=np.int64)
        np.add.at(counts, which, signs)
        if len(gone := points[counts < 0]):
            raise TocsinError(
                f"the changes are no history: the point ({gone[0].real}, {gone[0].imag}) goes more often than it came"
            )
        left = np.repeat(points, counts)
        self._x, self._y = left.real.copy(), left.imag.copy()

    def answer(self, low: float, high: float) -> Found:
        """Return the answer of a range, both ends included."""
        return self._answer(self._y[(self._x >= low) & (self._x <= high)])

    def follow(
        self, changes: PointChanges, lows: Floats, highs: Floats, numbers: IdArray
    ) -> list[AlteredAnswer]:
        """Make changes one after another, and return which of some subscriptions' answers they alter; each has a range."""
        found = []
        for place in range(len(changes)):
            concerned = np.zeros(len(numbers), dtype=np.bool_)
            for x in (changes.old_x[place], changes.new_x[place]):
                concerned |= (lows <= x) & (x <= highs)
            places = np.flatnonzero(concerned).tolist()
            before = [self.answer(lows[i], highs[i]) for i in places]
            self.change(changes, place)
            for i, old in zip(places, before, strict=True):
                if not is_same(old, new := self.answer(lows[i], highs[i])):
                    found.append(AlteredAnswer(place, int(numbers[i]), old, new))
        return found


def sampled(count: int, sample: int) -> IdArray:
    """Return some subscriptions' numbers, spread over all."""
    return np.unique(np.linspace(0, count - 1, min(sample, count)).astype(np.int64))


def is_same(one: Found, two: Found) -> bool:
    """Tell whether two answers are equal; null is equal to null."""
    return one == two or (one != one and two != two)  # noqa: PLR0124 - of null, which is NaN
