"""Nodes and partitions of the tree."""

from __future__ import annotations

import numpy as np

from tocsin.matching.be_tree import state as arrays
from tocsin.matching.be_tree._kernels.ranks import refresh
from tocsin.matching.be_tree.state import Figure, Node, NodeInfo, Partition, Setting, State, Top
from tocsin.structures import blocks, free_lists, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper


@helper
def add_overfull(state: State, node: int) -> None:
    """Note that a node's leaf may have too many members; -1 is no node."""
    if node >= 0:
        state.overfull[state.tops[Top.OVERFULL]] = node
        state.tops[Top.OVERFULL] += 1


@helper
def has_room_for(state: State, nodes: int, partitions: int, rows: int, overfull: int) -> bool:
    """Tell whether there is capacity for so many new nodes, partitions, rows of leaves, and overfull leaves."""
    tops, index = state.tops, state.partition_index
    return (
        tops[Top.NODES] + nodes <= state.nodes.shape[0]
        and index.counters[1] + partitions <= min(index.chain.shape[0], state.partitions.shape[0])
        and state.leaves.top[0] + rows <= state.leaves.rows.shape[0]
        and tops[Top.OVERFULL] + overfull <= state.overfull.shape[0]
    )


@helper
def has_directory_room(state: State, rows: int) -> bool:
    """Tell whether there is capacity for so many new rows of directories."""
    return state.directories.top[0] + rows <= state.directories.rows.shape[0]


@helper
def new_node(state: State, parent: int, partition: int, low: int, high: int) -> int:
    """Return a new, empty node; there must be room for it."""
    node = free_lists.take(
        state.info[:, NodeInfo.PARENT], state.tops, np.int64(Top.FREE_NODE), np.int64(Top.NODES)
    )
    state.tops[Top.LIVE_NODES] += 1
    row, info = state.nodes[node], state.info[node]
    row[Node.SPLIT], row[Node.ROWS], row[Node.PARTITIONS], row[Node.MISSES] = 0, 0, 0, 0
    row[Node.LEFT], row[Node.RIGHT], row[Node.LEAF], row[Node.DIRECTORY] = -1, -1, -1, -1
    info[NodeInfo.PARENT], info[NodeInfo.PARTITION] = parent, partition
    info[NodeInfo.MEMBERS], info[NodeInfo.DEAD], info[NodeInfo.DIVISIBLE] = 0, 0, 0
    info[NodeInfo.CAPACITY] = np.int64(state.settings[Setting.CAPACITY])
    state.bounds[node, 0], state.bounds[node, 1] = low, high
    return node


@helper
def partition_on(state: State, node: int, field: int) -> int:
    """Return the partition of a node on a field, or -1."""
    if node == arrays.ROOT:
        tree = np.int64(state.fields.tree[field])
        return np.int64(state.info[tree, NodeInfo.PARTITION]) if tree >= 0 else np.int64(-1)
    index, nothing = state.partition_index, np.int64(0)
    return hash_index.find_in(index, hash_index.bucket_of(index, node, field, nothing), node, field, nothing)


@helper
def directory_growth(state: State, node: int) -> int:
    """Return how many new rows of directories one more partition takes."""
    count, class_ = state.nodes[node, Node.PARTITIONS], np.int64(state.info[node, NodeInfo.DIRECTORY_CLASS])
    has_room = state.nodes[node, Node.DIRECTORY] >= 0 and count < size_of(class_)
    return np.int64(0) if has_room else size_of(class_of(count + 1))


@helper
def new_partition(state: State, node: int, field: int) -> int:
    """Return a new partition of a node, with a tree of one empty node; there must be room for it."""
    row, rows = state.nodes[node], state.directories.rows
    partition = hash_index.insert(state.partition_index, node, field, np.int64(0))
    tree = new_node(state, node, partition, np.int64(arrays.LOWEST), np.int64(arrays.HIGHEST))
    if directory_growth(state, node) > 0:
        class_, old = class_of(row[Node.PARTITIONS] + 1), np.int64(state.info[node, NodeInfo.DIRECTORY_CLASS])
        if row[Node.DIRECTORY] < 0:
            row[Node.DIRECTORY] = blocks.take(state.directories, class_)
        else:
            row[Node.DIRECTORY] = blocks.moved(
                state.directories, row[Node.DIRECTORY], old, row[Node.PARTITIONS], class_
            )
        state.info[node, NodeInfo.DIRECTORY_CLASS] = class_
    rows[row[Node.DIRECTORY] + row[Node.PARTITIONS], 0] = (field << 32) | tree
    new = state.partitions[partition]
    new[Partition.OWNER], new[Partition.FIELD], new[Partition.TREE] = node, field, tree
    new[Partition.POSITION] = row[Node.PARTITIONS]
    new[Partition.MEMBERS], new[Partition.MISSED], new[Partition.DECAYED] = 0, 0, 0
    state.figures[partition, Figure.LOSS] = -1.0
    row[Node.PARTITIONS] += 1
    if node == arrays.ROOT:
        state.fields.tree[field] = tree
    refresh(state, partition)
    return partition


@helper
def _drop_partition(state: State, partition: int) -> None:
    """Free a partition whose tree is gone."""
    gone, rows = state.partitions[partition], state.directories.rows
    node, position = np.int64(gone[Partition.OWNER]), np.int64(gone[Partition.POSITION])
    row = state.nodes[node]
    row[Node.PARTITIONS] -= 1
    last = rows[row[Node.DIRECTORY] + row[Node.PARTITIONS], 0]
    rows[row[Node.DIRECTORY] + position, 0] = last
    state.partitions[state.info[last & 0xFFFFFFFF, NodeInfo.PARTITION], Partition.POSITION] = position
    if node == arrays.ROOT:
        state.fields.tree[gone[Partition.FIELD]] = -1
    if row[Node.PARTITIONS] == 0:
        class_ = np.int64(state.info[node, NodeInfo.DIRECTORY_CLASS])
        blocks.give(state.directories, row[Node.DIRECTORY], class_)
        row[Node.DIRECTORY] = -1
    gone[Partition.OWNER] = -1
    hash_index.remove(state.partition_index, partition)


@helper
def raise_capacity(state: State, node: int, members: int) -> None:
    """Let a leaf have so many members, rounded up to a multiple of the usual capacity."""
    usual = np.int64(state.settings[Setting.CAPACITY])
    state.info[node, NodeInfo.CAPACITY] = -(-max(members, usual) // usual) * usual


@helper
def prune(state: State, node: int) -> None:
    """Free a node if it is empty, then its partition likewise, then its parent, and so on.

    A leaf with raised capacity and far fewer members gets a lower capacity.
    """
    usual, info = np.int64(state.settings[Setting.CAPACITY]), state.info[node]
    if info[NodeInfo.CAPACITY] > usual and 4 * info[NodeInfo.MEMBERS] < info[NodeInfo.CAPACITY]:
        raise_capacity(state, node, 2 * np.int64(info[NodeInfo.MEMBERS]))
    while node != arrays.ROOT:
        row, info = state.nodes[node], state.info[node]
        if info[NodeInfo.MEMBERS] > 0 or row[Node.PARTITIONS] > 0:
            return
        if row[Node.LEFT] >= 0 or row[Node.RIGHT] >= 0:
            return
        parent, partition = np.int64(info[NodeInfo.PARENT]), np.int64(info[NodeInfo.PARTITION])
        if state.partitions[partition, Partition.TREE] == node:
            _drop_partition(state, partition)
        elif state.nodes[parent, Node.LEFT] == node:
            state.nodes[parent, Node.LEFT] = -1
        else:
            state.nodes[parent, Node.RIGHT] = -1
        info[NodeInfo.MEMBERS] = -1
        info[NodeInfo.PARTITION] = -1
        free_lists.give(state.info[:, NodeInfo.PARENT], state.tops, np.int64(Top.FREE_NODE), node)
        state.tops[Top.LIVE_NODES] -= 1
        node = parent
