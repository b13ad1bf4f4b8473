"""Arrays of a content-addressable network."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_PARENT: Final = -1


class Zones(NamedTuple):
    """A partition of the plane of (x1, x2) into rectangles low <= x < high; overlay node z owns zone z.

    Zones at the rim reach to infinity. The splits that made them are a binary tree, its root first: points below `at`
    along `axis` are in the first child; a child is a split's number, or -1 - z for zone z. One zone has no split.
    """

    low1: NDArray[np.float64]  # [zones]
    high1: NDArray[np.float64]
    low2: NDArray[np.float64]
    high2: NDArray[np.float64]
    axis: NDArray[np.int64]  # [zones - 1] 0 for x1, 1 for x2
    at: NDArray[np.float64]  # [zones - 1]
    child: NDArray[np.int64]  # [zones - 1, 2]
    starts: NDArray[np.int64]  # [zones + 1] where the neighbours of each zone begin
    neighbours: NDArray[np.int64]  # zones that share a border of some length, ascending
    diagonal: NDArray[np.int64]  # [k] the zones that hold some (x, x), in the order of x
    diagonal_from: NDArray[np.float64]  # [k] the least such x of each; -inf of the first


class RouteRequests(NamedTuple):
    """Source zones and target points."""

    sources: NDArray[np.int64]
    x1: NDArray[np.float64]
    x2: NDArray[np.float64]


class Rectangles(NamedTuple):
    """outer_l < x1 <= inner_l and inner_r <= x2 < outer_r, as columns; the outer ends may be infinite."""

    outer_l: NDArray[np.float64]
    inner_l: NDArray[np.float64]
    inner_r: NDArray[np.float64]
    outer_r: NDArray[np.float64]


class Routes(NamedTuple):
    """Routes from zone to neighbouring zone, both ends included; route r stands from starts[r] to starts[r + 1]."""

    starts: NDArray[np.int64]  # [routes + 1]
    zones: NDArray[np.int64]


class SpreadTrees(NamedTuple):
    """Per rectangle r, from starts[r] to starts[r + 1], a tree of the zones that meet it.

    The first is the root, the owner of the rectangle's entry corner; each other one comes after its parent.
    """

    starts: NDArray[np.int64]  # [rectangles + 1]
    zones: NDArray[np.int64]
    parents: NDArray[np.int64]  # the parent's zone, NO_PARENT of the root
    depths: NDArray[np.int64]  # 0 of the root
