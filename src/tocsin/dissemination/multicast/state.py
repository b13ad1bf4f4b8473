"""The arrays of a multicast."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_PARENT: Final = -1
UNMADE: Final = -1  # in the place of the first member
THE_NODE: Final = -1  # in the place of a sender: the inner node whose group it is


class Hierarchy(NamedTuple):
    """A tree of nodes; the children of node n stand from starts[n] to starts[n + 1], ascending."""

    root: int
    parents: NDArray[np.int64]  # [nodes] NO_PARENT of the root
    depths: NDArray[np.int64]  # [nodes] 0 of the root
    ranks: NDArray[np.int64]  # [nodes] the place among the siblings
    starts: NDArray[np.int64]  # [nodes + 1]
    children: NDArray[np.int64]  # [nodes - 1]


class Rates(NamedTuple):
    """How much can go between nodes, and how far it is."""

    bottlenecks: NDArray[np.float64]  # [nodes, nodes] of the path from one to another
    access: NDArray[np.float64]  # [nodes] what a node can send to all together
    hops: NDArray[np.int64]  # [nodes, nodes]


class Groups(NamedTuple):
    """For each inner node and each subset of its children, a tree that spans them from the node.

    A subset is the sum of 2 ** rank of its children. Its tree is a row: the ranks of its children in the order in which
    they joined, and beside each the place in this order of the one who sends to it.
    """

    first: NDArray[np.int64]  # [nodes] the row of the empty subset; those of a node stand next to each other
    members: NDArray[np.int8]  # [rows, fan-out] UNMADE first if the tree was not needed yet
    senders: NDArray[np.int8]  # [rows, fan-out] THE_NODE, or an earlier place


class Concerned(NamedTuple):
    """Whom messages concern: m, from starts[m] to starts[m + 1], so many subscriptions at nodes."""

    starts: NDArray[np.int64]  # [messages + 1]
    nodes: NDArray[np.int64]
    counts: NDArray[np.int64]


class Carried(NamedTuple):
    """Messages on their way, one line for each hop, in the order of the messages; a node is a receiver before it sends."""

    message: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    ids: NDArray[np.int64]  # subscriptions listed in it: all that are reached through the receiver
    step: NDArray[np.int64]  # 0 from the root


class Scratch(NamedTuple):
    """What one message, or one tree, needs while it is made."""

    below: NDArray[np.int64]  # [nodes] how many subscriptions it concerns there and below; 0 between messages
    subsets: NDArray[
        np.int64
    ]  # [nodes] of the children below which somebody is concerned; 0 between messages
    steps: NDArray[np.int64]  # [nodes] at which a node sends on
    queue: NDArray[np.int64]  # [nodes] inner nodes that have to hand it on
    through: NDArray[np.int64]  # [fan-out] subscriptions that are reached through each member
    receivers: NDArray[np.int64]  # [1 + fan-out] of the node and each member
    rates: NDArray[np.float64]  # [1 + fan-out] at which they get what they hand on
