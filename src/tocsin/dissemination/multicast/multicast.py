"""Hierarchical multicast from a server to any of the overlay's nodes (database/network interface, 2.1.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination.multicast._kernels.delivery import LINES, carry
from tocsin.dissemination.multicast.coordinates import located
from tocsin.dissemination.multicast.hierarchy import hierarchy_of
from tocsin.dissemination.multicast.state import UNMADE, Carried, Concerned, Groups, Hierarchy, Rates, Scratch
from tocsin.dissemination.network._kernels.paths import find_bottlenecks
from tocsin.dissemination.network.overlay import Overlay, new_search
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.structures.growth import grown
from tocsin.views.changes import Floats

# Of an array for a kernel: without gaps, and writable; for another one it would be compiled once more.
_NEEDS: Final = ("C", "W")
_MOST: Final = 16  # children of a node: it has a row for each of their subsets


class Multicast:
    """A hierarchy over all nodes, and the trees by which an inner node reaches any of its children.

    A tree is made when a message first goes to its subset, and kept. What comes back depends on the seed alone, not
    on what was carried before.
    """

    def __init__(self, overlay: Overlay, server: int, *, fan_out: int = 10, seed: int = 1) -> None:
        if not 1 <= fan_out <= _MOST:
            raise TocsinError(
                f"a fan-out of {fan_out} cannot be kept in trees; ask for one from 1 to {_MOST}"
            )
        if not 0 <= server < len(overlay):
            raise TocsinError(
                f"node {server} cannot be the server; the overlay has the nodes 0 to {len(overlay) - 1}"
            )
        points = located(overlay.hops, seed=seed)
        self.hierarchy = hierarchy_of(points, server, fan_out=fan_out, seed=seed)
        self._rates = random_rates(overlay, seed=seed)
        self._groups = no_groups(self.hierarchy)
        self._scratch = _scratch(len(overlay), fan_out)
        self._room = Carried(*np.empty((5, 1024), dtype=np.int64))

    @property
    def groups(self) -> tuple[int, int]:
        """Return how many subsets of children have a tree by now, and how many there are, the empty ones apart."""
        made = int(np.count_nonzero(self._groups.members[:, 0] != UNMADE))
        inner = int(np.count_nonzero(np.diff(self.hierarchy.starts)))
        return made, len(self._groups.members) - inner

    def carry(self, starts: IdArray, nodes: IdArray, counts: IdArray) -> Carried:
        """Return how messages travel: m concerns counts[i] subscriptions at nodes[i], for i from starts[m] to starts[m + 1].

        An inner node that gets one hands it on to those of its children below which somebody is concerned, by their
        subset's tree. The server's own subscriptions cost nothing.
        """
        concerned = Concerned(*(np.require(one, np.int64, _NEEDS) for one in (starts, nodes, counts)))
        network = (self.hierarchy, self._rates, self._groups)
        progress = np.zeros(2, dtype=np.int64)
        while not carry(network, concerned, self._scratch, progress, self._room):
            self._room = grown(self._room, Carried._fields, 2 * len(self._room.message))
        return Carried(*(column[: progress[LINES]].copy() for column in self._room))


def _scratch(nodes: int, fan_out: int) -> Scratch:
    return Scratch(
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.empty(fan_out, dtype=np.int64),
        np.empty(fan_out + 1, dtype=np.int64),
        np.empty(fan_out + 1, dtype=np.float64),
    )


def random_rates(overlay: Overlay, *, seed: int) -> Rates:
    """Return the rates of a network whose links have random bandwidths, whole numbers from 1 to 10."""
    drawn = np.random.default_rng(seed).integers(1, 10, size=len(overlay.topology.ends), endpoint=True)
    return rates_of(overlay, drawn.astype(np.float64))


def rates_of(overlay: Overlay, widths: Floats) -> Rates:
    """Return the rates between overlay nodes, given the bandwidth of each link; a node's access is all of its links."""
    topology, nodes = overlay.topology, len(overlay)
    bottlenecks = np.empty((nodes, nodes), dtype=np.float64)
    narrowest = np.empty(topology.nodes, dtype=np.float64)
    find_bottlenecks(topology.adjacency, overlay.hosts, new_search(topology), widths, narrowest, bottlenecks)
    access = np.zeros(topology.nodes, dtype=np.float64)
    np.add.at(access, topology.ends, widths[:, None])
    return Rates(bottlenecks, access[overlay.hosts], overlay.hops)


def no_groups(tree: Hierarchy) -> Groups:
    """Return room for the trees of all subsets, none of them made yet; no node has more than _MOST children."""
    children = np.diff(tree.starts)
    fan_out = int(children.max(initial=0))
    rows = np.where(children > 0, 1 << children, 0)
    first = np.cumsum(rows) - rows
    members, senders = (np.full((int(rows.sum()), max(fan_out, 1)), UNMADE, dtype=np.int8) for _ in range(2))
    return Groups(first, members, senders)
