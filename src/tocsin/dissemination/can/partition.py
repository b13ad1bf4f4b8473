"""Zones under construction: the whole plane at first, one more with each split; their neighbours and their diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.dissemination.can.state import Zones
from tocsin.dissemination.columns import offsets_of
from tocsin.matching import IdArray
from tocsin.views.changes import Floats


class Bounds(NamedTuple):
    """The sides of zones."""

    low1: Floats
    high1: Floats
    low2: Floats
    high2: Floats


class Partition:
    """Zones in the order of their creation; a zone that is split keeps the lower part."""

    def __init__(self) -> None:
        self.lows: list[list[float]] = [[-np.inf, -np.inf]]  # by zone, of x1 and of x2
        self.highs: list[list[float]] = [[np.inf, np.inf]]
        self.next_axis: list[int] = [0]
        self._axis: list[int] = []
        self._at: list[float] = []
        self._child: list[list[int]] = []
        self._above: list[tuple[int, int]] = [
            (-1, 0)
        ]  # by zone, the split that made it, and which part it is

    def __len__(self) -> int:
        return len(self.lows)

    def split(self, zone: int, axis: int, at: float) -> int:
        """Split a zone at a value within it; return the new zone, the upper part."""
        new, split = len(self), len(self._at)
        above, part = self._above[zone]
        if above >= 0:
            self._child[above][part] = split
        self._axis.append(axis)
        self._at.append(at)
        self._child.append([-1 - zone, -1 - new])
        self._above[zone] = (split, 0)
        self._above.append((split, 1))
        self.lows.append(self.lows[zone].copy())
        self.highs.append(self.highs[zone].copy())
        self.highs[zone][axis] = self.lows[new][axis] = at
        self.next_axis[zone] = 1 - axis
        self.next_axis.append(1 - axis)
        return new

    def owner(self, x1: float, x2: float) -> int:
        """Return the zone that holds a point."""
        node = 0 if self._at else -1
        while node >= 0:
            is_upper = (x1, x2)[self._axis[node]] >= self._at[node]
            node = self._child[node][is_upper]
        return -1 - node

    def is_used(self, zone: int) -> bool:
        """Return whether a zone holds some range: a point with x1 <= x2."""
        return self.lows[zone][0] < self.highs[zone][1]

    def extent(self, zone: int, axis: int, domain: tuple[float, float]) -> tuple[float, float]:
        """Return the part of a zone within a domain; its first end is not the smaller one if there is none."""
        return max(self.lows[zone][axis], domain[0]), min(self.highs[zone][axis], domain[1])

    def finished(self, numbers: IdArray) -> Zones:
        """Return all zones under new numbers."""
        order = np.argsort(numbers)
        lows, highs = np.array(self.lows)[order], np.array(self.highs)[order]
        bounds = Bounds(
            *(np.ascontiguousarray(one) for one in (lows[:, 0], highs[:, 0], lows[:, 1], highs[:, 1]))
        )
        child = np.array(self._child, dtype=np.int64).reshape(-1, 2)
        child = np.where(child < 0, -1 - numbers[-1 - np.minimum(child, -1)], child)
        axis, at = np.array(self._axis, dtype=np.int64), np.array(self._at, dtype=np.float64)
        return Zones(*bounds, axis, at, child, *neighbours_of(bounds), *diagonal_of(bounds))


def neighbours_of(bounds: Bounds) -> tuple[IdArray, IdArray]:
    """Return where each zone's neighbours begin, and the neighbours, ascending: zones with a common border of some length."""
    low1, high1, low2, high2 = bounds
    sides = (_touching(low1, high1, low2, high2), _touching(low2, high2, low1, high1))
    here = np.concatenate([one for pair in sides for one in pair])
    there = np.concatenate([one for pair in sides for one in reversed(pair)])
    order = np.lexsort((there, here))
    return offsets_of(here, len(low1)), there[order]


def diagonal_of(bounds: Bounds) -> tuple[IdArray, Floats]:
    """Return the zones that hold some (x, x), in the order of x, and the least such x of each."""
    begins = np.maximum(bounds.low1, bounds.low2)
    zones = np.flatnonzero(begins < np.minimum(bounds.high1, bounds.high2))
    zones = zones[np.argsort(begins[zones])]
    return zones, begins[zones]


def _touching(low: Floats, high: Floats, start: Floats, end: Floats) -> tuple[IdArray, IdArray]:
    """Return pairs of zones that overlap in one dimension, where the second begins at the end of the first in the other.

    Zones that begin at one value do not overlap each other, so the ones that a zone touches stand side by side in sorted
    order. Bounds are replaced by their ranks, so that two ranks make one integer key.
    """
    count = len(low)
    ranks = np.unique(np.concatenate([low, high, start, end]), return_inverse=True)[1].reshape(4, count)
    most = 4 * count
    by_start = np.lexsort((ranks[2], ranks[0]))
    begins, starts, ends = ranks[0][by_start] * most, ranks[2][by_start], ranks[3][by_start]
    first = np.searchsorted(begins + ends, ranks[1] * most + ranks[2], side="right")
    last = np.searchsorted(begins + starts, ranks[1] * most + ranks[3], side="left")
    zones = np.repeat(np.arange(count), last - first)
    return zones, by_start[_ranges(first, last)]


def _ranges(first: IdArray, last: IdArray) -> IdArray:
    """Return the whole numbers from each first to before each last, one range after another."""
    sizes = last - first
    shifts: IdArray = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    return shifts + np.arange(len(shifts))
