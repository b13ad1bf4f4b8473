"""Zones while they are being split: the plane at first, then one more with each split."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.can.neighbours import Bounds, diagonal_of, neighbours_of
from tocsin.dissemination.can.state import Zones
from tocsin.matching import IdArray


class Partition:
    """Zones in the order in which they came to be; a zone that is split keeps the lower part."""

    def __init__(self) -> None:
        self.lows: list[list[float]] = [[-np.inf, -np.inf]]  # by zone, of x1 and of x2
        self.highs: list[list[float]] = [[np.inf, np.inf]]
        self.next_axis: list[int] = [0]
        self._axis: list[int] = []
        self._at: list[float] = []
        self._child: list[list[int]] = []
        self._above: list[tuple[int, int]] = [(-1, 0)]  # by zone, the split it comes of, and which part it is

    def __len__(self) -> int:
        return len(self.lows)

    def split(self, zone: int, axis: int, at: float) -> int:
        """Split a zone at a value within; return the new zone, which has what is not below."""
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

    def holder(self, x1: float, x2: float) -> int:
        """Return the zone that holds a point."""
        node = 0 if self._at else -1
        while node >= 0:
            is_second = (x1, x2)[self._axis[node]] >= self._at[node]
            node = self._child[node][is_second]
        return -1 - node

    def is_used(self, zone: int) -> bool:
        """Tell whether a zone holds some range: a point with x1 <= x2."""
        return self.lows[zone][0] < self.highs[zone][1]

    def extent(self, zone: int, axis: int, domain: tuple[float, float]) -> tuple[float, float]:
        """Return from where to where a zone reaches within a domain; the first is not the smaller one if it does not."""
        return max(self.lows[zone][axis], domain[0]), min(self.highs[zone][axis], domain[1])

    def finished(self, numbers: IdArray) -> Zones:
        """Return all zones, given new numbers."""
        order = np.argsort(numbers)
        lows, highs = np.array(self.lows)[order], np.array(self.highs)[order]
        bounds = Bounds(
            *(np.ascontiguousarray(one) for one in (lows[:, 0], highs[:, 0], lows[:, 1], highs[:, 1]))
        )
        child = np.array(self._child, dtype=np.int64).reshape(-1, 2)
        child = np.where(child < 0, -1 - numbers[-1 - np.minimum(child, -1)], child)
        axis, at = np.array(self._axis, dtype=np.int64), np.array(self._at, dtype=np.float64)
        return Zones(*bounds, axis, at, child, *neighbours_of(bounds), *diagonal_of(bounds))
