"""Messages down the hierarchy, each to those whom it concerns."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.multicast._kernels.subset_trees import grow_tree
from tocsin.dissemination.multicast.state import (
    THE_NODE,
    UNMADE,
    Carried,
    Concerned,
    Groups,
    Hierarchy,
    Rates,
    Scratch,
)
from tocsin.structures.jit import helper, kernel

MESSAGES: Final = 0  # places in `progress`
LINES: Final = 1


@kernel
def carry(
    network: tuple[Hierarchy, Rates, Groups],
    concerned: Concerned,
    scratch: Scratch,
    progress: NDArray[np.int64],
    out: Carried,
) -> bool:
    """Write the hops of messages from where `progress` stands; return whether it came to the last for want of room.

    A message costs the depth of each node that it concerns, and a line for each node that it reaches.
    """
    tree, rates, groups = network
    for m in range(progress[MESSAGES], concerned.starts.shape[0] - 1):
        progress[MESSAGES] = m
        has_room = progress[LINES] + _mark(tree, concerned, m, scratch) <= out.message.shape[0]
        if has_room:
            progress[LINES] = _hand_down(tree, rates, groups, m, progress[LINES], scratch, out)
        _unmark(tree, concerned, m, scratch)
        if not has_room:
            return False
    progress[MESSAGES] = concerned.starts.shape[0] - 1
    return True


@helper
def _mark(tree: Hierarchy, concerned: Concerned, m: int, scratch: Scratch) -> int:
    """Write what is below each node on the way to those concerned; return how many these nodes are, the root apart."""
    reached = np.int64(0)
    for i in range(concerned.starts[m], concerned.starts[m + 1]):
        count = concerned.counts[i]
        if count == 0:
            continue
        node = concerned.nodes[i]
        while node != tree.root:
            reached += scratch.below[node] == 0
            scratch.below[node] += count
            above = tree.parents[node]
            scratch.subsets[above] |= np.int64(1) << tree.ranks[node]
            node = above
    return reached


@helper
def _unmark(tree: Hierarchy, concerned: Concerned, m: int, scratch: Scratch) -> None:
    for i in range(concerned.starts[m], concerned.starts[m + 1]):
        node = concerned.nodes[i]
        # Above a node that has lost its mark, all have.
        while node != tree.root and scratch.below[node] != 0:
            scratch.below[node] = 0
            node = tree.parents[node]
            scratch.subsets[node] = 0


@helper
def _hand_down(
    tree: Hierarchy, rates: Rates, groups: Groups, m: int, lines: int, scratch: Scratch, out: Carried
) -> int:
    """Let every inner node that gets a message hand it to its marked children; return how many lines there are then."""
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
    tree: Hierarchy, groups: Groups, node: int, row: int, lines: int, scratch: Scratch, out: Carried
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
    for i in range(members - 1, 0, -1):  # the first has nobody but the node to get it from
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
