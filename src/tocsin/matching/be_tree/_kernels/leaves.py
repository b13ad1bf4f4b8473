"""Leaves: the conjunctions of a node, one after another, each with all its predicates."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree.state import (
    DEAD,
    LEAF,
    LEAF_CLASS,
    MEMBERS,
    NODE,
    OWN,
    PARTITION,
    ROWS,
    SPOT,
    State,
)
from tocsin.matching.encoding.codes import Keys
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper

TARGET: Final = 32  # above so many bits of how many rows follow: where a conjunction is to go
_SIZE: Final = (1 << TARGET) - 1
_SHORT: Final = 256  # rows of a leaf in which a gap is closed at once


@helper
def growth(state: State, node: int, more: int) -> int:
    """Return how many rows of memory it takes to add so many to a leaf."""
    row = state.nodes[node]
    if row[LEAF] >= 0 and row[ROWS] + more <= size_of(np.int64(state.about[node, LEAF_CLASS])):
        return np.int64(0)
    return size_of(class_of(row[ROWS] + more))


@helper
def append(state: State, node: int, source: Keys, count: int) -> None:
    """Add the conjunction that the first rows of `source` are to a leaf; there must be room."""
    row, rows = state.nodes[node], state.leaves.rows
    if growth(state, node, count) > 0:
        _resize(state, node, class_of(row[ROWS] + count))
    at = row[LEAF] + row[ROWS]
    for i in range(count):
        rows[at + i, 0], rows[at + i, 1] = source[i, 0], source[i, 1]
    _enter(state, node, source[0, 0], row[ROWS])
    row[ROWS] += count


@helper
def _enter(state: State, node: int, number: int, spot: int) -> None:
    """Take note that a conjunction has come to a leaf."""
    state.forms[number, NODE] = node
    state.forms[number, SPOT] = spot
    state.about[node, MEMBERS] += 1
    partition = np.int64(state.about[node, PARTITION])
    if partition >= 0:
        state.partitions[partition, OWN] += 1


@helper
def _resize(state: State, node: int, class_: int) -> None:
    """Give a leaf a block of another size."""
    row, rows = state.nodes[node], state.leaves.rows
    first = blocks.take(state.leaves, class_)
    if row[LEAF] >= 0:
        for i in range(row[ROWS]):
            rows[first + i, 0], rows[first + i, 1] = rows[row[LEAF] + i, 0], rows[row[LEAF] + i, 1]
        blocks.give(state.leaves, row[LEAF], np.int64(state.about[node, LEAF_CLASS]))
    row[LEAF] = first
    state.about[node, LEAF_CLASS] = class_


@helper
def cut_out(state: State, number: int) -> None:
    """Take a conjunction out of its leaf. In a long leaf it stays, dead, until there are many such."""
    node = np.int64(state.forms[number, NODE])
    row, about, rows = state.nodes[node], state.about[node], state.leaves.rows
    at = row[LEAF] + state.forms[number, SPOT]
    state.forms[number, NODE] = -1
    rows[at, 0] = -1
    about[DEAD] += rows[at, 1] + 1
    about[MEMBERS] -= 1
    if about[PARTITION] >= 0:
        state.partitions[about[PARTITION], OWN] -= 1
    if row[ROWS] <= _SHORT:
        _close_gaps(state, node, at)
    elif 4 * about[DEAD] > row[ROWS]:
        _close_gaps(state, node, row[LEAF])
    _fit(state, node)


@helper
def hand_over(state: State, node: int, at: int, to: int) -> None:
    """Move the conjunction whose first row is `at` to another leaf; there must be room. `settle` is to follow."""
    rows, about = state.leaves.rows, state.about[node]
    size = rows[at, 1] + 1
    append(state, to, rows[at : at + size], size)
    rows[at, 0] = -1
    about[DEAD] += size
    about[MEMBERS] -= 1
    if about[PARTITION] >= 0:
        state.partitions[about[PARTITION], OWN] -= 1


@helper
def settle(state: State, node: int) -> None:
    """Close the gaps of a leaf that some of its conjunctions were handed over from."""
    _close_gaps(state, node, state.nodes[node, LEAF])
    _fit(state, node)


@helper
def _fit(state: State, node: int) -> None:
    """Give up the memory of an empty leaf, and most of that of a leaf far too small for its block."""
    row, leaves = state.nodes[node], state.leaves
    if row[ROWS] == 0:
        _drop(state, node)
    elif 4 * row[ROWS] < size_of(np.int64(state.about[node, LEAF_CLASS])):
        class_ = class_of(row[ROWS])
        if leaves.free[class_] >= 0 or leaves.top[0] + size_of(class_) <= leaves.rows.shape[0]:
            _resize(state, node, class_)


@helper
def _close_gaps(state: State, node: int, at: int) -> None:
    """Move what lives from row `at` on together."""
    row, rows = state.nodes[node], state.leaves.rows
    to, end = at, row[LEAF] + row[ROWS]
    while at < end:
        number, size = rows[at, 0], rows[at, 1] + 1
        if number >= 0:
            state.forms[number, SPOT] = to - row[LEAF]
            for i in range(size):
                rows[to + i, 0], rows[to + i, 1] = rows[at + i, 0], rows[at + i, 1]
            to += size
        at += size
    row[ROWS] = to - row[LEAF]
    state.about[node, DEAD] = 0


@helper
def _drop(state: State, node: int) -> None:
    row = state.nodes[node]
    if row[LEAF] >= 0:
        blocks.give(state.leaves, row[LEAF], np.int64(state.about[node, LEAF_CLASS]))
    row[LEAF] = -1
    row[ROWS] = 0


@helper
def deal(state: State, node: int, ones: int, twos: int) -> None:
    """Move the conjunctions of a leaf whose TARGET is 1 or 2 to the empty leaves of these nodes; there must be room.

    A node that no conjunction goes to may be -1.
    """
    row, rows = state.nodes[node], state.leaves.rows
    at, end = row[LEAF], row[LEAF] + row[ROWS]
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
    at, kept, members = row[LEAF], row[LEAF], state.about[node, MEMBERS]
    while at < end:
        number, target, size = rows[at, 0], rows[at, 1] >> TARGET, (rows[at, 1] & _SIZE) + 1
        rows[at, 1] = size - 1
        to = node if target == 0 else (ones if target == 1 else twos)
        if number >= 0:
            place = kept if target == 0 else state.nodes[to, LEAF] + state.nodes[to, ROWS]
            for i in range(size):
                rows[place + i, 0], rows[place + i, 1] = rows[at + i, 0], rows[at + i, 1]
            if target == 0:
                state.forms[number, SPOT] = place - row[LEAF]
                kept += size
            else:
                _enter(state, to, number, state.nodes[to, ROWS])
                state.nodes[to, ROWS] += size
                members -= 1
        at += size
    partition = np.int64(state.about[node, PARTITION])
    if partition >= 0:
        state.partitions[partition, OWN] -= state.about[node, MEMBERS] - members
    state.about[node, MEMBERS] = members
    state.about[node, DEAD] = 0
    row[ROWS] = kept - row[LEAF]
    if row[ROWS] == 0:
        _drop(state, node)
    elif 2 * row[ROWS] < size_of(np.int64(state.about[node, LEAF_CLASS])):
        _resize(state, node, class_of(row[ROWS]))
