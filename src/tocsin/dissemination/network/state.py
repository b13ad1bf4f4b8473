"""The arrays of a network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Adjacency(NamedTuple):
    """Who is linked with whom: the neighbours of node n stand from starts[n] to starts[n + 1], ascending."""

    starts: NDArray[np.int64]  # [nodes + 1]
    neighbours: NDArray[np.int64]  # [2 * links]
    links: NDArray[np.int64]  # [2 * links] the link's number in `Topology.ends`
