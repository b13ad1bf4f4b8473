"""The narrowest link of every shortest path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.network._kernels.searching import Search, search_from
from tocsin.dissemination.network.state import Adjacency
from tocsin.structures.jit import kernel


@kernel
def narrow(
    adjacency: Adjacency,
    hosts: NDArray[np.int64],
    search: Search,
    widths: NDArray[np.float64],
    passing: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write the least of the links' widths between any two hosts, on the path that messages take; inf of no link.

    `passing` is scratch, one for each node. A search costs all links once or twice, and there is one from each host.
    """
    for here in range(hosts.shape[0]):
        reached = search_from(adjacency, hosts[here], search)
        passing[hosts[here]] = np.inf
        for place in range(1, reached):
            node = search.queue[place]
            i = adjacency.starts[node]
            while search.distance[adjacency.neighbours[i]] != search.distance[node] - 1:
                i += 1
            passing[node] = min(passing[adjacency.neighbours[i]], widths[adjacency.links[i]])
        for there in range(hosts.shape[0]):
            out[here, there] = passing[hosts[there]]
