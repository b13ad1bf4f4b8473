"""What zones carry while they are being split: subscriptions, and rows where they meet the diagonal."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from tocsin.dissemination.can.partition import Partition
from tocsin.views.changes import Floats


class Loads:
    """By zone, the points (low, high) of its subscriptions and the x of its rows, with the most loaded zone at hand.

    A zone's load is its share of all subscriptions and its share of all rows, added up.
    """

    def __init__(self, partition: Partition, lows: Floats, highs: Floats, rows: Floats) -> None:
        self._partition = partition
        self._points = [(lows, highs)]
        self._rows = [np.sort(rows)]
        self._subscription_share, self._row_share = 1 / max(len(lows), 1), 1 / max(len(rows), 1)
        self._waiting: list[tuple[float, int]] = []
        self._wait(0)

    def split(self) -> bool:
        """Split the most loaded zone of those that can be split by load; tell whether there was one."""
        while self._waiting:
            zone = heappop(self._waiting)[1]
            if (cut := self._cut(zone)) is not None:
                self._split(zone, *cut)
                return True
        return False

    def _wait(self, zone: int) -> None:
        subscriptions, rows = self._shares(zone)
        if subscriptions + rows > 0:
            heappush(self._waiting, (-subscriptions - rows, zone))

    def _shares(self, zone: int) -> tuple[float, float]:
        return len(self._points[zone][0]) * self._subscription_share, len(self._rows[zone]) * self._row_share

    def _cut(self, zone: int) -> tuple[int, float] | None:
        """Return the dimension and the value that halve what a zone carries more of; None if all are at one place."""
        axis = self._partition.next_axis[zone]
        points = self._points[zone]
        # A zone's rows are on its diagonal, which a split in either dimension divides at the same x.
        tries = [(axis, points[axis]), (1 - axis, points[1 - axis])]
        subscriptions, rows = self._shares(zone)
        tries.insert(0 if rows > subscriptions else 2, (axis, self._rows[zone]))
        return next(((along, at) for along, values in tries if (at := _median(values)) is not None), None)

    def _split(self, zone: int, axis: int, at: float) -> None:
        new = self._partition.split(zone, axis, at)
        points, rows = self._points[zone], self._rows[zone]
        is_below = points[axis] < at
        row = int(np.searchsorted(rows, at))
        self._points[zone] = (points[0][is_below], points[1][is_below])
        self._rows[zone] = rows[:row]
        self._points.append((points[0][~is_below], points[1][~is_below]))
        self._rows.append(rows[row:])
        self._wait(zone)
        self._wait(new)


def _median(values: Floats) -> float | None:
    """Return the value with as near to half of them below it as can be, but at least one; None if all are equal."""
    count = len(values)
    if count < 2:
        return None
    middle = np.partition(values, count // 2)[count // 2]
    below, up_to = int(np.count_nonzero(values < middle)), int(np.count_nonzero(values <= middle))
    if below == 0 and up_to == count:
        return None
    if up_to == count or (below > 0 and count - 2 * below <= 2 * up_to - count):
        return float(middle)
    return float(values[values > middle].min())
