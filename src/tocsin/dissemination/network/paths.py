"""Where overlay nodes are in the network, and how far apart along the shortest paths."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.network._kernels.searching import Search, measure
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.network.topology import Topology
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError


def place_overlay(topology: Topology, nodes: int, *, seed: int) -> Overlay:
    """Return an overlay of random nodes of the network, in a random order; others than leaves only where these are too few."""
    if not 1 <= nodes <= topology.nodes:
        raise TocsinError(
            f"an overlay of {nodes} nodes does not fit into a network of {topology.nodes}; ask for 1 to {topology.nodes}"
        )
    random = np.random.default_rng([seed, topology.nodes, nodes])
    shuffled = random.permutation(topology.nodes)
    leaves_first = shuffled[np.argsort(topology.degrees[shuffled] != 1, kind="stable")]
    return overlay_at(topology, random.permutation(leaves_first[:nodes]))


def overlay_at(topology: Topology, hosts: IdArray) -> Overlay:
    """Return the overlay of these nodes of the network, in this order."""
    hosts = np.ascontiguousarray(hosts, dtype=np.int64)
    hops = np.empty((len(hosts), len(hosts)), dtype=np.int64)
    measure(topology.adjacency, hosts, new_search(topology), hops)
    return Overlay(topology, hosts, hops)


def new_search(topology: Topology) -> Search:
    """Return room for a search of the network."""
    return Search(np.empty(topology.nodes, dtype=np.int64), np.empty(topology.nodes, dtype=np.int64))
