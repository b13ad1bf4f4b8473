"""Balanced trees, built at once of any number of points."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index._kernels.memory import give_block, give_pair, take_block, take_pair
from tocsin.structures.point_index.state import (
    AXIS,
    BLOCK,
    CHILD,
    CLASS,
    COUNT,
    FILL,
    NONE,
    Scratch,
    State,
)

_MULTIPLIER: Final = 1_103_515_245
_INCREMENT: Final = 12_345
_MODULUS: Final = 0x7FFFFFFF


@kernel
def rebuild(state: State, node: int, scratch: Scratch, count: int) -> int:
    """Build anew all below a node, of its points and of the first `count` of `scratch`; return how many there are.

    There must be room in `scratch` for all of them, and in `state` for as many leaves as they fill, with new nodes and
    new blocks. Costs O(n log n). What is above the node is left as it is.
    """
    count = _gather(state, node, scratch, count)
    waiting = scratch.waiting
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = node, 0, count
    left = np.int64(1)
    while left > 0:
        left -= 1
        at, begin, end = waiting[left, 0], waiting[left, 1], waiting[left, 2]
        link, box = state.links[at], state.boxes[at]
        _enclose(scratch, begin, end, box)
        size = end - begin
        link[COUNT] = size
        leaves = (size + FILL - 1) // FILL
        if leaves <= 1:
            _write_leaf(state, at, scratch, begin, size)
            continue
        # Halved, because the difference of two floats may be none.
        axis = 0 if 0.5 * box[1] - 0.5 * box[0] >= 0.5 * box[3] - 0.5 * box[2] else 1
        middle = begin + size * (leaves // 2) // leaves
        keys = scratch.x1 if axis == 0 else scratch.x2
        _select(keys, scratch.x2 if axis == 0 else scratch.x1, scratch.ids, begin, end, middle)
        child = take_pair(state, at)
        link[CHILD] = child
        link[AXIS] = axis
        state.splits[at] = keys[middle]
        waiting[left, 0], waiting[left, 1], waiting[left, 2] = child + 1, middle, end
        waiting[left + 1, 0], waiting[left + 1, 1], waiting[left + 1, 2] = child, begin, middle
        left += 2
    return count


@helper
def _gather(state: State, node: int, scratch: Scratch, count: int) -> int:
    """Take all points below a node to the scratch, and give back what they were in; the node is an empty leaf then."""
    waiting = scratch.waiting
    waiting[0, 0] = node
    left = np.int64(1)
    while left > 0:
        left -= 1
        at = waiting[left, 0]
        link = state.links[at]
        child = np.int64(link[CHILD])
        if child >= 0:
            waiting[left, 0] = child + 1
            waiting[left + 1, 0] = child
            left += 2
            give_pair(state, child)
        else:
            first = np.int64(link[BLOCK])
            for i in range(first, first + link[COUNT]):
                scratch.x1[count] = state.x1[i]
                scratch.x2[count] = state.x2[i]
                scratch.ids[count] = state.ids[i]
                count += 1
            give_block(state, at)
        link[CHILD] = NONE
        link[COUNT] = 0
    return count


@helper
def _enclose(scratch: Scratch, begin: int, end: int, box: NDArray[np.float64]) -> None:
    low1, high1, low2, high2 = np.inf, -np.inf, np.inf, -np.inf
    for i in range(begin, end):
        low1 = min(low1, scratch.x1[i])
        high1 = max(high1, scratch.x1[i])
        low2 = min(low2, scratch.x2[i])
        high2 = max(high2, scratch.x2[i])
    box[0], box[1], box[2], box[3] = low1, high1, low2, high2


@helper
def _write_leaf(state: State, node: int, scratch: Scratch, begin: int, count: int) -> None:
    if count == 0:
        return
    link = state.links[node]
    link[CLASS] = class_of(count)
    first = take_block(state, np.int64(link[CLASS]))
    link[BLOCK] = first
    for i in range(count):
        state.x1[first + i] = scratch.x1[begin + i]
        state.x2[first + i] = scratch.x2[begin + i]
        state.ids[first + i] = scratch.ids[begin + i]
        state.where[scratch.ids[begin + i]] = node


@helper
def _select(
    keys: NDArray[np.float64],
    others: NDArray[np.float64],
    ids: NDArray[np.int32],
    begin: int,
    end: int,
    middle: int,
) -> None:
    """Put points in such an order that no key before `middle` is greater, and none behind it less, than the one there.

    Hoare's way, with the median of three keys from places that no order of the points foresees. Keys that equal the
    pivot are swapped, so that many equal ones are divided in halves.
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
