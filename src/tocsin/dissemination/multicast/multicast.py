"""Hierarchical multicast from a server to any of the overlay's nodes (database/network interface, 2.1.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination._kernels.gateway_counts import GatewayCounts
from tocsin.dissemination.columns import for_kernel
from tocsin.dissemination.multicast._kernels.delivery import deliver
from tocsin.dissemination.multicast.coordinates import network_coordinates
from tocsin.dissemination.multicast.hierarchy import build_hierarchy
from tocsin.dissemination.multicast.state import UNMADE, Delivery, Groups, Hierarchy, Progress, Rates, Scratch
from tocsin.dissemination.network._kernels.paths import find_bottlenecks
from tocsin.dissemination.network.overlay import Overlay, new_search
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.structures.growth import grown
from tocsin.views.changes import Floats

_MAX_FAN_OUT: Final = 16  # a node has a row for each subset of its children


class Multicast:
    """A hierarchy over all nodes, and the trees by which an inner node reaches any of its children.

    The tree of a subset is made at the first message to it, and kept. Trees depend on the seed only, not on earlier
    messages.
    """

    def __init__(self, overlay: Overlay, server: int, *, fan_out: int = 10, seed: int = 1) -> None:
        if not 1 <= fan_out <= _MAX_FAN_OUT:
            raise TocsinError(f"a fan-out of {fan_out} cannot be kept in trees; use 1 to {_MAX_FAN_OUT}")
        if not 0 <= server < len(overlay):
            raise TocsinError(
                f"node {server} cannot be the server; the overlay has the nodes 0 to {len(overlay) - 1}"
            )
        points = network_coordinates(overlay.hops, seed=seed)
        self.hierarchy = build_hierarchy(points, server, fan_out=fan_out, seed=seed)
        self._rates = random_rates(overlay, seed=seed)
        self._groups = _new_groups(self.hierarchy)
        self._scratch = _new_scratch(len(overlay), fan_out)
        self._buffer = Delivery(*np.empty((5, 1024), dtype=np.int64))

    @property
    def groups(self) -> tuple[int, int]:
        """Return how many subsets of children have a tree by now, and how many there are, without the empty ones."""
        made = int(np.count_nonzero(self._groups.members[:, 0] != UNMADE))
        inner = int(np.count_nonzero(np.diff(self.hierarchy.starts)))
        return made, len(self._groups.members) - inner

    def deliver(self, starts: IdArray, nodes: IdArray, counts: IdArray) -> Delivery:
        """Return the hops of messages: m is for counts[i] subscriptions at nodes[i], for i from starts[m] to starts[m + 1].

        An inner node forwards a message, by the tree of their subset, to its children that are or lead to recipients.
        The server's own subscriptions cost nothing.
        """
        recipients = GatewayCounts(*(for_kernel(one, np.int64) for one in (starts, nodes, counts)))
        network = (self.hierarchy, self._rates, self._groups)
        progress = np.zeros(len(Progress), dtype=np.int64)
        while not deliver(network, recipients, self._scratch, progress, self._buffer):
            self._buffer = grown(self._buffer, Delivery._fields, 2 * len(self._buffer.message))
        return Delivery(*(column[: progress[Progress.LINES]].copy() for column in self._buffer))


def _new_scratch(nodes: int, fan_out: int) -> Scratch:
    by_node = np.zeros((4, nodes), dtype=np.int64)
    through, receivers = np.empty(fan_out, dtype=np.int64), np.empty(fan_out + 1, dtype=np.int64)
    return Scratch._make([*by_node, through, receivers, np.empty(fan_out + 1)])


def random_rates(overlay: Overlay, *, seed: int) -> Rates:
    """Return the rates of a network whose links have random bandwidths, integers from 1 to 10."""
    drawn = np.random.default_rng(seed).integers(1, 10, size=len(overlay.topology.ends), endpoint=True)
    return rates_of(overlay, drawn.astype(np.float64))


def rates_of(overlay: Overlay, widths: Floats) -> Rates:
    """Return the rates between overlay nodes, given the bandwidth of each link; a node's access is the sum of its links."""
    topology, nodes = overlay.topology, len(overlay)
    bottlenecks = np.empty((nodes, nodes), dtype=np.float64)
    narrowest = np.empty(topology.nodes, dtype=np.float64)
    find_bottlenecks(topology.adjacency, overlay.hosts, new_search(topology), widths, narrowest, bottlenecks)
    access = np.zeros(topology.nodes, dtype=np.float64)
    np.add.at(access, topology.ends, widths[:, None])
    return Rates(bottlenecks, access[overlay.hosts], overlay.hops)


def _new_groups(tree: Hierarchy) -> Groups:
    """Return room for the trees of all subsets, none of them made yet."""
    children = np.diff(tree.starts)
    fan_out = int(children.max(initial=0))
    rows = np.where(children > 0, 1 << children, 0)
    first = np.cumsum(rows) - rows
    members, senders = (np.full((int(rows.sum()), max(fan_out, 1)), UNMADE, dtype=np.int8) for _ in range(2))
    return Groups(first, members, senders)
