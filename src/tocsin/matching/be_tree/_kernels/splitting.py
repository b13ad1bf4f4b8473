"""What is done when a leaf has too many members: clustering by values, then partitioning by attributes (BE-Tree, 4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree._kernels.cuts import cut_of
from tocsin.matching.be_tree._kernels.intervals import interval_on
from tocsin.matching.be_tree._kernels.leaves import TARGET, deal
from tocsin.matching.be_tree._kernels.nodes import new_node
from tocsin.matching.be_tree._kernels.partitioning import add_todo, partition_leaf
from tocsin.matching.be_tree.state import (
    CAPACITY,
    FIELD,
    HIGHEST,
    HOPEFUL,
    LEAF,
    LEAST_MEMBERS,
    LEFT,
    LOWEST,
    MEMBERS,
    MOST_MEMBERS,
    PARTITION,
    PARTITIONS,
    RIGHT,
    ROWS,
    SHORT_DIRECTORY,
    SHORT_OF,
    SPLIT,
    TODO,
    TOP_NODE,
    State,
)
from tocsin.structures.jit import helper

_SHARE: Final = 8  # one in so many members must be new to try again: each time, all are looked at


@helper
def relieve_all(state: State) -> bool:
    """Split the leaves in `todo`, and those that come of it, until none has more members than it may.

    Returns False if there is no room to go on; `todo` then holds what is left.
    """
    while state.tops[TODO] > 0:
        node = state.todo[state.tops[TODO] - 1]
        if not is_overfull(state, node):
            state.tops[TODO] -= 1
            continue
        if not _has_room(state, node):
            return False
        if not _cluster(state, node):
            partition_leaf(state, node)
    return True


@helper
def is_overfull(state: State, node: int) -> bool:
    """Tell whether a leaf has more members than it may.

    Or it is one of those that may have more than usual, because nothing cuts them, and by now there are more than
    usual, and a share of all, that something does cut; unless that takes several.
    """
    about = state.about[node]
    usual = np.int64(state.settings[MOST_MEMBERS])
    return about[MEMBERS] > about[CAPACITY] or (
        about[CAPACITY] > usual
        and about[HOPEFUL] > max(usual, about[MEMBERS] // _SHARE)
        and state.settings[LEAST_MEMBERS] <= 1.0
    )


@helper
def _has_room(state: State, node: int) -> bool:
    """Tell whether a leaf can be split, whatever comes of it."""
    tops, row = state.tops, state.nodes[node]
    tops[SHORT_OF] = 2 * row[ROWS] + 8
    tops[SHORT_DIRECTORY] = 2 * row[PARTITIONS] + 4
    return (
        tops[TOP_NODE] + 3 <= state.nodes.shape[0]
        and state.partition_index.counters[1] + 2 <= state.partition_index.chain.shape[0]
        and state.partition_index.counters[1] + 2 <= state.partitions.shape[0]
        and state.leaves.top[0] + tops[SHORT_OF] <= state.leaves.rows.shape[0]
        and state.directories.top[0] + tops[SHORT_DIRECTORY] <= state.directories.rows.shape[0]
        and tops[TODO] + 4 <= state.todo.shape[0]
    )


@helper
def _cluster(state: State, node: int) -> bool:
    """Cut a node's interval in two, and move to each half what it encloses; return False if that is of no use.

    The outermost intervals have no end, so that every later value is in one.
    """
    row = state.nodes[node]
    partition = np.int64(state.about[node, PARTITION])
    if partition < 0 or row[LEFT] >= 0 or row[RIGHT] >= 0:
        return False
    field = np.int64(state.partitions[partition, FIELD])
    cut, left, right = np.int64(0), np.int64(0), np.int64(0)
    for is_cut in (False, True):
        # In one loop, so that what both need is compiled once.
        least, greatest, left, right = _survey(state, node, field, cut, is_cut)
        if not is_cut:
            if least > greatest or (least == greatest and _is_atomic(state, node, least)):
                return False
            cut = cut_of(state, node, field, least, greatest)
    if left + right == 0:
        return False
    row[SPLIT] = cut
    if left > 0:
        row[LEFT] = new_node(state, node, partition, state.bounds[node, 0], cut)
    if right > 0:
        row[RIGHT] = new_node(state, node, partition, cut + 1, state.bounds[node, 1])
    deal(state, node, row[LEFT], row[RIGHT])
    add_todo(state, row[LEFT])
    add_todo(state, row[RIGHT])
    return True


@helper
def _is_atomic(state: State, node: int, value: int) -> bool:
    return state.bounds[node, 0] == value == state.bounds[node, 1]


@helper
def _survey(state: State, node: int, field: int, cut: int, is_cut: bool) -> tuple[int, int, int, int]:
    """Return the least and the greatest bound that members have on a field, and how many lie left and right of a cut.

    The first is greater than the second if no member has a bound. If there is a cut, the members beside it are marked.
    """
    row, rows = state.nodes[node], state.leaves.rows
    least, greatest = np.int64(HIGHEST), np.int64(LOWEST)
    left, right = np.int64(0), np.int64(0)
    at, end = row[LEAF], row[LEAF] + row[ROWS]
    while at < end:
        size = rows[at, 1] + 1
        if rows[at, 0] >= 0:
            low, high = interval_on(state, at, field)
            if low != LOWEST:
                least, greatest = min(least, low), max(greatest, low)
            if high != HIGHEST:
                least, greatest = min(least, high), max(greatest, high)
            if is_cut and high <= cut:
                rows[at, 1] |= np.int64(1) << TARGET
                left += 1
            elif is_cut and low > cut:
                rows[at, 1] |= np.int64(2) << TARGET
                right += 1
        at += size
    return least, greatest, left, right
