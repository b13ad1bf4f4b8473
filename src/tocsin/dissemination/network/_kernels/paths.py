"""Breadth-first searches: distances between hosts, and what the shortest paths between them carry."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.network.state import Adjacency, LinkTraffic, Search
from tocsin.structures.jit import helper, kernel


@helper
def search_from(adjacency: Adjacency, source: int, search: Search) -> int:
    """Search from `source`, and return how many nodes were reached. Every link is visited twice."""
    search.distance[:] = -1
    search.distance[source] = 0
    search.queue[0] = source
    reached = 1
    done = 0
    while done < reached:
        node = search.queue[done]
        done += 1
        for i in range(adjacency.starts[node], adjacency.starts[node + 1]):
            other = adjacency.neighbours[i]
            if search.distance[other] < 0:
                search.distance[other] = search.distance[node] + 1
                search.queue[reached] = other
                reached += 1
    return reached


@helper
def _towards_source(adjacency: Adjacency, search: Search, node: int) -> int:
    """Return the position in the adjacency lists of the link from a reached node to its predecessor.

    Of several shortest paths the one through the smallest neighbour is taken, so every search takes the same.
    """
    i = adjacency.starts[node]
    while search.distance[adjacency.neighbours[i]] != search.distance[node] - 1:
        i += 1
    return i


@kernel
def measure(adjacency: Adjacency, hosts: NDArray[np.int64], search: Search, hops: NDArray[np.int64]) -> None:
    """Write the number of links between any two hosts."""
    for here in range(hosts.shape[0]):
        search_from(adjacency, hosts[here], search)
        for there in range(hosts.shape[0]):
            hops[here, there] = search.distance[hosts[there]]


@kernel
def find_bottlenecks(
    adjacency: Adjacency,
    hosts: NDArray[np.int64],
    search: Search,
    widths: NDArray[np.float64],
    narrowest: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write the smallest link width on the path between any two hosts; inf from a host to itself.

    `narrowest` is scratch, one for each node. A search visits all links once or twice, and there is one per host.
    """
    for here in range(hosts.shape[0]):
        reached = search_from(adjacency, hosts[here], search)
        narrowest[hosts[here]] = np.inf
        for position in range(1, reached):
            node = search.queue[position]
            i = _towards_source(adjacency, search, node)
            narrowest[node] = min(narrowest[adjacency.neighbours[i]], widths[adjacency.links[i]])
        for there in range(hosts.shape[0]):
            out[here, there] = narrowest[hosts[there]]


@kernel
def add_link_loads(
    adjacency: Adjacency, hosts: NDArray[np.int64], search: Search, traffic: LinkTraffic
) -> None:
    """Add the traffic between hosts to each link of its path.

    Traffic to the nodes furthest from a source is handed one link nearer, node by node, so each link of the source's
    tree is visited once, whatever the number of receivers.
    """
    for here in range(hosts.shape[0]):
        is_idle = True
        for there in range(hosts.shape[0]):
            if there != here and (traffic.messages[here, there] != 0 or traffic.size[here, there] != 0):
                is_idle = False
                # Several overlay nodes may run on one host.
                traffic.transit[hosts[there], 0] += traffic.messages[here, there]
                traffic.transit[hosts[there], 1] += traffic.size[here, there]
        if is_idle:
            continue
        reached = search_from(adjacency, hosts[here], search)
        for position in range(reached - 1, 0, -1):
            node = search.queue[position]
            messages, size = traffic.transit[node, 0], traffic.transit[node, 1]
            if messages == 0 and size == 0:
                continue
            traffic.transit[node, 0] = traffic.transit[node, 1] = 0
            i = _towards_source(adjacency, search, node)
            nearer = adjacency.neighbours[i]
            traffic.transit[nearer, 0] += messages
            traffic.transit[nearer, 1] += size
            traffic.links[adjacency.links[i], 0] += messages
            traffic.links[adjacency.links[i], 1] += size
        traffic.transit[hosts[here], 0] = traffic.transit[hosts[here], 1] = 0
