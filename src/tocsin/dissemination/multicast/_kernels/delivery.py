"""Messages down the hierarchy, each to its recipients, by trees over subsets of children that are grown greedily (2.1.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination._kernels.gateway_counts import GatewayCounts
from tocsin.dissemination.multicast.state import (
    THE_NODE,
    UNMADE,
    Delivery,
    Groups,
    Hierarchy,
    Progress,
    Rates,
    Scratch,
)
from tocsin.structures.jit import helper, kernel


@kernel
def deliver(
    network: tuple[Hierarchy, Rates, Groups],
    recipients: GatewayCounts,
    scratch: Scratch,
    progress: NDArray[np.int64],
    out: Delivery,
) -> bool:
    """Write the hops of messages from `progress` on; return whether all had room.

    A message costs the depth of each recipient, and a line for each node that it reaches.
    """
    tree, rates, groups = network
    for m in range(progress[Progress.MESSAGES], recipients.starts.shape[0] - 1):
        progress[Progress.MESSAGES] = m
        has_room = progress[Progress.LINES] + _mark(tree, recipients, m, scratch) <= out.message.shape[0]
        if has_room:
            progress[Progress.LINES] = _forward(
                tree, rates, groups, m, progress[Progress.LINES], scratch, out
            )
        _unmark(tree, recipients, m, scratch)
        if not has_room:
            return False
    progress[Progress.MESSAGES] = recipients.starts.shape[0] - 1
    return True


@helper
def _mark(tree: Hierarchy, recipients: GatewayCounts, m: int, scratch: Scratch) -> int:
    """Count the subscriptions below each node on the way to recipients; return the number of such nodes, without the root."""
    reached = np.int64(0)
    for i in range(recipients.starts[m], recipients.starts[m + 1]):
        count = recipients.counts[i]
        if count == 0:
            continue
        node = recipients.nodes[i]
        while node != tree.root:
            reached += scratch.below[node] == 0
            scratch.below[node] += count
            above = tree.parents[node]
            scratch.subsets[above] |= np.int64(1) << tree.ranks[node]
            node = above
    return reached


@helper
def _unmark(tree: Hierarchy, recipients: GatewayCounts, m: int, scratch: Scratch) -> None:
    """Clear the marks that `_mark` left for the recipients of message `m`."""
    for i in range(recipients.starts[m], recipients.starts[m + 1]):
        node = recipients.nodes[i]
        # The ancestors of an unmarked node are unmarked.
        while node != tree.root and scratch.below[node] != 0:
            scratch.below[node] = 0
            node = tree.parents[node]
            scratch.subsets[node] = 0


@helper
def _forward(
    tree: Hierarchy, rates: Rates, groups: Groups, m: int, lines: int, scratch: Scratch, out: Delivery
) -> int:
    """Let every inner node that gets a message forward it to its marked children; return how many lines there are then."""
    done, waiting = 0, 0
    if scratch.subsets[tree.root] != 0:
        scratch.queue[0] = tree.root
        scratch.steps[tree.root] = 0
        waiting = 1
    while done < waiting:
        node = scratch.queue[done]
        done += 1
        begin = lines
        subset = scratch.subsets[node]
        row = groups.first[node] + subset
        if groups.members[row, 0] == UNMADE:
            grow_tree(tree, rates, groups, node, subset, scratch)
        lines = _send(tree, groups, node, row, lines, scratch, out)
        for line in range(begin, lines):
            out.message[line] = m
            child = out.receiver[line]
            if scratch.subsets[child] != 0:
                scratch.steps[child] = out.step[line] + 1
                scratch.queue[waiting] = child
                waiting += 1
    return lines


@helper
def _send(
    tree: Hierarchy, groups: Groups, node: int, row: int, lines: int, scratch: Scratch, out: Delivery
) -> int:
    """Write the hops of one group's tree, and return how many lines there are then."""
    members = 0
    waiting = scratch.subsets[node]
    while waiting != 0:
        waiting &= waiting - 1
        members += 1
    for i in range(members):
        child = tree.children[tree.starts[node] + groups.members[row, i]]
        scratch.through[i] = scratch.below[child]
    for i in range(members - 1, 0, -1):  # the first member receives from the node itself
        if groups.senders[row, i] != THE_NODE:
            scratch.through[groups.senders[row, i]] += scratch.through[i]
    for i in range(members):
        line = lines + i
        sender = groups.senders[row, i]
        out.receiver[line] = tree.children[tree.starts[node] + groups.members[row, i]]
        out.ids[line] = scratch.through[i]
        if sender == THE_NODE:
            out.sender[line] = node
            out.step[line] = scratch.steps[node]
        else:
            out.sender[line] = out.receiver[lines + sender]
            out.step[line] = out.step[lines + sender] + 1
    return lines + members


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
        best_position, best_rank = 0, 0
        for position in range(joined + 1):
            sender = (
                np.int64(node) if position == 0 else tree.children[first + groups.members[row, position - 1]]
            )
            share = min(scratch.rates[position], rates.access[sender] / (scratch.receivers[position] + 1))
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
                    best_position, best_rank = position, rank
        groups.members[row, joined] = best_rank
        groups.senders[row, joined] = best_position - 1 if best_position > 0 else THE_NODE
        scratch.receivers[best_position] += 1
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
        position = groups.senders[row, i] + 1
        sender = np.int64(node) if position == 0 else tree.children[first + groups.members[row, position - 1]]
        receiver = tree.children[first + groups.members[row, i]]
        share = min(scratch.rates[position], rates.access[sender] / scratch.receivers[position])
        scratch.rates[i + 1] = min(share, rates.bottlenecks[sender, receiver])
