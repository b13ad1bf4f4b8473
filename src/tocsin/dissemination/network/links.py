"""What each link of the network carries."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tocsin.dissemination.network._kernels.searching import Carried, carry
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.network.paths import new_search
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError


class LinkLoads(Struct, frozen=True):
    """How many messages and bytes crossed each link, in the order of `Topology.ends`, in both directions together."""

    messages: IdArray  # int64[links]
    size: IdArray


def link_loads(overlay: Overlay, messages: IdArray, size: IdArray) -> LinkLoads:
    """Return what links carry if so many messages and bytes go from each overlay node (a row) to each (a column).

    Each goes along one shortest path, always the same between the same two nodes.
    """
    nodes = len(overlay)
    if not messages.shape == size.shape == (nodes, nodes):
        raise TocsinError(
            f"messages {messages.shape} and size {size.shape} between {nodes} overlay nodes: "
            f"both need a row and a column for each"
        )
    topology = overlay.topology
    carried = Carried(
        np.ascontiguousarray(messages, dtype=np.int64),
        np.ascontiguousarray(size, dtype=np.int64),
        np.zeros((topology.nodes, 2), dtype=np.int64),
        np.zeros((len(topology.ends), 2), dtype=np.int64),
    )
    carry(topology.adjacency, overlay.hosts, new_search(topology), carried)
    return LinkLoads(carried.links[:, 0].copy(), carried.links[:, 1].copy())
