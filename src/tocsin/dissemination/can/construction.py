"""Construction of a content-addressable network: nodes join one by one, and each takes part of a zone."""

from __future__ import annotations

from enum import StrEnum
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.state import Zones
from tocsin.dissemination.columns import offsets_of
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
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
        sides = (lows[:, 0], highs[:, 0], lows[:, 1], highs[:, 1])
        bounds = Bounds(*map(np.ascontiguousarray, sides))
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


class Splitting(StrEnum):
    """The rules that choose the zone to split for a new node."""

    UNIFORM = "uniform"  # that of a random point, into halves of its space
    SUBSCRIPTIONS = "subscriptions"  # the one with the most subscriptions, into halves of these
    DATABASE = "database"  # the one with the most subscriptions and rows, into halves of the larger share


def build_can(
    nodes: int,
    splitting: Splitting,
    *,
    lows: Floats,
    highs: Floats,
    rows: Floats,
    domain: tuple[float, float],
    seed: int,
) -> Can:
    """Return a network with a zone for each overlay node, assigned in random order.

    A zone is split in the dimension in which it was not split last, or in the other one if the first does not divide its
    load. Where no zone's load can be divided, and always if the splitting is uniform, the zone of a random point is
    split; the point is uniform in the triangle x1 <= x2 of the domain. Zones without x1 <= x2 are never split.
    """
    _check(nodes, lows, highs, rows, domain)
    random = np.random.default_rng([seed, nodes])
    partition, none = Partition(), np.empty(0)
    if splitting == Splitting.UNIFORM:
        loads = _ZoneLoads(partition, none, none, none)
    else:
        loads = _ZoneLoads(partition, lows, highs, rows if splitting == Splitting.DATABASE else none)
    while len(partition) < nodes:
        if not loads.split():
            x1, x2 = sorted(
                domain[0] * (1 - share) + domain[1] * share for share in random.random(2).tolist()
            )
            _halve(partition, partition.owner(x1, x2), domain, nodes)
    return Can(partition.finished(random.permutation(nodes)))


class _ZoneLoads:
    """By zone, the points (low, high) of its subscriptions and the x of its rows, with a heap of zones by load.

    A zone's load is its share of all subscriptions and its share of all rows, added up.
    """

    def __init__(self, partition: Partition, lows: Floats, highs: Floats, rows: Floats) -> None:
        self._partition = partition
        self._points = [(lows, highs)]
        self._rows = [np.sort(rows)]
        self._subscription_share, self._row_share = 1 / max(len(lows), 1), 1 / max(len(rows), 1)
        self._heap: list[tuple[float, int]] = []
        self._push(0)

    def split(self) -> bool:
        """Split the most loaded zone that can be split by load; return whether there was one."""
        while self._heap:
            zone = heappop(self._heap)[1]
            if (cut := self._cut(zone)) is not None:
                self._split(zone, *cut)
                return True
        return False

    def _push(self, zone: int) -> None:
        subscriptions, rows = self._shares(zone)
        if subscriptions + rows > 0:
            heappush(self._heap, (-subscriptions - rows, zone))

    def _shares(self, zone: int) -> tuple[float, float]:
        return len(self._points[zone][0]) * self._subscription_share, len(self._rows[zone]) * self._row_share

    def _cut(self, zone: int) -> tuple[int, float] | None:
        """Return the dimension and the value that halve a zone's subscriptions or rows, whichever weighs more; None if all are at one point."""
        axis = self._partition.next_axis[zone]
        points = self._points[zone]
        # A zone's rows lie on its diagonal, which a split in either dimension divides at the same x.
        tries = [(axis, points[axis]), (1 - axis, points[1 - axis])]
        subscriptions, rows = self._shares(zone)
        tries.insert(0 if rows > subscriptions else 2, (axis, self._rows[zone]))
        return next(((along, at) for along, values in tries if (at := _median(values)) is not None), None)

    def _split(self, zone: int, axis: int, at: float) -> None:
        """Split a zone, and divide its subscriptions and rows between the two halves."""
        new = self._partition.split(zone, axis, at)
        points, rows = self._points[zone], self._rows[zone]
        is_below = points[axis] < at
        row = int(np.searchsorted(rows, at))
        self._points[zone] = (points[0][is_below], points[1][is_below])
        self._rows[zone] = rows[:row]
        self._points.append((points[0][~is_below], points[1][~is_below]))
        self._rows.append(rows[row:])
        self._push(zone)
        self._push(new)


def _median(values: Floats) -> float | None:
    """Return the value with as near to half of the values below it as possible, but at least one; None if all are equal."""
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


def _halve(partition: Partition, zone: int, domain: tuple[float, float], nodes: int) -> None:
    """Split a zone in the middle of its part of the domain; if there is no number between, the largest zone that has one."""
    cut = _middle(partition, zone, domain)
    if cut is None:
        by_size = sorted(range(len(partition)), key=lambda one: -_area(partition, one, domain))
        cuts = ((one, _middle(partition, one, domain)) for one in by_size if partition.is_used(one))
        zone, cut = next(((one, at) for one, at in cuts if at is not None), (zone, None))
    if cut is None:
        raise TocsinError(
            f"the domain from {domain[0]} to {domain[1]} has too few numbers for {nodes:,} zones, it is divided into "
            f"{len(partition):,}; take a wider one, or fewer nodes"
        )
    partition.split(zone, *cut)


def _middle(partition: Partition, zone: int, domain: tuple[float, float]) -> tuple[int, float] | None:
    """Return the dimension and the value that halve a zone's space; None if there are no numbers between its sides."""
    axis = partition.next_axis[zone]
    for along in (axis, 1 - axis):
        low, high = partition.extent(zone, along, domain)
        middle = low / 2 + high / 2
        if low < middle < high:
            return along, middle
    return None


def _area(partition: Partition, zone: int, domain: tuple[float, float]) -> float:
    """Return the size of a zone's part of the domain, whose own size is 1."""
    sides = [partition.extent(zone, axis, domain) for axis in (0, 1)]
    # Half of the smallest float is 0; no zone of so narrow a domain can be split.
    width = domain[1] / 2 - domain[0] / 2 or 1.0
    shares = [max(high / 2 - low / 2, 0.0) / width for low, high in sides]
    return shares[0] * shares[1]


def _check(nodes: int, lows: Floats, highs: Floats, rows: Floats, domain: tuple[float, float]) -> None:
    """Raise `TocsinError` if there is no node, or a domain, range or row is not finite."""
    if nodes < 1:
        raise TocsinError(f"a network of {nodes} nodes has no zones; give it 1 node at least")
    if not (np.isfinite(domain[0]) and np.isfinite(domain[1]) and domain[0] < domain[1]):
        raise TocsinError(
            f"the domain from {domain[0]} to {domain[1]} cannot be divided; give two finite numbers, the smaller first"
        )
    if len(wrong := np.flatnonzero(~(np.isfinite(lows) & np.isfinite(highs) & (lows <= highs)))):
        position = int(wrong[0])
        raise TocsinError(
            f"subscription {position} has the range from {lows[position]} to {highs[position]}; give two finite numbers, "
            "the smaller first"
        )
    if len(wrong := np.flatnonzero(~np.isfinite(rows))):
        x = rows[wrong[0]]
        raise TocsinError(f"row {wrong[0]} has the x {x}; give a finite number, or leave the row out")
