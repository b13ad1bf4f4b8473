"""Overlay nodes on a network: their hosts, the distances between them, and the load of each link."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.dissemination.network._kernels.paths import add_link_loads, measure
from tocsin.dissemination.network.state import LinkTraffic, Search
from tocsin.dissemination.network.topology import Topology
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError


class Overlay(Struct, frozen=True):
    """Overlay nodes 0, 1, …; a message from one to another crosses every link of one shortest path between them."""

    topology: Topology
    hosts: NDArray[np.int64]  # [nodes] the network node that runs each overlay node
    hops: NDArray[np.int64]  # [nodes, nodes] the number of links on the shortest path

    def __len__(self) -> int:
        return len(self.hosts)


class LinkLoads(Struct, frozen=True):
    """The messages and bytes that crossed each link, both directions added, in the order of `Topology.ends`."""

    messages: IdArray  # int64[links]
    size: IdArray


def place_overlay(topology: Topology, nodes: int, *, seed: int) -> Overlay:
    """Return an overlay on random hosts in random order; leaves are taken first."""
    if not 1 <= nodes <= topology.nodes:
        raise TocsinError(
            f"an overlay of {nodes} nodes does not fit into a network of {topology.nodes}; use 1 to {topology.nodes}"
        )
    random = np.random.default_rng([seed, topology.nodes, nodes])
    shuffled = random.permutation(topology.nodes)
    leaves_first = shuffled[np.argsort(topology.degrees[shuffled] != 1, kind="stable")]
    return overlay_at(topology, random.permutation(leaves_first[:nodes]))


def overlay_at(topology: Topology, hosts: IdArray) -> Overlay:
    """Return the overlay on the given hosts, in their order."""
    hosts = np.ascontiguousarray(hosts, dtype=np.int64)
    hops = np.empty((len(hosts), len(hosts)), dtype=np.int64)
    measure(topology.adjacency, hosts, new_search(topology), hops)
    return Overlay(topology, hosts, hops)


def link_loads(overlay: Overlay, messages: IdArray, size: IdArray) -> LinkLoads:
    """Return the load of each link, given the messages and bytes from each overlay node (row) to each (column).

    Traffic between two nodes always takes the same shortest path.
    """
    nodes = len(overlay)
    if not messages.shape == size.shape == (nodes, nodes):
        raise TocsinError(
            f"messages {messages.shape} and size {size.shape} between {nodes} overlay nodes: "
            f"both need a row and a column for each"
        )
    topology = overlay.topology
    traffic = LinkTraffic(
        np.ascontiguousarray(messages, dtype=np.int64),
        np.ascontiguousarray(size, dtype=np.int64),
        np.zeros((topology.nodes, 2), dtype=np.int64),
        np.zeros((len(topology.ends), 2), dtype=np.int64),
    )
    add_link_loads(topology.adjacency, overlay.hosts, new_search(topology), traffic)
    return LinkLoads(traffic.links[:, 0].copy(), traffic.links[:, 1].copy())


def new_search(topology: Topology) -> Search:
    """Return the buffers of a breadth-first search."""
    return Search(*np.empty((2, topology.nodes), dtype=np.int64))
