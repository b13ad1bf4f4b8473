"""How conjunctions get into the tree, and out of it (BE-Tree, §4)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.be_tree._kernels import nodes
from tocsin.matching.be_tree._kernels.intervals import field_at, interval_at
from tocsin.matching.be_tree._kernels.leaves import append, cut_out, growth
from tocsin.matching.be_tree._kernels.partitioning import is_overfull, relieve_all
from tocsin.matching.be_tree._kernels.ranks import MARGIN, expected_rank, refresh
from tocsin.matching.be_tree.state import ROOT, Figure, Node, NodeInfo, Partition, State, StoredColumn, Top
from tocsin.matching.conjunction_store._kernels.records import count_rows, write_rows
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel


@kernel
def place(state: State, batch: Expressions, start: int) -> int:
    """Insert conjunctions from `start` on; return the number done, fewer than all if capacity is missing.

    The last one may have overfilled a leaf; the next call splits it.
    """
    i = np.int64(start)
    while relieve_all(state) and i < batch.numbers.shape[0]:
        count = _draft(state, batch, i)
        _want(state, count)
        node = _descend(state, count)
        if node < 0:
            return i
        append(state, node, state.draft, count)
        if state.info[node, NodeInfo.PARTITION] >= 0:
            refresh(state, np.int64(state.info[node, NodeInfo.PARTITION]))
        if is_overfull(state, node):
            state.overfull[0] = node
            state.tops[Top.OVERFULL] = 1
        i += 1
    return i


@helper
def _draft(state: State, batch: Expressions, i: int) -> int:
    """Write a conjunction as a leaf stores it; return the number of its rows."""
    count = count_rows(batch, i)
    write_rows(state.draft, np.int64(1), batch, i)
    state.draft[0, 0], state.draft[0, 1] = batch.numbers[i], count
    return count + 1


@helper
def _want(state: State, count: int) -> None:
    """Write the fields of the draft, each once, with the interval that its value must lie in.

    The interval must be the one that `interval_on` finds in a leaf: a conjunction that descends by one interval and is
    moved by another could be lost.
    """
    wants, fields, end = state.wants, state.fields, np.int64(0)
    state.tops[Top.STAMP] += 1
    stamp = state.tops[Top.STAMP]
    for at in range(1, count):
        field = field_at(state, state.draft, at)
        if field < 0:
            continue
        low, high = interval_at(state, state.draft, at)
        known = np.int64(fields.last[field])
        if fields.stamp[field] != stamp:
            fields.stamp[field], fields.last[field] = stamp, end
            wants[end, 0], wants[end, 1], wants[end, 2] = field, low, high
            end += 1
        elif field % FIELDS != Field.TEXT and max(wants[known, 1], low) <= min(wants[known, 2], high):
            wants[known, 1], wants[known, 2] = max(wants[known, 1], low), min(wants[known, 2], high)
    state.tops[Top.WANTS] = end


@helper
def _has_room(state: State, count: int) -> bool:
    tops = state.tops
    tops[Top.NEEDED_ROWS] = 2 * count + 4
    tops[Top.NEEDED_DIRECTORY_ROWS] = 0
    return nodes.has_room_for(state, 3, 2, tops[Top.NEEDED_ROWS], 1)


@helper
def _descend(state: State, count: int) -> int:
    """Return the node that the draft belongs to, with room in its leaf; -1 if capacity is missing.

    Each node's partition of best rank is entered. Where that one has decayed and a new one is expected to be much
    better, the new one is made.
    """
    if not _has_room(state, count):
        return np.int64(-1)
    wants, node, used = state.wants, np.int64(ROOT), np.int64(0)
    while state.nodes[node, Node.PARTITIONS] > 0:
        which, partition = _best_partition(state, node, used)
        if which < 0:
            break
        if state.partitions[partition, Partition.DECAYED] != 0:
            better = _better_field(state, node, used, state.figures[partition, Figure.RANK] + MARGIN)
            if better >= 0:
                state.tops[Top.NEEDED_DIRECTORY_ROWS] = nodes.directory_growth(state, node)
                if not nodes.has_directory_room(state, state.tops[Top.NEEDED_DIRECTORY_ROWS]):
                    return np.int64(-1)
                which, partition = better, nodes.new_partition(state, node, wants[better, 0])
        for column in range(3):
            wants[used, column], wants[which, column] = wants[which, column], wants[used, column]
        node = _enclosing(state, partition, wants[used, 1], wants[used, 2])
        used += 1
    more = growth(state, node, count)
    if state.leaves.top[0] + more > state.leaves.rows.shape[0]:
        state.tops[Top.NEEDED_ROWS] = more
        return np.int64(-1)
    state.info[node, NodeInfo.DIVISIBLE] += used < state.tops[Top.WANTS]
    return node


@helper
def _best_partition(state: State, node: int, used: int) -> tuple[int, int]:
    """Return the unused wanted field with the best partition of a node, and that partition; or -1."""
    which, best, rank = np.int64(-1), np.int64(-1), -np.inf
    for w in range(used, state.tops[Top.WANTS]):
        partition = nodes.partition_on(state, node, state.wants[w, 0])
        if partition >= 0 and state.figures[partition, Figure.RANK] > rank:
            which, best, rank = np.int64(w), partition, state.figures[partition, Figure.RANK]
    return which, best


@helper
def _better_field(state: State, node: int, used: int, rank: float) -> int:
    """Return the unused wanted field whose new partition would have the best rank above `rank`; or -1."""
    which = np.int64(-1)
    for w in range(used, state.tops[Top.WANTS]):
        its = expected_rank(state, state.wants[w, 0], np.int64(1))
        if its > rank and nodes.partition_on(state, node, state.wants[w, 0]) < 0:
            which, rank = np.int64(w), its
    return which


@helper
def _enclosing(state: State, partition: int, low: int, high: int) -> int:
    """Return the node with the smallest interval in a partition's tree that encloses another interval."""
    node = np.int64(state.partitions[partition, Partition.TREE])
    while True:
        row = state.nodes[node]
        if row[Node.LEFT] < 0 and row[Node.RIGHT] < 0:
            return node
        if high <= row[Node.SPLIT]:
            if row[Node.LEFT] < 0:
                row[Node.LEFT] = nodes.new_node(
                    state, node, partition, state.bounds[node, 0], row[Node.SPLIT]
                )
            node = row[Node.LEFT]
        elif low > row[Node.SPLIT]:
            if row[Node.RIGHT] < 0:
                row[Node.RIGHT] = nodes.new_node(
                    state, node, partition, row[Node.SPLIT] + 1, state.bounds[node, 1]
                )
            node = row[Node.RIGHT]
        else:
            return node


@kernel
def take_out(state: State, numbers: Int64s) -> None:
    """Take conjunctions out of the tree, and free the nodes that become empty."""
    for i in range(numbers.shape[0]):
        node = np.int64(state.store.rows[numbers[i], StoredColumn.NODE])
        if node >= 0:
            cut_out(state, numbers[i])
            nodes.prune(state, node)
