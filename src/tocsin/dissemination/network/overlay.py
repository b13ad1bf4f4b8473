"""The nodes that take part: where in the network they are, and how far apart."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.dissemination.network.topology import Topology


class Overlay(Struct, frozen=True):
    """Overlay nodes 0, 1, …; a message from one to another crosses every link of one shortest path between them."""

    topology: Topology
    hosts: NDArray[np.int64]  # [nodes] the node of the network that each one is
    hops: NDArray[np.int64]  # [nodes, nodes] the links between two, 0 from one to itself

    def __len__(self) -> int:
        return len(self.hosts)
