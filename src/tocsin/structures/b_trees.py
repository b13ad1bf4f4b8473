"""Many B-trees in one memory: sorted keys with a link each and, optionally, the least `low` below each entry.

An entry of an inner node leads to a child; its key is no greater than any key below it, and greater than all keys below the
entry before it. A node that is less than three eighths full borrows from its neighbour, or is merged with it; a node that
splits because keys come in order stays nearly full. Freed nodes are reused.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import free_lists
from tocsin.structures.array_types import Float64s, Int32s, Int64s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper

LEVELS: Final = 32  # more than a tree can have, since an inner node has two children at least
_NONE: Final = -1


class NodeHead(IntEnum):
    """Columns of a node's head."""

    COUNT = 0  # entries; of a free node, the next free one
    LEVEL = 1  # 0 for a leaf


class PathStep(IntEnum):
    """Columns of a path, which has one step for each level of a tree."""

    NODE = 0
    POSITION = 1  # of the entry in its node


class _Counter(IntEnum):
    TOP = 0  # nodes ever in use
    FREE = 1  # the first free node


class Nodes(NamedTuple):
    """The entries of a node fill the front of its row in three arrays; the user decides what a leaf's links mean."""

    keys: Float64s  # [nodes, fan-out] ascending
    lows: Float64s  # [nodes, fan-out] the least below each entry; no columns in a tree without lows
    links: Int32s  # [nodes, fan-out] children; in a leaf, the user's integer for a key
    heads: Int32s  # [nodes, NodeHead]
    counters: Int64s  # [_Counter]


def new_nodes(fan_out: int, *, lows: bool) -> Nodes:
    """Return a memory without nodes; a node has up to `fan_out` entries, at least four."""
    counters = np.array([0, _NONE], dtype=np.int64)
    return zeros(
        Nodes,
        LEVELS,
        keys=fan_out,
        lows=fan_out if lows else 0,
        links=fan_out,
        heads=len(NodeHead),
        counters=counters,
    )


def new_root(nodes: Nodes) -> int:
    """Return an empty leaf of a memory that has no node yet: the root of its first tree."""
    nodes.counters[_Counter.TOP] += 1
    return int(nodes.counters[_Counter.TOP]) - 1


def new_path() -> Int64s:
    """Return room for a path, int64[LEVELS, PathStep]: by level, a node and the position of an entry in it."""
    return np.zeros((LEVELS, len(PathStep)), dtype=np.int64)


def with_room(nodes: Nodes, more: int = 0) -> Nodes:
    """Return the memory with room for `more` nodes and for the splits of one insertion."""
    return grown(nodes, ("keys", "lows", "links", "heads"), int(nodes.counters[_Counter.TOP]) + more + LEVELS)


@helper
def has_room(nodes: Nodes) -> bool:
    """Tell whether one more entry fits into any tree, even if every node on its path splits."""
    return nodes.counters[_Counter.TOP] + LEVELS <= nodes.heads.shape[0]


@helper
def new_node(nodes: Nodes, level: int) -> int:
    """Return an empty node; `has_room` must hold."""
    node = free_lists.take(nodes.heads[:, NodeHead.COUNT], nodes.counters, _Counter.FREE, _Counter.TOP)
    nodes.heads[node, NodeHead.COUNT] = 0
    nodes.heads[node, NodeHead.LEVEL] = level
    return node


@helper
def free_node(nodes: Nodes, node: int) -> None:
    """Give back a node."""
    free_lists.give(nodes.heads[:, NodeHead.COUNT], nodes.counters, _Counter.FREE, node)


@helper
def seek(nodes: Nodes, root: int, key: float, path: Int64s) -> bool:
    """Write the path to the last leaf entry whose key is no greater, position -1 if there is none; tell if it is equal."""
    node, level = np.int64(root), np.int64(nodes.heads[root, NodeHead.LEVEL])
    while True:
        # Comparing all keys takes no branch and compiles to a few vector instructions.
        position = np.int64(-1)
        for i in range(nodes.heads[node, NodeHead.COUNT]):
            position += nodes.keys[node, i] <= key
        if level > 0 and position < 0:
            position = np.int64(0)
        path[level, PathStep.NODE] = node
        path[level, PathStep.POSITION] = position
        if level == 0:
            return position >= 0 and nodes.keys[node, position] == key
        node = np.int64(nodes.links[node, position])
        level -= 1


@helper
def copy_path(path: Int64s, top: int, copy: Int64s) -> None:
    """Write a path over another."""
    for level in range(top + 1):
        copy[level, PathStep.NODE] = path[level, PathStep.NODE]
        copy[level, PathStep.POSITION] = path[level, PathStep.POSITION]


@helper
def advance(nodes: Nodes, top: int, path: Int64s, bound: float, step: int) -> bool:
    """Move a path on to the nearest entry of a leaf with a low of at most `bound`, or back if `step` is -1.

    Tell whether there is one. It climbs only as far as it must and descends by the lows: O(height), less if the entry is
    near.
    """
    level = np.int64(0)
    while True:
        node, position = path[level, PathStep.NODE], path[level, PathStep.POSITION] + step
        count = np.int64(nodes.heads[node, NodeHead.COUNT])
        while 0 <= position < count and nodes.lows[node, position] > bound:
            position += step
        if 0 <= position < count:
            break
        level += 1
        if level > top:
            return False
    path[level, PathStep.POSITION] = position
    while level > 0:
        node = np.int64(nodes.links[node, position])
        level -= 1
        position = np.int64(0) if step > 0 else np.int64(nodes.heads[node, NodeHead.COUNT]) - 1
        while nodes.lows[node, position] > bound:
            position += step
        path[level, PathStep.NODE] = node
        path[level, PathStep.POSITION] = position
    return True


@helper
def least_between(nodes: Nodes, path: Int64s, first: int, end: Int64s, last: int) -> float:
    """Return the least low from the position `first` of the leaf on one path to the position `last` of that on another.

    It is infinite if there is no entry between them. The first path may not lie behind the other by a leaf.
    """
    least = np.inf
    level = np.int64(0)
    while path[level, PathStep.NODE] != end[level, PathStep.NODE]:
        node = path[level, PathStep.NODE]
        for i in range(first, nodes.heads[node, NodeHead.COUNT]):
            least = min(least, nodes.lows[node, i])
        node = end[level, PathStep.NODE]
        for i in range(last + 1):
            least = min(least, nodes.lows[node, i])
        level += 1
        first, last = path[level, PathStep.POSITION] + 1, end[level, PathStep.POSITION] - 1
    node = path[level, PathStep.NODE]
    for i in range(first, last + 1):
        least = min(least, nodes.lows[node, i])
    return least


@helper
def settle(nodes: Nodes, top: int, path: Int64s) -> None:
    """Set the lows above an entry of a leaf whose low has changed."""
    for level in range(1, top + 1):
        least = _least(nodes, path[level - 1, PathStep.NODE])
        node, position = path[level, PathStep.NODE], path[level, PathStep.POSITION]
        if nodes.lows[node, position] == least:
            return
        nodes.lows[node, position] = least


@helper
def insert(nodes: Nodes, root: int, path: Int64s, key: float, low: float, link: int) -> int:
    """Insert a key behind the position that `seek` found for it and return the root; `has_room` must hold."""
    top = np.int64(nodes.heads[root, NodeHead.LEVEL])
    has_lows = nodes.lows.shape[1] > 0
    for level in range(1, top + 1):
        node, position = path[level, PathStep.NODE], path[level, PathStep.POSITION]
        nodes.keys[node, position] = min(nodes.keys[node, position], key)
        if has_lows:
            nodes.lows[node, position] = min(nodes.lows[node, position], low)
    level = np.int64(0)
    root = np.int64(root)
    link = np.int64(link)
    while True:
        if level > top:
            node = new_node(nodes, level)
            put(nodes, node, 0, nodes.keys[root, 0], _least(nodes, root), root)
            put(nodes, node, 1, key, low, link)
            nodes.heads[node, NodeHead.COUNT] = 2
            return node
        node, position = path[level, PathStep.NODE], path[level, PathStep.POSITION] + 1
        count = np.int64(nodes.heads[node, NodeHead.COUNT])
        if count < nodes.keys.shape[1]:
            _shift(nodes, node, position, count, 1)
            put(nodes, node, position, key, low, link)
            nodes.heads[node, NodeHead.COUNT] = count + 1
            return root
        other = _split(nodes, node, position)
        kept = np.int64(nodes.heads[node, NodeHead.COUNT])
        target = node
        if position > kept:
            target = other
            position -= kept
        count = np.int64(nodes.heads[target, NodeHead.COUNT])
        _shift(nodes, target, position, count, 1)
        put(nodes, target, position, key, low, link)
        nodes.heads[target, NodeHead.COUNT] = count + 1
        level += 1
        if has_lows and level <= top:
            nodes.lows[path[level, PathStep.NODE], path[level, PathStep.POSITION]] = _least(nodes, node)
        key, low, link = nodes.keys[other, 0], _least(nodes, other), other


@helper
def delete(nodes: Nodes, root: int, path: Int64s) -> int:
    """Delete the entry that `seek` found and return the root; the last leaf stays, even if it is empty."""
    fan_out = nodes.keys.shape[1]
    fewest = max(3 * fan_out // 8, 2)
    root = np.int64(root)
    top = np.int64(nodes.heads[root, NodeHead.LEVEL])
    level = np.int64(0)
    node = path[0, PathStep.NODE]
    _close(nodes, node, path[0, PathStep.POSITION])
    while level < top and nodes.heads[node, NodeHead.COUNT] < fewest:
        parent, position = path[level + 1, PathStep.NODE], path[level + 1, PathStep.POSITION]
        if position + 1 == nodes.heads[parent, NodeHead.COUNT]:
            position -= 1
        left, right = np.int64(nodes.links[parent, position]), np.int64(nodes.links[parent, position + 1])
        count, others = (
            np.int64(nodes.heads[left, NodeHead.COUNT]),
            np.int64(nodes.heads[right, NodeHead.COUNT]),
        )
        if count + others > fan_out - fan_out // 4:
            _balance(nodes, left, right)
            nodes.keys[parent, position + 1] = nodes.keys[right, 0]
            if nodes.lows.shape[1] > 0:
                nodes.lows[parent, position] = _least(nodes, left)
                nodes.lows[parent, position + 1] = _least(nodes, right)
            break
        _copy(nodes, right, 0, others, left, count)
        nodes.heads[left, NodeHead.COUNT] = count + others
        free_node(nodes, right)
        _close(nodes, parent, position + 1)
        if nodes.lows.shape[1] > 0:
            nodes.lows[parent, position] = _least(nodes, left)
        node = parent
        level += 1
    if nodes.lows.shape[1] > 0:
        for above in range(level + 1, top + 1):
            nodes.lows[path[above, PathStep.NODE], path[above, PathStep.POSITION]] = _least(
                nodes, path[above - 1, PathStep.NODE]
            )
    while nodes.heads[root, NodeHead.LEVEL] > 0 and nodes.heads[root, NodeHead.COUNT] == 1:
        child = np.int64(nodes.links[root, 0])
        free_node(nodes, root)
        root = child
    return root


@helper
def put(nodes: Nodes, node: int, position: int, key: float, low: float, link: int) -> None:
    """Write an entry; the caller updates the node's count."""
    nodes.keys[node, position] = key
    nodes.links[node, position] = link
    if nodes.lows.shape[1] > 0:
        nodes.lows[node, position] = low


@helper
def _least(nodes: Nodes, node: int) -> float:
    """Return the least low of a node's entries; infinite where there are none."""
    least = np.inf
    if nodes.lows.shape[1] > 0:
        for i in range(nodes.heads[node, NodeHead.COUNT]):
            least = min(least, nodes.lows[node, i])
    return least


@helper
def _split(nodes: Nodes, node: int, position: int) -> int:
    """Move a part of a full node to a new one behind it, and return that.

    It is half, unless the new entry comes at an end: then most entries stay, since keys probably come in order.
    """
    fan_out = np.int64(nodes.keys.shape[1])
    kept = fan_out // 2
    if position == fan_out:
        kept = fan_out - max(fan_out // 8, 1)
    elif position == 0:
        kept = max(fan_out // 8, np.int64(1))
    other = new_node(nodes, nodes.heads[node, NodeHead.LEVEL])
    _copy(nodes, node, kept, fan_out, other, 0)
    nodes.heads[node, NodeHead.COUNT] = kept
    nodes.heads[other, NodeHead.COUNT] = fan_out - kept
    return other


@helper
def _balance(nodes: Nodes, left: int, right: int) -> None:
    """Give two neighbours the same number of entries, or the right one more."""
    count, others = np.int64(nodes.heads[left, NodeHead.COUNT]), np.int64(nodes.heads[right, NodeHead.COUNT])
    kept = (count + others) // 2
    if count < kept:
        moved = kept - count
        _copy(nodes, right, 0, moved, left, count)
        _copy(nodes, right, moved, others, right, 0)
    else:
        moved = count - kept
        _shift(nodes, right, 0, others, moved)
        _copy(nodes, left, kept, count, right, 0)
    nodes.heads[left, NodeHead.COUNT] = kept
    nodes.heads[right, NodeHead.COUNT] = count + others - kept


@helper
def _copy(nodes: Nodes, source: int, first: int, end: int, target: int, at: int) -> None:
    """Copy entries, in ascending order: within one node only towards its front."""
    for i in range(end - first):
        nodes.keys[target, at + i] = nodes.keys[source, first + i]
        nodes.links[target, at + i] = nodes.links[source, first + i]
    if nodes.lows.shape[1] > 0:
        for i in range(end - first):
            nodes.lows[target, at + i] = nodes.lows[source, first + i]


@helper
def _close(nodes: Nodes, node: int, position: int) -> None:
    count = np.int64(nodes.heads[node, NodeHead.COUNT])
    _copy(nodes, node, position + 1, count, node, position)
    nodes.heads[node, NodeHead.COUNT] = count - 1


@helper
def _shift(nodes: Nodes, node: int, position: int, count: int, by: int) -> None:
    """Move the entries from a position on towards the back."""
    for i in range(count - 1, position - 1, -1):
        nodes.keys[node, i + by] = nodes.keys[node, i]
        nodes.links[node, i + by] = nodes.links[node, i]
    if nodes.lows.shape[1] > 0:
        for i in range(count - 1, position - 1, -1):
            nodes.lows[node, i + by] = nodes.lows[node, i]
