"""Nodes and partitions: how they come and go."""

from __future__ import annotations

import numpy as np

from tocsin.matching.be_tree._kernels.ranks import refresh
from tocsin.matching.be_tree.state import (
    CAPACITY,
    DEAD,
    DECAYED,
    DIRECTORY,
    DIRECTORY_CLASS,
    FIELD,
    FREE_NODE,
    HIGHEST,
    HOPEFUL,
    LEAF,
    LEFT,
    LIVE_NODES,
    LOSS,
    LOWEST,
    MEMBERS,
    MISSED,
    MISSES,
    MOST_MEMBERS,
    OWN,
    OWNER,
    PARTITION,
    PARTITIONS,
    PLACE,
    RIGHT,
    ROOT,
    ROWS,
    SPLIT,
    TOP_NODE,
    TREE,
    UP,
    State,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper


@helper
def new_node(state: State, up: int, partition: int, low: int, high: int) -> int:
    """Return a new, empty node; there must be room for it."""
    node = state.tops[FREE_NODE]
    if node >= 0:
        state.tops[FREE_NODE] = state.about[node, UP]
    else:
        node = state.tops[TOP_NODE]
        state.tops[TOP_NODE] += 1
    state.tops[LIVE_NODES] += 1
    row, about = state.nodes[node], state.about[node]
    row[SPLIT], row[ROWS], row[PARTITIONS], row[MISSES] = 0, 0, 0, 0
    row[LEFT], row[RIGHT], row[LEAF], row[DIRECTORY] = -1, -1, -1, -1
    about[UP], about[PARTITION], about[MEMBERS], about[DEAD], about[HOPEFUL] = up, partition, 0, 0, 0
    about[CAPACITY] = np.int64(state.settings[MOST_MEMBERS])
    state.bounds[node, 0], state.bounds[node, 1] = low, high
    return node


@helper
def partition_on(state: State, node: int, field: int) -> int:
    """Return the partition of a node on a field, or -1."""
    if node == ROOT:
        tree = np.int64(state.fields.tree[field])
        return np.int64(state.about[tree, PARTITION]) if tree >= 0 else np.int64(-1)
    return hash_index.find_in(
        state.partition_index,
        hash_index.bucket_of(state.partition_index, node, field, 0),
        node,
        field,
        np.int64(0),
    )


@helper
def directory_growth(state: State, node: int) -> int:
    """Return how many rows of memory one more partition takes."""
    count = state.nodes[node, PARTITIONS]
    if state.nodes[node, DIRECTORY] >= 0 and count < size_of(np.int64(state.about[node, DIRECTORY_CLASS])):
        return np.int64(0)
    return size_of(class_of(count + 1))


@helper
def new_partition(state: State, node: int, field: int) -> int:
    """Return a new partition of a node, with a tree of one empty node; there must be room for it."""
    row, rows = state.nodes[node], state.directories.rows
    partition = hash_index.insert(state.partition_index, node, field, np.int64(0))
    tree = new_node(state, node, partition, np.int64(LOWEST), np.int64(HIGHEST))
    if directory_growth(state, node) > 0:
        class_ = class_of(row[PARTITIONS] + 1)
        first = blocks.take(state.directories, class_)
        if row[DIRECTORY] >= 0:
            for i in range(row[PARTITIONS]):
                rows[first + i, 0] = rows[row[DIRECTORY] + i, 0]
            blocks.give(state.directories, row[DIRECTORY], np.int64(state.about[node, DIRECTORY_CLASS]))
        row[DIRECTORY] = first
        state.about[node, DIRECTORY_CLASS] = class_
    rows[row[DIRECTORY] + row[PARTITIONS], 0] = (field << 32) | tree
    about = state.partitions[partition]
    about[OWNER], about[FIELD], about[TREE], about[PLACE] = node, field, tree, row[PARTITIONS]
    about[OWN], about[MISSED], about[DECAYED] = 0, 0, 0
    state.figures[partition, LOSS] = -1.0
    row[PARTITIONS] += 1
    if node == ROOT:
        state.fields.tree[field] = tree
    refresh(state, partition)
    return partition


@helper
def _drop_partition(state: State, partition: int) -> None:
    """Give up a partition whose tree is gone."""
    about, rows = state.partitions[partition], state.directories.rows
    node, place = np.int64(about[OWNER]), np.int64(about[PLACE])
    row = state.nodes[node]
    row[PARTITIONS] -= 1
    last = rows[row[DIRECTORY] + row[PARTITIONS], 0]
    rows[row[DIRECTORY] + place, 0] = last
    state.partitions[state.about[last & 0xFFFFFFFF, PARTITION], PLACE] = place
    if node == ROOT:
        state.fields.tree[about[FIELD]] = -1
    if row[PARTITIONS] == 0:
        blocks.give(state.directories, row[DIRECTORY], np.int64(state.about[node, DIRECTORY_CLASS]))
        row[DIRECTORY] = -1
    about[OWNER] = -1
    hash_index.remove(state.partition_index, partition)


@helper
def prune(state: State, node: int) -> None:
    """Give up a node if nothing is left in it, then its partition likewise, then the node above, and so on.

    A leaf that may have more members than usual, and has far fewer, may no longer.
    """
    usual = np.int64(state.settings[MOST_MEMBERS])
    if state.about[node, CAPACITY] > usual and 4 * state.about[node, MEMBERS] < state.about[node, CAPACITY]:
        wanted = max(2 * np.int64(state.about[node, MEMBERS]), usual)
        state.about[node, CAPACITY] = -(-wanted // usual) * usual
    while node != ROOT:
        row, about = state.nodes[node], state.about[node]
        if about[MEMBERS] > 0 or row[PARTITIONS] > 0 or row[LEFT] >= 0 or row[RIGHT] >= 0:
            return
        up, partition = np.int64(about[UP]), np.int64(about[PARTITION])
        if state.partitions[partition, TREE] == node:
            _drop_partition(state, partition)
        elif state.nodes[up, LEFT] == node:
            state.nodes[up, LEFT] = -1
        else:
            state.nodes[up, RIGHT] = -1
        about[MEMBERS] = -1
        about[PARTITION] = -1
        about[UP] = state.tops[FREE_NODE]
        state.tops[FREE_NODE] = node
        state.tops[LIVE_NODES] -= 1
        node = up
