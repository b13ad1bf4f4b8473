"""Arrays of a network and of the searches in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Adjacency(NamedTuple):
    """Adjacency lists: the neighbours of node n stand from starts[n] to starts[n + 1], ascending."""

    starts: NDArray[np.int64]  # [nodes + 1]
    neighbours: NDArray[np.int64]  # [2 * links]
    links: NDArray[np.int64]  # [2 * links] the link's number in `Topology.ends`


class Search(NamedTuple):
    """The buffers of a breadth-first search."""

    distance: NDArray[np.int64]  # [nodes] links from the source; -1 where no path leads
    queue: NDArray[np.int64]  # [nodes] in the order in which they were reached


class LinkTraffic(NamedTuple):
    """The traffic between overlay nodes, and its sum on each link; pairs are messages and bytes."""

    messages: NDArray[np.int64]  # [overlay nodes, overlay nodes] from the first to the second
    size: NDArray[np.int64]
    transit: NDArray[np.int64]  # [nodes, 2] scratch: the pair on its way through a node; all 0
    links: NDArray[np.int64]  # [links, 2]
