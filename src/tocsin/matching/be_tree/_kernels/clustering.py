"""Clustering: a node's interval is cut in two, and each half takes the members that it encloses (BE-Tree, §4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree._kernels.intervals import interval_on, middle
from tocsin.matching.be_tree._kernels.leaves import TARGET, deal
from tocsin.matching.be_tree._kernels.nodes import add_overfull, new_node
from tocsin.matching.be_tree.state import HIGHEST, LOWEST, Node, NodeInfo, Partition, State
from tocsin.structures.jit import helper

_DEEP: Final = 32  # levels of a partition's tree in which cuts follow the members alone
_WIDE: Final = 1 << 58  # half of a width that cannot be doubled any more


@helper
def cluster(state: State, node: int) -> bool:
    """Cut a node's interval in two, and move the members that a half encloses there; return False if there are none.

    The outermost intervals are unbounded, so that every later value is in one.
    """
    row = state.nodes[node]
    partition = np.int64(state.info[node, NodeInfo.PARTITION])
    if partition < 0 or row[Node.LEFT] >= 0 or row[Node.RIGHT] >= 0:
        return False
    field = np.int64(state.partitions[partition, Partition.FIELD])
    cut, left, right = np.int64(0), np.int64(0), np.int64(0)
    for is_cut in (False, True):
        # In one loop, so that `_survey` is compiled once.
        least, greatest, left, right = _survey(state, node, field, cut, is_cut)
        if not is_cut:
            if least > greatest or (least == greatest and _is_atomic(state, node, least)):
                return False
            cut = _cut_of(state, node, field, least, greatest)
    if left + right == 0:
        return False
    row[Node.SPLIT] = cut
    if left > 0:
        row[Node.LEFT] = new_node(state, node, partition, state.bounds[node, 0], cut)
    if right > 0:
        row[Node.RIGHT] = new_node(state, node, partition, cut + 1, state.bounds[node, 1])
    deal(state, node, row[Node.LEFT], row[Node.RIGHT])
    add_overfull(state, row[Node.LEFT])
    add_overfull(state, row[Node.RIGHT])
    return True


@helper
def _is_atomic(state: State, node: int, value: int) -> bool:
    return state.bounds[node, 0] == value == state.bounds[node, 1]


@helper
def _survey(state: State, node: int, field: int, cut: int, is_cut: bool) -> tuple[int, int, int, int]:
    """Return the least and the greatest bound of members on a field, and how many lie left and right of a cut.

    The least is above the greatest if no member has a bound. With a cut, the members on either side are marked.
    """
    row, rows = state.nodes[node], state.leaves.rows
    least, greatest = np.int64(HIGHEST), np.int64(LOWEST)
    left, right = np.int64(0), np.int64(0)
    at, end = row[Node.LEAF], row[Node.LEAF] + row[Node.ROWS]
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


@helper
def _cut_of(state: State, node: int, field: int, least: int, greatest: int) -> int:
    """Return the last key of the left half of a node whose members have bounds between two keys.

    The cut is in the middle of the bounds. A single bound is isolated by two cuts, in an atomic interval. Members that
    arrive in ascending order would be cut at the same end each time, so deep nodes are cut by the keys alone.
    """
    if _is_deep(state, node):
        return _steady_cut(state, node, least, greatest)
    if least < greatest:
        return middle(field, least, greatest)
    return least if state.bounds[node, 1] > least else least - 1


@helper
def _is_deep(state: State, node: int) -> bool:
    top = np.int64(state.partitions[state.info[node, NodeInfo.PARTITION], Partition.TREE])
    for _ in range(_DEEP):
        if node == top:
            return False
        node = np.int64(state.info[node, NodeInfo.PARENT])
    return node != top


@helper
def _steady_cut(state: State, node: int, least: int, greatest: int) -> int:
    """Return a cut such that a few of them make an interval narrow, wherever its members are.

    An unbounded interval is cut after at least twice the width of the one before, or at its members. A bounded one is cut
    at its roundest key, or around a single value if earlier cuts narrowed it.
    """
    low, high = state.bounds[node, 0], state.bounds[node, 1]
    between = (least >> 1) + (greatest >> 1) + (least & greatest & 1)
    above = np.int64(state.info[node, NodeInfo.PARENT])
    if high == HIGHEST:
        half = (low >> 1) - (state.bounds[above, 0] >> 1)
        if half >= _WIDE or low >= HIGHEST - 16 * half - 4:
            return _roundest(low, high)
        step = 4 * half + 2
        return max((low + step) | (_filled(step) >> 1), between)
    if low == LOWEST:
        half = (state.bounds[above, 1] >> 1) - (high >> 1)
        if half >= _WIDE or high <= LOWEST + 16 * half + 4:
            return _roundest(low, high)
        step = 4 * half + 2
        return min(((high - step) & ~(_filled(step) >> 1)) - 1, between - (least == greatest))
    if least == greatest and (_is_narrowed(state, node) or (least == high and _is_narrowed(state, above))):
        return least if high > least else least - 1
    return _roundest(low, high)


@helper
def _is_narrowed(state: State, node: int) -> bool:
    """Tell whether an interval is at most a quarter as wide as three cuts before."""
    before = node
    for _ in range(3):
        before = np.int64(state.info[before, NodeInfo.PARENT])
    width = (state.bounds[before, 1] >> 1) - (state.bounds[before, 0] >> 1)
    return width >> 2 >= (state.bounds[node, 1] >> 1) - (state.bounds[node, 0] >> 1)


@helper
def _roundest(low: int, high: int) -> int:
    """Return the key before the one with the most trailing zeros, above `low` and up to `high`."""
    differing = low ^ high
    if differing < 0:
        return np.int64(-1)
    return (high & ~(_filled(differing) >> 1)) - 1


@helper
def _filled(bits: int) -> int:
    """Return a positive number with all bits set below its highest."""
    for shift in (1, 2, 4, 8, 16, 32):
        bits |= bits >> shift
    return bits
