"""Rebuilding a subtree as a balanced tree."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.array_types import Float64s, Int32s
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index._kernels.allocation import (
    copy_points,
    give_block,
    give_pair,
    take_block,
    take_pair,
)
from tocsin.structures.point_index.state import FILL, NONE, Link, Scratch, State

_MULTIPLIER: Final = 1_103_515_245
_INCREMENT: Final = 12_345
_MODULUS: Final = 0x7FFFFFFF


@kernel
def rebuild(state: State, node: int, scratch: Scratch, count: int) -> int:
    """Rebuild the subtree of a node from its points and the first `count` of `scratch`; return the number of points.

    There must be room in `scratch` for all of them, and in `state` for their leaves in new nodes and new blocks. Costs
    O(n log n). The nodes above stay as they are.
    """
    count = _gather(state, node, scratch, count)
    stack = scratch.stack
    stack[0, 0], stack[0, 1], stack[0, 2] = node, 0, count
    left = np.int64(1)
    while left > 0:
        left -= 1
        at, begin, end = stack[left, 0], stack[left, 1], stack[left, 2]
        link, box = state.links[at], state.boxes[at]
        _enclose(scratch, begin, end, box)
        size = end - begin
        link[Link.COUNT] = size
        leaves = (size + FILL - 1) // FILL
        if leaves <= 1:
            _write_leaf(state, at, scratch, begin, size)
            continue
        # Halved first, because the difference of two large floats may overflow.
        axis = 0 if 0.5 * box[1] - 0.5 * box[0] >= 0.5 * box[3] - 0.5 * box[2] else 1
        middle = begin + size * (leaves // 2) // leaves
        keys = scratch.x1 if axis == 0 else scratch.x2
        _select(keys, scratch.x2 if axis == 0 else scratch.x1, scratch.ids, begin, end, middle)
        child = take_pair(state, at)
        link[Link.CHILD] = child
        link[Link.AXIS] = axis
        state.splits[at] = keys[middle]
        stack[left, 0], stack[left, 1], stack[left, 2] = child + 1, middle, end
        stack[left + 1, 0], stack[left + 1, 1], stack[left + 1, 2] = child, begin, middle
        left += 2
    return count


@helper
def _gather(state: State, node: int, scratch: Scratch, count: int) -> int:
    """Move all points below a node to the scratch and free their nodes and blocks; the node becomes an empty leaf."""
    stack = scratch.stack
    stack[0, 0] = node
    left = np.int64(1)
    while left > 0:
        left -= 1
        at = stack[left, 0]
        link = state.links[at]
        child = np.int64(link[Link.CHILD])
        if child >= 0:
            stack[left, 0] = child + 1
            stack[left + 1, 0] = child
            left += 2
            give_pair(state, child)
        else:
            copy_points(state, np.int64(link[Link.BLOCK]), scratch, count, np.int64(link[Link.COUNT]))
            count += link[Link.COUNT]
            give_block(state, at)
        link[Link.CHILD] = NONE
        link[Link.COUNT] = 0
    return count


@helper
def _enclose(scratch: Scratch, begin: int, end: int, box: Float64s) -> None:
    """Write the smallest box around the points from `begin` to `end`: the least and greatest x1, then x2."""
    low1, high1, low2, high2 = np.inf, -np.inf, np.inf, -np.inf
    for i in range(begin, end):
        low1 = min(low1, scratch.x1[i])
        high1 = max(high1, scratch.x1[i])
        low2 = min(low2, scratch.x2[i])
        high2 = max(high2, scratch.x2[i])
    box[0], box[1], box[2], box[3] = low1, high1, low2, high2


@helper
def _write_leaf(state: State, node: int, scratch: Scratch, begin: int, count: int) -> None:
    """Copy points from the scratch into a new block of a leaf, and record the leaf of each id."""
    if count == 0:
        return
    link = state.links[node]
    link[Link.CLASS] = class_of(count)
    first = take_block(state, np.int64(link[Link.CLASS]))
    link[Link.BLOCK] = first
    copy_points(scratch, begin, state, first, count)
    for i in range(first, first + count):
        state.where[state.ids[i]] = node


@helper
def _select(keys: Float64s, others: Float64s, ids: Int32s, begin: int, end: int, middle: int) -> None:
    """Partition points so that no key before `middle` is greater, and none behind it less, than the key there.

    Hoare's selection, with the median of three keys, two of them at random positions, so that no order of the points is
    a bad case. Keys that equal the pivot are swapped, so that many equal keys are divided in halves.
    """
    low, high, random = np.int64(begin), np.int64(end - 1), np.int64(end - begin)
    while low < high:
        size = high - low + 1
        random = (random * _MULTIPLIER + _INCREMENT) & _MODULUS
        a = keys[low + random % size]
        random = (random * _MULTIPLIER + _INCREMENT) & _MODULUS
        b = keys[low + random % size]
        c = keys[low + size // 2]
        pivot = max(min(a, b), min(max(a, b), c))
        i, k = low, high
        while i <= k:
            while keys[i] < pivot:
                i += 1
            while keys[k] > pivot:
                k -= 1
            if i <= k:
                keys[i], keys[k] = keys[k], keys[i]
                others[i], others[k] = others[k], others[i]
                ids[i], ids[k] = ids[k], ids[i]
                i += 1
                k -= 1
        if middle <= k:
            high = k
        elif middle >= i:
            low = i
        else:
            return
