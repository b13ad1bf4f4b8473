"""What no value cuts is cut by attributes: the partitions of a leaf (BE-Tree, 4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree._kernels.intervals import field_at
from tocsin.matching.be_tree._kernels.leaves import TARGET, deal, growth, hand_over, settle
from tocsin.matching.be_tree._kernels.nodes import directory_growth, new_partition, partition_on
from tocsin.matching.be_tree._kernels.ranks import expected_rank, refresh
from tocsin.matching.be_tree.state import (
    CAPACITY,
    FIELD,
    HOPEFUL,
    LEAF,
    LEAST_MEMBERS,
    MEMBERS,
    MOST_MEMBERS,
    OWNER,
    PARTITION,
    ROWS,
    STAMP,
    TODO,
    TOP_NODE,
    TREE,
    State,
)
from tocsin.structures.jit import helper

_LARGE: Final = 8  # times the usual members: a leaf that is not gone through for each partition


@helper
def add_todo(state: State, node: int) -> None:
    """Take note that a node's leaf may have too many members; -1 is none."""
    if node >= 0:
        state.todo[state.tops[TODO]] = node
        state.tops[TODO] += 1


@helper
def partition_leaf(state: State, node: int) -> None:
    """Make partitions of a node, and move there what speaks of their fields.

    It is one partition, on the field of best rank; for a large leaf it is all that there is room for.
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
    state.about[node, CAPACITY] = usual
    if members > _LARGE * usual:
        _move_to_best(state, node)
    else:
        _move_to(state, node, field)


@helper
def _move_to(state: State, node: int, field: int) -> None:
    """Make a partition on a field, and move there what speaks of it."""
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
    add_todo(state, tree)


@helper
def _move_to_best(state: State, node: int) -> None:
    """Make a partition on each field that would do and that is some member's best, and move the members there.

    All in one pass: the leaf may have many members that nothing cuts. It ends early where there is no more room.
    """
    row, rows, fields = state.nodes[node], state.leaves.rows, state.fields
    at, end = row[LEAF], row[LEAF] + row[ROWS]
    while at < end:
        size = rows[at, 1] + 1
        field = _best_of_member(state, at) if rows[at, 0] >= 0 else np.int64(-1)
        if field >= 0:
            if fields.last[field] < 0:
                if not _has_room_for_partition(state, node, size):
                    break
                partition = new_partition(state, node, field)
                fields.last[field] = state.partitions[partition, TREE]
                add_todo(state, np.int64(fields.last[field]))
            tree = np.int64(fields.last[field])
            if state.leaves.top[0] + growth(state, tree, size) > rows.shape[0]:
                break
            hand_over(state, node, at, tree)
            refresh(state, np.int64(state.about[tree, PARTITION]))
        at += size
    settle(state, node)


@helper
def _best_of_member(state: State, at: int) -> int:
    """Return the field of best rank that would do, of those that the conjunction whose first row is `at` has; or -1."""
    rows, fields = state.leaves.rows, state.fields
    best, rank = np.int64(-1), -np.inf
    for i in range(at + 1, at + 1 + rows[at, 1]):
        field = field_at(state, rows, i)
        if field >= 0 and fields.tally[field] < -1:
            its = expected_rank(state, field, -1 - np.int64(fields.tally[field]))
            if its > rank:
                best, rank = field, its
    return best


@helper
def _has_room_for_partition(state: State, node: int, rows: int) -> bool:
    """Tell whether one more partition of a node can be made, with a member of so many rows."""
    tops = state.tops
    return (
        tops[TOP_NODE] + 1 <= state.nodes.shape[0]
        and state.partition_index.counters[1] + 1 <= state.partition_index.chain.shape[0]
        and state.partition_index.counters[1] + 1 <= state.partitions.shape[0]
        and state.leaves.top[0] + 2 * rows + 4 <= state.leaves.rows.shape[0]
        and state.directories.top[0] + directory_growth(state, node) <= state.directories.rows.shape[0]
        and tops[TODO] + 1 <= state.todo.shape[0]
    )


@helper
def _best_field(state: State, node: int) -> int:
    """Return the field of best rank on which members have predicates and the path to the node has none, or -1.

    Of each field that would do, `tally` is then minus one and minus its members, and `last` is -1.
    """
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
                fields.tally[field], fields.last[field] = -1, -1  # each is ranked once
                if partition_on(state, node, field) >= 0:
                    continue
                fields.tally[field] = -1 - members
                its = expected_rank(state, field, members)
                if its > rank:
                    best, rank = field, its
        at += size
    return best
