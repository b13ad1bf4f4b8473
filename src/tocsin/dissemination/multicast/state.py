"""Arrays of a hierarchical multicast."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_PARENT: Final = -1
UNMADE: Final = -1  # instead of the first member
THE_NODE: Final = -1  # instead of a sender: the inner node whose group it is


class Hierarchy(NamedTuple):
    """A tree of nodes; the children of node n stand from starts[n] to starts[n + 1], ascending."""

    root: int
    parents: NDArray[np.int64]  # [nodes] NO_PARENT of the root
    depths: NDArray[np.int64]  # [nodes] 0 of the root
    ranks: NDArray[np.int64]  # [nodes] the position among the siblings
    starts: NDArray[np.int64]  # [nodes + 1]
    children: NDArray[np.int64]  # [nodes - 1]


class Rates(NamedTuple):
    """Bandwidths and distances between nodes."""

    bottlenecks: NDArray[np.float64]  # [nodes, nodes] of the path from one to another
    access: NDArray[np.float64]  # [nodes] the bandwidth of a node to all others together
    hops: NDArray[np.int64]  # [nodes, nodes]


class Groups(NamedTuple):
    """For each inner node and each subset of its children, a tree that spans the subset from the node.

    A subset is the sum of 2 ** rank of its children. Its tree is a row: the ranks of its children in the order in which
    they joined, and for each the position in this order of its sender.
    """

    first: NDArray[np.int64]  # [nodes] the row of the empty subset; the rows of a node are consecutive
    members: NDArray[np.int8]  # [rows, fan-out] UNMADE first if the tree was not needed yet
    senders: NDArray[np.int8]  # [rows, fan-out] THE_NODE, or an earlier position


class Delivery(NamedTuple):
    """A line for each hop of each message, in the order of the messages; a node receives before it sends."""

    message: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    ids: NDArray[np.int64]  # subscriptions listed in it: all that are reached through the receiver
    step: NDArray[np.int64]  # 0 from the root


class Progress(IntEnum):
    """Columns of the progress array."""

    MESSAGES = 0
    LINES = 1


class Scratch(NamedTuple):
    """Buffers for one message, or one tree."""

    below: NDArray[np.int64]  # [nodes] subscriptions of the message there and below; 0 between messages
    subsets: NDArray[np.int64]  # [nodes] of the children that lead to a recipient; 0 between messages
    steps: NDArray[np.int64]  # [nodes] at which a node forwards
    queue: NDArray[np.int64]  # [nodes] inner nodes that have to forward
    through: NDArray[np.int64]  # [fan-out] subscriptions that are reached through each member
    receivers: NDArray[np.int64]  # [1 + fan-out] of the node and each member
    rates: NDArray[np.float64]  # [1 + fan-out] at which each of them receives
