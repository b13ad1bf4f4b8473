"""How many of a message's subscriptions live at each gateway."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import kernel


class GatewayCounts(NamedTuple):
    """Per message m, from starts[m] to starts[m + 1]: the gateways in the order of first use, and their counts."""

    starts: NDArray[np.int64]  # [messages + 1]
    nodes: NDArray[np.int64]  # [room for every pair]
    counts: NDArray[np.int64]


@kernel
def count_by_gateway(
    offsets: NDArray[np.int64],
    subscriptions: NDArray[np.int64],
    gateways: NDArray[np.int64],
    line: NDArray[np.int64],
    out: GatewayCounts,
) -> int:
    """Count the subscriptions of each message by gateway, and return the number of lines; `line` is -1 before."""
    total = 0
    for m in range(offsets.shape[0] - 1):
        begin = total
        for i in range(offsets[m], offsets[m + 1]):
            node = gateways[subscriptions[i]]
            # A line number below `begin` is an earlier message's.
            if line[node] < begin:
                line[node] = total
                out.nodes[total] = node
                out.counts[total] = 0
                total += 1
            out.counts[line[node]] += 1
        out.starts[m + 1] = total
    return total
