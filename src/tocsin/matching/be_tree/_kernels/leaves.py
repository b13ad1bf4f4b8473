"""Leaves: the conjunctions of a node in one block, each with all its predicates."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree.state import Node, NodeInfo, Partition, State, StoredColumn
from tocsin.matching.encoding.codes import Keys
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of, copy_row, size_of
from tocsin.structures.jit import helper

TARGET: Final = 32  # the bits above a conjunction's number of rows: where `deal` moves it
_SIZE: Final = (1 << TARGET) - 1
_SHORT: Final = 256  # rows of a leaf whose gaps are closed at once


@helper
def growth(state: State, node: int, more: int) -> int:
    """Return how many new rows of leaves it takes to add `more` rows to a leaf."""
    rows = state.nodes[node, Node.ROWS] + more
    if state.nodes[node, Node.LEAF] >= 0 and rows <= size_of(np.int64(state.info[node, NodeInfo.LEAF_CLASS])):
        return np.int64(0)
    return size_of(class_of(rows))


@helper
def append(state: State, node: int, source: Keys, count: int) -> None:
    """Add the conjunction in the first `count` rows of `source` to a leaf; there must be room."""
    row, rows = state.nodes[node], state.leaves.rows
    if growth(state, node, count) > 0:
        _resize(state, node, class_of(row[Node.ROWS] + count))
    at = row[Node.LEAF] + row[Node.ROWS]
    for i in range(count):
        rows[at + i, 0], rows[at + i, 1] = source[i, 0], source[i, 1]
    _enter(state, node, source[0, 0], row[Node.ROWS])
    row[Node.ROWS] += count


@helper
def _enter(state: State, node: int, number: int, row: int) -> None:
    """Register a conjunction as a member of a leaf, from one of its rows on."""
    state.store.rows[number, StoredColumn.NODE] = node
    state.store.rows[number, StoredColumn.ROW] = row
    _count_members(state, node, np.int64(1))


@helper
def _count_members(state: State, node: int, change: int) -> None:
    """Add to the members of a node and of its partition."""
    state.info[node, NodeInfo.MEMBERS] += change
    partition = np.int64(state.info[node, NodeInfo.PARTITION])
    if partition >= 0:
        state.partitions[partition, Partition.MEMBERS] += change


@helper
def _resize(state: State, node: int, class_: int) -> None:
    """Give a leaf a block of another size."""
    row, old = state.nodes[node], np.int64(state.info[node, NodeInfo.LEAF_CLASS])
    if row[Node.LEAF] < 0:
        row[Node.LEAF] = blocks.take(state.leaves, class_)
    else:
        row[Node.LEAF] = blocks.moved(state.leaves, row[Node.LEAF], old, row[Node.ROWS], class_)
    state.info[node, NodeInfo.LEAF_CLASS] = class_


@helper
def _mark_dead(state: State, node: int, at: int) -> None:
    """Mark the conjunction at row `at` of a leaf as gone; its rows stay as a gap."""
    rows = state.leaves.rows
    rows[at, 0] = -1
    state.info[node, NodeInfo.DEAD] += rows[at, 1] + 1
    _count_members(state, node, np.int64(-1))


@helper
def cut_out(state: State, number: int) -> None:
    """Remove a conjunction from its leaf. A long leaf keeps it as a gap until there are many gaps."""
    node = np.int64(state.store.rows[number, StoredColumn.NODE])
    row = state.nodes[node]
    at = row[Node.LEAF] + state.store.rows[number, StoredColumn.ROW]
    state.store.rows[number, StoredColumn.NODE] = -1
    _mark_dead(state, node, at)
    if row[Node.ROWS] <= _SHORT:
        _close_gaps(state, node, at)
    elif 4 * state.info[node, NodeInfo.DEAD] > row[Node.ROWS]:
        _close_gaps(state, node, row[Node.LEAF])
    _fit(state, node)


@helper
def hand_over(state: State, node: int, at: int, to: int) -> None:
    """Move the conjunction at row `at` to another leaf with room for it; the caller closes the gaps with `settle`."""
    rows = state.leaves.rows
    size = rows[at, 1] + 1
    append(state, to, rows[at : at + size], size)
    _mark_dead(state, node, at)


@helper
def settle(state: State, node: int) -> None:
    """Close the gaps of a leaf after `hand_over`."""
    _close_gaps(state, node, state.nodes[node, Node.LEAF])
    _fit(state, node)


@helper
def _fit(state: State, node: int) -> None:
    """Free the block of an empty leaf, and shrink that of a leaf far too small for it."""
    row = state.nodes[node]
    if row[Node.ROWS] == 0:
        _drop(state, node)
    elif 4 * row[Node.ROWS] < size_of(np.int64(state.info[node, NodeInfo.LEAF_CLASS])):
        class_ = class_of(row[Node.ROWS])
        if blocks.has_block(state.leaves, class_):
            _resize(state, node, class_)


@helper
def _close_gaps(state: State, node: int, at: int) -> None:
    """Move the members from row `at` on together."""
    row, rows = state.nodes[node], state.leaves.rows
    to, end = at, row[Node.LEAF] + row[Node.ROWS]
    while at < end:
        number, size = rows[at, 0], rows[at, 1] + 1
        if number >= 0:
            state.store.rows[number, StoredColumn.ROW] = to - row[Node.LEAF]
            for i in range(size):
                copy_row(rows, at + i, to + i)
            to += size
        at += size
    row[Node.ROWS] = to - row[Node.LEAF]
    state.info[node, NodeInfo.DEAD] = 0


@helper
def _drop(state: State, node: int) -> None:
    row = state.nodes[node]
    if row[Node.LEAF] >= 0:
        blocks.give(state.leaves, row[Node.LEAF], np.int64(state.info[node, NodeInfo.LEAF_CLASS]))
    row[Node.LEAF] = -1
    row[Node.ROWS] = 0


@helper
def deal(state: State, node: int, ones: int, twos: int) -> None:
    """Move the conjunctions of a leaf whose TARGET is 1 or 2 to the empty leaves of these nodes; there must be room.

    A node that no conjunction goes to may be -1.
    """
    row, rows = state.nodes[node], state.leaves.rows
    at, end = row[Node.LEAF], row[Node.LEAF] + row[Node.ROWS]
    one_rows, two_rows = np.int64(0), np.int64(0)
    while at < end:
        target, size = rows[at, 1] >> TARGET, (rows[at, 1] & _SIZE) + 1
        one_rows += size if target == 1 else 0
        two_rows += size if target == 2 else 0
        at += size
    for which in range(1, 3):
        to, wanted = (ones, one_rows) if which == 1 else (twos, two_rows)
        if wanted > 0:
            _resize(state, to, class_of(wanted))
    at, kept, members = row[Node.LEAF], row[Node.LEAF], state.info[node, NodeInfo.MEMBERS]
    while at < end:
        number, target, size = rows[at, 0], rows[at, 1] >> TARGET, (rows[at, 1] & _SIZE) + 1
        rows[at, 1] = size - 1
        to = node if target == 0 else (ones if target == 1 else twos)
        if number >= 0:
            place = kept if target == 0 else state.nodes[to, Node.LEAF] + state.nodes[to, Node.ROWS]
            for i in range(size):
                copy_row(rows, at + i, place + i)
            if target == 0:
                state.store.rows[number, StoredColumn.ROW] = place - row[Node.LEAF]
                kept += size
            else:
                _enter(state, to, number, state.nodes[to, Node.ROWS])
                state.nodes[to, Node.ROWS] += size
                members -= 1
        at += size
    _count_members(state, node, members - state.info[node, NodeInfo.MEMBERS])
    state.info[node, NodeInfo.DEAD] = 0
    row[Node.ROWS] = kept - row[Node.LEAF]
    if row[Node.ROWS] == 0:
        _drop(state, node)
    elif 2 * row[Node.ROWS] < size_of(np.int64(state.info[node, NodeInfo.LEAF_CLASS])):
        _resize(state, node, class_of(row[Node.ROWS]))
