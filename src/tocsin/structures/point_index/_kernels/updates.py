"""Inserting and removing points one by one."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index._kernels.allocation import copy_points, give_block, give_pair, take_block
from tocsin.structures.point_index.state import LEAF, MERGED, NONE, Link, State, Top

_SMALL: Final = 4 * LEAF  # points up to which a node is never rebalanced
_SHARE: Final = 0.7  # of a node's points that one child may have


@kernel
def insert(
    state: State, roots: Int64s, ids: Int64s, x1: Float64s, x2: Float64s, start: int
) -> tuple[int, int]:
    """Insert points from `start` on, each into its root's tree; no id is in the index.

    Return the number done and a node that must be rebuilt before the next, because it is out of balance or a full leaf;
    NONE if there is no room for a block, or all are done.
    """
    for i in range(start, ids.shape[0]):
        if state.tops[Top.SLOT] + LEAF > state.ids.shape[0]:
            return np.int64(i), np.int64(NONE)
        node, uneven = roots[i], np.int64(NONE)
        while True:
            link = state.links[node]
            _widen(state.boxes[node], x1[i], x2[i], link[Link.COUNT] == 0)
            link[Link.COUNT] += 1
            child = np.int64(link[Link.CHILD])
            if child < 0:
                break
            value = x1[i] if link[Link.AXIS] == 0 else x2[i]
            sizes = state.links[child, Link.COUNT], state.links[child + 1, Link.COUNT]
            side = (
                1
                if value > state.splits[node] or (value == state.splits[node] and sizes[1] < sizes[0])
                else 0
            )
            most = max(sizes[side] + 1, sizes[1 - side])
            if uneven < 0 and link[Link.COUNT] > _SMALL and most > _SHARE * link[Link.COUNT]:
                uneven = node
            node = child + side
        _put(state, node, ids[i], x1[i], x2[i])
        state.tops[Top.POINTS] += 1
        if uneven >= 0:
            return np.int64(i + 1), uneven
        if state.links[node, Link.COUNT] == LEAF:
            return np.int64(i + 1), node
    return ids.shape[0], np.int64(NONE)


@helper
def _widen(box: Float64s, x1: float, x2: float, is_first: bool) -> None:
    """Extend a box to contain a point, or set it to the point if it is the first."""
    if is_first:
        box[0], box[1], box[2], box[3] = x1, x1, x2, x2
    else:
        box[0] = min(box[0], x1)
        box[1] = max(box[1], x1)
        box[2] = min(box[2], x2)
        box[3] = max(box[3], x2)


@helper
def _put(state: State, node: int, id_: int, x1: float, x2: float) -> None:
    """Put a point into a leaf that is not full and counts it already; its block grows if it must."""
    link = state.links[node]
    last = np.int64(link[Link.COUNT]) - 1
    if last == 0:
        link[Link.CLASS] = 0
        link[Link.BLOCK] = take_block(state, np.int64(0))
    elif last == size_of(np.int64(link[Link.CLASS])):
        class_ = np.int64(link[Link.CLASS]) + 1
        first = take_block(state, class_)
        copy_points(state, np.int64(link[Link.BLOCK]), state, first, last)
        give_block(state, node)
        link[Link.BLOCK] = first
        link[Link.CLASS] = class_
    slot = np.int64(link[Link.BLOCK]) + last
    state.x1[slot], state.x2[slot], state.ids[slot] = x1, x2, id_
    state.where[id_] = node


@kernel
def remove(state: State, ids: Int64s, start: int) -> tuple[int, int]:
    """Remove the points of ids from `start` on; unknown ids are skipped.

    Return the number done and a node that must be rebuilt before the next, because it is out of balance; NONE if there
    is no room for a block, or all are done.
    """
    for i in range(start, ids.shape[0]):
        id_ = ids[i]
        if id_ < 0 or id_ >= state.where.shape[0] or state.where[id_] < 0:
            continue
        if state.tops[Top.SLOT] + LEAF > state.ids.shape[0]:
            return np.int64(i), np.int64(NONE)
        node = np.int64(state.where[id_])
        state.where[id_] = NONE
        state.tops[Top.POINTS] -= 1
        uneven = _follow_up(state, node, _take(state, node, id_))
        if uneven >= 0:
            return np.int64(i + 1), uneven
    return ids.shape[0], np.int64(NONE)


@helper
def _take(state: State, node: int, id_: int) -> bool:
    """Remove a point from its leaf; tell whether the leaf's box may have become smaller."""
    link, box = state.links[node], state.boxes[node]
    first = np.int64(link[Link.BLOCK])
    slot = first
    while state.ids[slot] != id_:
        slot += 1
    x1, x2 = state.x1[slot], state.x2[slot]
    link[Link.COUNT] -= 1
    last = first + link[Link.COUNT]
    state.x1[slot], state.x2[slot], state.ids[slot] = state.x1[last], state.x2[last], state.ids[last]
    if link[Link.COUNT] == 0:
        give_block(state, node)
        return True
    if box[0] < x1 < box[1] and box[2] < x2 < box[3]:
        return False
    for i in range(first, last):
        _widen(box, state.x1[i], state.x2[i], i == first)
    return True


@helper
def _follow_up(state: State, leaf: int, is_smaller: bool) -> int:
    """Update the nodes above a leaf that lost a point; return the highest that is out of balance, or NONE.

    A node with few points becomes a leaf; both its children are leaves, since inner nodes have more points.
    """
    uneven, node = np.int64(NONE), np.int64(state.links[leaf, Link.PARENT])
    while node >= 0:
        link = state.links[node]
        link[Link.COUNT] -= 1
        child = np.int64(link[Link.CHILD])
        if is_smaller:
            is_smaller = _unite(state, node, child)
        if link[Link.COUNT] <= MERGED:
            _merge(state, node, child)
        elif link[Link.COUNT] > _SMALL:
            most = max(state.links[child, Link.COUNT], state.links[child + 1, Link.COUNT])
            if most > _SHARE * link[Link.COUNT]:
                uneven = node
        node = np.int64(link[Link.PARENT])
    return uneven


@helper
def _unite(state: State, node: int, child: int) -> bool:
    """Set a node's box to enclose its children's; tell whether it has changed."""
    box, is_changed = state.boxes[node], False
    for side in range(4):
        if state.links[child, Link.COUNT] == 0:
            value = state.boxes[child + 1, side]
        elif state.links[child + 1, Link.COUNT] == 0:
            value = state.boxes[child, side]
        elif side % 2 == 0:
            value = min(state.boxes[child, side], state.boxes[child + 1, side])
        else:
            value = max(state.boxes[child, side], state.boxes[child + 1, side])
        is_changed |= value != box[side]
        box[side] = value
    return is_changed


@helper
def _merge(state: State, node: int, child: int) -> None:
    """Move the points of two leaves into their parent, which becomes a leaf."""
    link = state.links[node]
    class_, first, count = class_of(np.int64(link[Link.COUNT])), np.int64(NONE), np.int64(0)
    if link[Link.COUNT] > 0:
        first = take_block(state, class_)
    for leaf in range(child, child + 2):
        size = np.int64(state.links[leaf, Link.COUNT])
        copy_points(state, np.int64(state.links[leaf, Link.BLOCK]), state, first + count, size)
        count += size
        give_block(state, leaf)
        state.links[leaf, Link.COUNT] = 0
    for i in range(first, first + count):
        state.where[state.ids[i]] = node
    give_pair(state, child)
    link[Link.CHILD] = NONE
    link[Link.BLOCK] = first
    link[Link.CLASS] = class_
