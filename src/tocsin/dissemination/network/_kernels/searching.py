"""Breadth-first searches: how far nodes are, and what the links of the shortest paths carry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.network.state import Adjacency
from tocsin.structures.jit import helper, kernel


class Search(NamedTuple):
    """Where a search writes."""

    distance: NDArray[np.int64]  # [nodes] links from the source; what is reached by no path keeps -1
    queue: NDArray[np.int64]  # [nodes] in the order in which they were reached


class Carried(NamedTuple):
    """What goes between overlay nodes, and where is added up what each link carries of it."""

    messages: NDArray[np.int64]  # [overlay nodes, overlay nodes] from the first to the second
    size: NDArray[np.int64]
    passing: NDArray[np.int64]  # [nodes, 2] scratch: messages and bytes on their way through a node; all 0
    links: NDArray[np.int64]  # [links, 2] messages and bytes


@helper
def search_from(adjacency: Adjacency, source: int, search: Search) -> int:
    """Search from `source`, and return how many nodes were reached. Every link is looked at twice."""
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


@kernel
def measure(adjacency: Adjacency, hosts: NDArray[np.int64], search: Search, hops: NDArray[np.int64]) -> None:
    """Write how many links are between any two hosts."""
    for here in range(hosts.shape[0]):
        search_from(adjacency, hosts[here], search)
        for there in range(hosts.shape[0]):
            hops[here, there] = search.distance[hosts[there]]


@kernel
def carry(adjacency: Adjacency, hosts: NDArray[np.int64], search: Search, carried: Carried) -> None:
    """Add what goes between hosts to each link of its path.

    Of several shortest paths the one is taken that, seen from the receiver, goes to the neighbour with the smallest
    number each time. What goes to the nodes furthest from a source is handed nearer to it, node by node, so that each link of its
    tree is looked at once, whatever the number of receivers.
    """
    for here in range(hosts.shape[0]):
        anything = False
        for there in range(hosts.shape[0]):
            if there != here and (carried.messages[here, there] != 0 or carried.size[here, there] != 0):
                anything = True
                # Several overlay nodes may be on one host.
                carried.passing[hosts[there], 0] += carried.messages[here, there]
                carried.passing[hosts[there], 1] += carried.size[here, there]
        if not anything:
            continue
        reached = search_from(adjacency, hosts[here], search)
        for place in range(reached - 1, 0, -1):
            node = search.queue[place]
            messages, size = carried.passing[node, 0], carried.passing[node, 1]
            if messages == 0 and size == 0:
                continue
            carried.passing[node, 0] = 0
            carried.passing[node, 1] = 0
            i = adjacency.starts[node]
            while search.distance[adjacency.neighbours[i]] != search.distance[node] - 1:
                i += 1
            nearer = adjacency.neighbours[i]
            carried.passing[nearer, 0] += messages
            carried.passing[nearer, 1] += size
            carried.links[adjacency.links[i], 0] += messages
            carried.links[adjacency.links[i], 1] += size
        carried.passing[hosts[here], 0] = 0
        carried.passing[hosts[here], 1] = 0
