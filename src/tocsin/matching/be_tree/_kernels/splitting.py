"""What is done when a leaf has too many members: clustering by values, then partitioning by attributes (BE-Tree, 4)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.be_tree._kernels.intervals import field_at, interval_on, middle
from tocsin.matching.be_tree._kernels.leaves import TARGET, deal
from tocsin.matching.be_tree._kernels.nodes import new_node, new_partition, partition_on
from tocsin.matching.be_tree._kernels.ranks import expected_rank, refresh
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
    OWNER,
    PARTITION,
    PARTITIONS,
    RIGHT,
    ROWS,
    SHORT_DIRECTORY,
    SHORT_OF,
    SPLIT,
    STAMP,
    TODO,
    TOP_NODE,
    TREE,
    State,
)
from tocsin.structures.jit import helper

__all__ = ["is_overfull", "relieve_all"]


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
            _partition(state, node)
    return True


@helper
def is_overfull(state: State, node: int) -> bool:
    """Tell whether a leaf has more members than it may.

    Or it is one of those that may have more than usual, because nothing cuts them, and there are as many as usual
    by now that something does cut; unless that takes several.
    """
    about = state.about[node]
    usual = np.int64(state.settings[MOST_MEMBERS])
    return about[MEMBERS] > about[CAPACITY] or (
        about[CAPACITY] > usual and about[HOPEFUL] > usual and state.settings[LEAST_MEMBERS] <= 1.0
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
def _add_todo(state: State, node: int) -> None:
    if node >= 0:
        state.todo[state.tops[TODO]] = node
        state.tops[TODO] += 1


@helper
def _cluster(state: State, node: int) -> bool:
    """Cut a node's interval in two, and move to each half what it encloses; return False if that is of no use.

    The cut is in the middle of the bounds that its members have. Where they have but one, two cuts leave it alone
    in an interval, which is then atomic. The outermost intervals have no end, so that every later value is in one.
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
            if least < greatest:
                cut = middle(field, least, greatest)
            else:
                cut = least if state.bounds[node, 1] > least else least - 1
    if left + right == 0:
        return False
    row[SPLIT] = cut
    if left > 0:
        row[LEFT] = new_node(state, node, partition, state.bounds[node, 0], cut)
    if right > 0:
        row[RIGHT] = new_node(state, node, partition, cut + 1, state.bounds[node, 1])
    deal(state, node, row[LEFT], row[RIGHT])
    _add_todo(state, row[LEFT])
    _add_todo(state, row[RIGHT])
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


@helper
def _partition(state: State, node: int) -> None:
    """Make a partition of a node on the field of best rank, and move there what speaks of it.

    Where there is no such field, the leaf may have more members: as many more that the time to find this out again
    and again stays in proportion to their number.
    """
    members = np.int64(state.about[node, MEMBERS])
    usual = np.int64(state.settings[MOST_MEMBERS])
    field = _best_field(state, node)
    state.about[node, HOPEFUL] = 0
    if field < 0:
        wanted = members + members // 2
        state.about[node, CAPACITY] = -(-wanted // usual) * usual
        return
    partition = new_partition(state, node, field)
    tree = np.int64(state.partitions[partition, TREE])
    row, rows = state.nodes[node], state.leaves.rows
    at, end = row[LEAF], row[LEAF] + row[ROWS]
    while at < end:
        size = rows[at, 1] + 1
        if rows[at, 0] >= 0:
            for i in range(at + 1, at + size):
                if field_at(state, rows, i) == field:
                    rows[at, 1] = (size - 1) | (np.int64(1) << TARGET)
        at += size
    deal(state, node, tree, np.int64(-1))
    refresh(state, partition)
    state.about[node, CAPACITY] = usual
    _add_todo(state, tree)


@helper
def _best_field(state: State, node: int) -> int:
    """Return the field of best rank on which members have predicates and the path to the node has none, or -1."""
    row, rows, fields = state.nodes[node], state.leaves.rows, state.fields
    state.tops[STAMP] += 1
    stamp = state.tops[STAMP]
    partition = np.int64(state.about[node, PARTITION])
    while partition >= 0:
        used = np.int64(state.partitions[partition, FIELD])
        fields.stamp[used] = stamp
        fields.tally[used] = -1
        partition = np.int64(state.about[state.partitions[partition, OWNER], PARTITION])
    at, end = row[LEAF], row[LEAF] + row[ROWS]
    while at < end:
        size = rows[at, 1] + 1
        if rows[at, 0] >= 0:
            for i in range(at + 1, at + size):
                field = field_at(state, rows, i)
                if field < 0:
                    continue
                if fields.stamp[field] != stamp:
                    fields.stamp[field] = stamp
                    fields.tally[field] = 0
                    fields.last[field] = -1
                if fields.tally[field] >= 0 and fields.last[field] != rows[at, 0]:
                    fields.last[field] = rows[at, 0]
                    fields.tally[field] += 1
        at += size
    best, rank = np.int64(-1), -np.inf
    at = row[LEAF]
    while at < end:
        size = rows[at, 1] + 1
        if rows[at, 0] >= 0:
            for i in range(at + 1, at + size):
                field = field_at(state, rows, i)
                if field < 0 or fields.tally[field] < max(state.settings[LEAST_MEMBERS], 1.0):
                    continue
                members = np.int64(fields.tally[field])
                fields.tally[field] = -1  # each is ranked once
                its = expected_rank(state, field, members)
                if its > rank and partition_on(state, node, field) < 0:
                    best, rank = field, its
        at += size
    return best
