"""Overfull leaves: members are moved to halves of an interval, or to partitions on attributes (BE-Tree, §4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree._kernels import nodes
from tocsin.matching.be_tree._kernels.clustering import cluster
from tocsin.matching.be_tree._kernels.intervals import field_at
from tocsin.matching.be_tree._kernels.leaves import TARGET, deal, growth, hand_over, settle
from tocsin.matching.be_tree._kernels.ranks import expected_rank, refresh
from tocsin.matching.be_tree.state import Node, NodeInfo, Partition, Setting, State, Top
from tocsin.structures.jit import helper

_LARGE: Final = 8  # a leaf with so many times the usual members is dealt out in one pass
_SHARE: Final = 8  # one in so many members must be new to try again, since each attempt reads all of them


@helper
def relieve_all(state: State) -> bool:
    """Split the leaves in `overfull`, and those that result, until none exceeds its capacity.

    Returns False if memory is missing; `overfull` then holds the leaves that are left.
    """
    while state.tops[Top.OVERFULL] > 0:
        node = state.overfull[state.tops[Top.OVERFULL] - 1]
        if not is_overfull(state, node):
            state.tops[Top.OVERFULL] -= 1
            continue
        if not _has_room(state, node):
            return False
        if not cluster(state, node):
            _partition(state, node)
    return True


@helper
def is_overfull(state: State, node: int) -> bool:
    """Tell whether a leaf exceeds its capacity, or has raised capacity and by now enough members that a partition takes.

    The capacity of a leaf is raised when nothing divides its members. It is tried again when more than the usual number
    and a share of all arrived with unused fields, unless a partition needs several members.
    """
    info = state.info[node]
    usual = np.int64(state.settings[Setting.CAPACITY])
    return info[NodeInfo.MEMBERS] > info[NodeInfo.CAPACITY] or (
        info[NodeInfo.CAPACITY] > usual
        and info[NodeInfo.DIVISIBLE] > max(usual, info[NodeInfo.MEMBERS] // _SHARE)
        and state.settings[Setting.MIN_PARTITION] <= 1.0
    )


@helper
def _has_room(state: State, node: int) -> bool:
    """Tell whether there is capacity to split a leaf in the worst case."""
    tops, row = state.tops, state.nodes[node]
    tops[Top.NEEDED_ROWS] = 2 * row[Node.ROWS] + 8
    tops[Top.NEEDED_DIRECTORY_ROWS] = 2 * row[Node.PARTITIONS] + 4
    has_directory = nodes.has_directory_room(state, tops[Top.NEEDED_DIRECTORY_ROWS])
    return has_directory and nodes.has_room_for(state, 3, 2, tops[Top.NEEDED_ROWS], 4)


@helper
def _partition(state: State, node: int) -> None:
    """Make a partition of a node on the field of best rank, or many for a large leaf, and move members there.

    Without such a field, the leaf's capacity grows by half, so that the time spent on failed attempts stays in
    proportion to its members.
    """
    members = np.int64(state.info[node, NodeInfo.MEMBERS])
    usual = np.int64(state.settings[Setting.CAPACITY])
    field = _best_field(state, node)
    state.info[node, NodeInfo.DIVISIBLE] = 0
    if field < 0:
        nodes.raise_capacity(state, node, members + members // 2)
        return
    state.info[node, NodeInfo.CAPACITY] = usual
    if members > _LARGE * usual:
        _move_to_best(state, node)
    else:
        _move_to(state, node, field)


@helper
def _move_to(state: State, node: int, field: int) -> None:
    """Make a partition on a field, and move the members with a predicate on it there."""
    partition = nodes.new_partition(state, node, field)
    tree = np.int64(state.partitions[partition, Partition.TREE])
    row, rows = state.nodes[node], state.leaves.rows
    at, end = row[Node.LEAF], row[Node.LEAF] + row[Node.ROWS]
    while at < end:
        size = rows[at, 1] + 1
        if rows[at, 0] >= 0:
            for i in range(at + 1, at + size):
                if field_at(state, rows, i) == field:
                    rows[at, 1] = (size - 1) | (np.int64(1) << TARGET)
        at += size
    deal(state, node, tree, np.int64(-1))
    refresh(state, partition)
    nodes.add_overfull(state, tree)


@helper
def _move_to_best(state: State, node: int) -> None:
    """Make a partition on each eligible field that is some member's best, and move the members there.

    One pass over the leaf, since many of its members may have no eligible field. It ends early if memory is missing.
    """
    row, rows, fields = state.nodes[node], state.leaves.rows, state.fields
    at, end = row[Node.LEAF], row[Node.LEAF] + row[Node.ROWS]
    while at < end:
        size = rows[at, 1] + 1
        field = _best_of_member(state, at) if rows[at, 0] >= 0 else np.int64(-1)
        if field >= 0:
            if fields.last[field] < 0:
                has_directory = nodes.has_directory_room(state, nodes.directory_growth(state, node))
                if not has_directory or not nodes.has_room_for(state, 1, 1, 2 * size + 4, 1):
                    break
                partition = nodes.new_partition(state, node, field)
                fields.last[field] = state.partitions[partition, Partition.TREE]
                nodes.add_overfull(state, np.int64(fields.last[field]))
            tree = np.int64(fields.last[field])
            if state.leaves.top[0] + growth(state, tree, size) > rows.shape[0]:
                break
            hand_over(state, node, at, tree)
            refresh(state, np.int64(state.info[tree, NodeInfo.PARTITION]))
        at += size
    settle(state, node)


@helper
def _best_of_member(state: State, at: int) -> int:
    """Return the eligible field of best rank of the conjunction at row `at`, or -1."""
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
def _best_field(state: State, node: int) -> int:
    """Return the field of best rank on which members have predicates and the path to the node has none, or -1.

    Each eligible field then has a `tally` of minus one minus its members, and a `last` of -1.
    """
    row, rows, fields = state.nodes[node], state.leaves.rows, state.fields
    state.tops[Top.STAMP] += 1
    stamp = state.tops[Top.STAMP]
    partition = np.int64(state.info[node, NodeInfo.PARTITION])
    while partition >= 0:
        used = np.int64(state.partitions[partition, Partition.FIELD])
        fields.stamp[used] = stamp
        fields.tally[used] = -1
        partition = np.int64(state.info[state.partitions[partition, Partition.OWNER], NodeInfo.PARTITION])
    at, end = row[Node.LEAF], row[Node.LEAF] + row[Node.ROWS]
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
    at = row[Node.LEAF]
    while at < end:
        size = rows[at, 1] + 1
        if rows[at, 0] >= 0:
            for i in range(at + 1, at + size):
                field = field_at(state, rows, i)
                if field < 0 or fields.tally[field] < max(state.settings[Setting.MIN_PARTITION], 1.0):
                    continue
                members = np.int64(fields.tally[field])
                fields.tally[field], fields.last[field] = -1, -1  # each is ranked once
                if nodes.partition_on(state, node, field) >= 0:
                    continue
                fields.tally[field] = -1 - members
                its = expected_rank(state, field, members)
                if its > rank:
                    best, rank = field, its
        at += size
    return best
