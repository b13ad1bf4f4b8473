"""Greedy routing: always to the neighbour that is nearest to the target.

The order of zones is by (the squared distance of the closed zone to the target, the number of dimensions in which the
half-open zone does not hold the target), and then by number. A zone Z that does not hold the target has a neighbour that
is before it. Let p be the point of the closed Z that is nearest to the target t.

- t is beyond Z in one dimension, say to the right, and at Z's height. The neighbour beyond the right edge that holds t's
  height (the uppermost one, if t is at the height of Z's open upper edge) reaches further to the right than p. So it
  is nearer.
- t is beyond Z in both, so p is a corner. Of the two edges that end in p, take either: the neighbour beyond it that touches p
  has points that are nearer to t in the one dimension, and p's own coordinate in the other. So it is nearer.
- t is on an open edge of Z, or on two, at distance 0. If on one, the owner of t lies beyond that edge, holds t in both
  dimensions and shares with Z a border of some length. If on both, t is the upper right corner. The uppermost
  neighbour beyond the right edge holds t in x1, and the distance remains 0. So fewer dimensions are left.

In each case that neighbour's nearest point lies between Z's and t in both dimensions, and it holds t in every dimension
in which Z does. Floats may round a small gain away beside a great distance, or overflow. So if no neighbour is before Z in
rounded numbers, the route takes the first one with this property, which needs no arithmetic to see. Rounding is monotone:
such a step never leads to a later position in the order. So a route never returns, and it ends at the owner of t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import RouteRequests, Zones
from tocsin.structures.jit import helper, kernel


@kernel
def route(
    zones: Zones, requests: RouteRequests, start: int, starts: NDArray[np.int64], found: NDArray[np.int64]
) -> tuple[int, bool]:
    """Write the routes from request `start` on; route r goes from `starts[r]` to `starts[r + 1]`.

    Return how many are done, and whether the next one found no nearer neighbour; else there was no room for it.
    """
    for r in range(start, requests.sources.shape[0]):
        x1, x2 = requests.x1[r], requests.x2[r]
        here, end = requests.sources[r], starts[r]
        distance, missed = _nearness(zones, here, x1, x2)
        while True:
            if end == found.shape[0]:
                return np.int64(r), False
            found[end] = here
            end += 1
            if missed == 0:
                break
            next_zone, best, least = np.int64(-1), distance, missed
            for i in range(zones.starts[here], zones.starts[here + 1]):
                other = zones.neighbours[i]
                far, without = _nearness(zones, other, x1, x2)
                if far < best or (far == best and without < least):
                    next_zone, best, least = other, far, without
            if next_zone < 0:
                next_zone = _neighbour_between(zones, here, x1, x2)
                if next_zone < 0:
                    return np.int64(r), True
                best, least = _nearness(zones, next_zone, x1, x2)
            here, distance, missed = next_zone, best, least
        starts[r + 1] = end
    return requests.sources.shape[0], False


@helper
def _nearness(zones: Zones, zone: int, x1: float, x2: float) -> tuple[float, int]:
    """Return the squared distance of a closed zone to a point, and in how many dimensions the zone does not hold it."""
    low1, high1, low2, high2 = zones.low1[zone], zones.high1[zone], zones.low2[zone], zones.high2[zone]
    off1 = max(low1 - x1, x1 - high1, 0.0)
    off2 = max(low2 - x2, x2 - high2, 0.0)
    missed = np.int64(not low1 <= x1 < high1) + np.int64(not low2 <= x2 < high2)
    return off1 * off1 + off2 * off2, missed


@helper
def _neighbour_between(zones: Zones, here: int, x1: float, x2: float) -> int:
    """Return the first neighbour that is nearer in one respect and further in none, judged without rounding; -1 if none is."""
    near1 = min(max(x1, zones.low1[here]), zones.high1[here])
    near2 = min(max(x2, zones.low2[here]), zones.high2[here])
    missed = _nearness(zones, here, x1, x2)[1]
    for i in range(zones.starts[here], zones.starts[here + 1]):
        other = zones.neighbours[i]
        off1 = min(max(x1, zones.low1[other]), zones.high1[other])
        off2 = min(max(x2, zones.low2[other]), zones.high2[other])
        without = _nearness(zones, other, x1, x2)[1]
        if (
            min(near1, x1) <= off1 <= max(near1, x1)
            and min(near2, x2) <= off2 <= max(near2, x2)
            and without <= missed
            and (off1 != near1 or off2 != near2 or without < missed)
        ):
            return other
    return np.int64(-1)
