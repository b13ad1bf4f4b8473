"""The zone of a point, and trees over all zones that meet a rectangle, so that each is reached once (database/network interface, 4).

A rectangle is outer_l < x1 <= inner_l and inner_r <= x2 < outer_r, and is entered at (inner_l, inner_r). The parent of a zone
that does not reach inner_l is the one that holds the point (high1, max(low2, inner_r)): the first point to the right of the
zone, at the lowest height that zone and rectangle share. high1 is not the zone's own, is at most inner_l, and is beyond
outer_l as the zone meets the rectangle. So the parent meets the rectangle as well, and borders on the zone along some
length. The parent of a zone that reaches inner_l and begins above inner_r is the one just below it at inner_l, for which
the same is true. A zone that reaches both is the root. Going to the parent raises low1, or lowers low2 while inner_l is
held: there is no cycle, all paths end at the root, and a zone with one parent is reached once.

Splits are visited with the right part before the left and the lower before the upper. Of a zone and its parent, the
last split that they have in common has them side by side in this order, since in the other dimension they overlap. So
parents come before their children.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import NO_PARENT, Rectangles, SpreadTrees, Zones
from tocsin.structures.jit import helper, kernel


@kernel
def locate(zones: Zones, x1: NDArray[np.float64], x2: NDArray[np.float64], found: NDArray[np.int64]) -> None:
    """Write the zone of each point: one descent of the splits."""
    for i in range(x1.shape[0]):
        found[i] = owner(zones, x1[i], x2[i], False)


@kernel
def count_met(
    zones: Zones, rectangles: Rectangles, stack: NDArray[np.int64], starts: NDArray[np.int64]
) -> None:
    """Write where the zones that meet each rectangle begin; an empty rectangle has none.

    `stack` has room for every zone.
    """
    total = np.int64(0)
    for r in range(rectangles.inner_l.shape[0]):
        starts[r] = total
        left = _push_root(zones, rectangles, r, stack)
        while left > 0:
            node, left = _pop(zones, rectangles, r, stack, left)
            total += np.int64(node < 0)
    starts[rectangles.inner_l.shape[0]] = total


@kernel
def spread(
    zones: Zones,
    rectangles: Rectangles,
    right: NDArray[np.int64],
    stack: NDArray[np.int64],
    depth: NDArray[np.int64],
    found: SpreadTrees,
) -> None:
    """Write the zones that meet each rectangle, their parents and their depths; `found` has room for all counted.

    `right` is, by zone, the owner of (high1, low2): most parents are known from it, and only those of zones at the
    rectangle's lower or right side are searched. `depth` has room for each zone.
    """
    for r in range(rectangles.inner_l.shape[0]):
        end = found.starts[r]
        inner_l, inner_r = rectangles.inner_l[r], rectangles.inner_r[r]
        left = _push_root(zones, rectangles, r, stack)
        while left > 0:
            node, left = _pop(zones, rectangles, r, stack, left)
            if node >= 0:
                continue
            zone = -1 - node
            high1, low2 = zones.high1[zone], zones.low2[zone]
            parent, deep = np.int64(NO_PARENT), np.int64(0)
            if high1 <= inner_l and low2 >= inner_r:
                parent = right[zone]
            elif high1 <= inner_l:
                parent = owner(zones, high1, inner_r, False)
            elif low2 > inner_r:
                parent = owner(zones, inner_l, low2, True)
            if parent != NO_PARENT:
                deep = depth[parent] + 1
            depth[zone] = deep
            found.zones[end], found.parents[end], found.depths[end] = zone, parent, deep
            end += 1


@helper
def _push_root(zones: Zones, rectangles: Rectangles, r: int, stack: NDArray[np.int64]) -> int:
    """Push the root of all splits, unless the rectangle is empty; return the height of the stack."""
    stack[0] = np.int64(0 if zones.axis.shape[0] > 0 else -1)
    is_empty = not (
        rectangles.outer_l[r] < rectangles.inner_l[r] and rectangles.inner_r[r] < rectangles.outer_r[r]
    )
    return np.int64(0 if is_empty else 1)


@helper
def _pop(
    zones: Zones, rectangles: Rectangles, r: int, stack: NDArray[np.int64], left: int
) -> tuple[int, int]:
    """Pop a node, push its children that meet the rectangle, and return it with the height of the stack.

    Every node on the stack meets the rectangle, so only the side that a split makes is compared.
    """
    left -= 1
    node = stack[left]
    if node >= 0:
        at = zones.at[node]
        if zones.axis[node] == 0:
            if at > rectangles.outer_l[r]:
                stack[left] = zones.child[node, 0]
                left += 1
            if at <= rectangles.inner_l[r]:
                stack[left] = zones.child[node, 1]
                left += 1
        else:
            if at < rectangles.outer_r[r]:
                stack[left] = zones.child[node, 1]
                left += 1
            if at > rectangles.inner_r[r]:
                stack[left] = zones.child[node, 0]
                left += 1
    return node, left


@helper
def owner(zones: Zones, x1: float, x2: float, below: bool) -> int:
    """Return the zone that holds a point, or, if `below`, the zone just below it: of (x1, x2 - d) for all small d."""
    node = np.int64(0 if zones.axis.shape[0] > 0 else -1)
    while node >= 0:
        at = zones.at[node]
        x = x1 if zones.axis[node] == 0 else x2
        is_lower = x < at or (below and x == at and zones.axis[node] == 1)
        node = zones.child[node, 0 if is_lower else 1]
    return -1 - node
