"""The owner of a point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import Zones
from tocsin.structures.jit import helper, kernel


@kernel
def locate(zones: Zones, x1: NDArray[np.float64], x2: NDArray[np.float64], found: NDArray[np.int64]) -> None:
    """Write the zone of each point: one descent of the splits."""
    for i in range(x1.shape[0]):
        found[i] = owner(zones, x1[i], x2[i], False)


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
