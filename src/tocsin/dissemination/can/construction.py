"""How a content-addressable network comes to be: nodes join one after another, and each gets part of a zone."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.loads import Loads
from tocsin.dissemination.can.partition import Partition
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats


class Splitting(StrEnum):
    """Which zone is split for a node that joins."""

    UNIFORM = "uniform"  # that of a random point, into halves of its space
    SUBSCRIPTIONS = "subscriptions"  # the one with the most subscriptions, into halves of these
    DATABASE = "database"  # the one with the most subscriptions and rows, into halves of what it has more of


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
    """Return a network of so many zones, given to the overlay nodes in random order.

    A zone is split in the dimension in which it was not split last; in the other one, if that does not divide what it
    carries. A random point is uniform in the triangle x1 <= x2 of the domain. Where no zone has loads at two places, one is
    split by such a point, as all are if the splitting is uniform. Zones without x1 <= x2 are never split.
    """
    _check(nodes, lows, highs, rows, domain)
    random = np.random.default_rng([seed, nodes])
    partition, none = Partition(), np.empty(0)
    if splitting == Splitting.UNIFORM:
        loads = Loads(partition, none, none, none)
    else:
        loads = Loads(partition, lows, highs, rows if splitting == Splitting.DATABASE else none)
    while len(partition) < nodes:
        if not loads.split():
            x1, x2 = sorted(
                domain[0] * (1 - share) + domain[1] * share for share in random.random(2).tolist()
            )
            _halve(partition, partition.holder(x1, x2), domain, nodes)
    return Can(partition.finished(random.permutation(nodes)))


def _halve(partition: Partition, zone: int, domain: tuple[float, float], nodes: int) -> None:
    """Split a zone in the middle of its part of the domain, or the largest that can be, if this one cannot."""
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
    # Half of the least number that there is is 0, and nothing divides a domain so narrow.
    width = domain[1] / 2 - domain[0] / 2 or 1.0
    shares = [max(high / 2 - low / 2, 0.0) / width for low, high in sides]
    return shares[0] * shares[1]


def _check(nodes: int, lows: Floats, highs: Floats, rows: Floats, domain: tuple[float, float]) -> None:
    if nodes < 1:
        raise TocsinError(f"a network of {nodes} nodes has no zones; give it 1 node at least")
    if not (np.isfinite(domain[0]) and np.isfinite(domain[1]) and domain[0] < domain[1]):
        raise TocsinError(
            f"the domain from {domain[0]} to {domain[1]} cannot be divided; give two finite numbers, the smaller first"
        )
    if len(wrong := np.flatnonzero(~(np.isfinite(lows) & np.isfinite(highs) & (lows <= highs)))):
        place = int(wrong[0])
        raise TocsinError(
            f"subscription {place} has the range from {lows[place]} to {highs[place]}; give two finite numbers, "
            "the smaller first"
        )
    if len(wrong := np.flatnonzero(~np.isfinite(rows))):
        raise TocsinError(
            f"row {wrong[0]} has the x {rows[wrong[0]]}; give a finite number, or leave the row out"
        )
