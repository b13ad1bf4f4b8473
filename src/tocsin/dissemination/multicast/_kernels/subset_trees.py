"""Trees of high bandwidth over subsets of children, grown greedily (2.1.2)."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.multicast.state import THE_NODE, Groups, Hierarchy, Rates, Scratch
from tocsin.structures.jit import helper


@helper
def grow_tree(
    tree: Hierarchy, rates: Rates, groups: Groups, node: int, subset: int, scratch: Scratch
) -> None:
    """Write the tree of one subset of a node's children.

    Each step joins the child that can receive at the highest rate: the least of the path's bottleneck, the sender's own
    rate, and the sender's access divided among its receivers. Of equal rates fewer hops decide, then the smaller sender,
    then the smaller receiver. c children cost c ** 3 / 6 comparisons.
    """
    row = groups.first[node] + subset
    first = tree.starts[node]
    scratch.rates[0] = np.inf
    scratch.receivers[0] = 0
    joined = 0
    waiting = subset
    while waiting != 0:
        best_rate, best_hops, best_sender = -1.0, np.int64(0), np.int64(0)
        best_place, best_rank = 0, 0
        for place in range(joined + 1):
            sender = np.int64(node) if place == 0 else tree.children[first + groups.members[row, place - 1]]
            share = min(scratch.rates[place], rates.access[sender] / (scratch.receivers[place] + 1))
            if share < best_rate:
                continue
            for rank in range(tree.starts[node + 1] - first):
                if waiting >> rank & 1 == 0:
                    continue
                receiver = tree.children[first + rank]
                rate = min(share, rates.bottlenecks[sender, receiver])
                hops = rates.hops[sender, receiver]
                # Ranks ascend with nodes, so a sender's smaller receiver comes first.
                if rate > best_rate or (
                    rate == best_rate and (hops < best_hops or (hops == best_hops and sender < best_sender))
                ):
                    best_rate, best_hops, best_sender = rate, hops, sender
                    best_place, best_rank = place, rank
        groups.members[row, joined] = best_rank
        groups.senders[row, joined] = best_place - 1 if best_place > 0 else THE_NODE
        scratch.receivers[best_place] += 1
        joined += 1
        scratch.receivers[joined] = 0
        waiting &= ~(1 << best_rank)
        _update_rates(tree, rates, groups, node, row, joined, scratch)


@helper
def _update_rates(
    tree: Hierarchy, rates: Rates, groups: Groups, node: int, row: int, joined: int, scratch: Scratch
) -> None:
    """Write the rate of each member, now that one sender has another receiver."""
    first = tree.starts[node]
    for i in range(joined):
        place = groups.senders[row, i] + 1
        sender = np.int64(node) if place == 0 else tree.children[first + groups.members[row, place - 1]]
        receiver = tree.children[first + groups.members[row, i]]
        share = min(scratch.rates[place], rates.access[sender] / scratch.receivers[place])
        scratch.rates[i + 1] = min(share, rates.bottlenecks[sender, receiver])
