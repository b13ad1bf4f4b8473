"""How many subscriptions each node has among those that were found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import kernel


class Counted(NamedTuple):
    """Per message m, from starts[m] to starts[m + 1]: the nodes in the order they were found, and how many each has."""

    starts: NDArray[np.int64]  # [messages + 1]
    nodes: NDArray[np.int64]  # as many as can be
    counts: NDArray[np.int64]


@kernel
def count_by_node(
    offsets: NDArray[np.int64],
    places: NDArray[np.int64],
    gateways: NDArray[np.int64],
    line: NDArray[np.int64],
    out: Counted,
) -> int:
    """Count the subscriptions of each message by gateway, and return how many lines that makes; `line` is -1 before."""
    total = 0
    for m in range(offsets.shape[0] - 1):
        begin = total
        for i in range(offsets[m], offsets[m + 1]):
            node = gateways[places[i]]
            # A line of an earlier message is none of this one's.
            if line[node] < begin:
                line[node] = total
                out.nodes[total] = node
                out.counts[total] = 0
                total += 1
            out.counts[line[node]] += 1
        out.starts[m + 1] = total
    return total
