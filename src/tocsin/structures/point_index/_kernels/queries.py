"""Finding and counting the points in rectangles."""

from __future__ import annotations

import numpy as np

from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index.state import Link, Rectangles, State


@kernel
def find(
    state: State, rectangles: Rectangles, start: int, stack: Int64s, offsets: Int64s, found: Int64s
) -> tuple[int, int]:
    """Write the ids in rectangles from `start` on; those of rectangle i are `found[offsets[i]:offsets[i + 1]]`.

    Return the number of rectangles done and the least length of `found` for the next one, 0 if all are done. Leaves of
    a node within the rectangle are copied; points of a leaf at its rim are tested. `stack` has room for DEPTH nodes.
    """
    for q in range(start, rectangles.roots.shape[0]):
        end = find_in(state, rectangles, q, stack, offsets[q], found)
        if end < 0:
            return np.int64(q), ~end
        offsets[q + 1] = end
    return rectangles.roots.shape[0], np.int64(0)


@helper
def find_in(state: State, rectangles: Rectangles, q: int, stack: Int64s, begin: int, found: Int64s) -> int:
    """Write the ids in rectangle `q` from `begin` on, and return their end; `~n` if `found` has to have room for `n`."""
    end, left = np.int64(begin), np.int64(1)
    stack[0] = rectangles.roots[q]
    while left > 0:
        left -= 1
        node = stack[left]
        is_within = node < 0
        node = ~node if is_within else node
        link = state.links[node]
        if not is_within:
            meets, is_within = _relation(state, node, rectangles, q)
            if not meets:
                continue
        child, size = np.int64(link[Link.CHILD]), np.int64(link[Link.COUNT])
        if child >= 0:
            stack[left] = ~(child + 1) if is_within else child + 1
            stack[left + 1] = ~child if is_within else child
            left += 2
            continue
        if end + size > found.shape[0]:
            return ~(end + size)
        first = np.int64(link[Link.BLOCK])
        if is_within:
            for i in range(size):
                found[end + i] = state.ids[first + i]
            end += size
        else:
            for i in range(first, first + size):
                found[end] = state.ids[i]  # the next one overwrites it, unless it is within
                end += np.int64(_is_within(state, i, rectangles, q))
    return end


@kernel
def count(state: State, rectangles: Rectangles, most: int, stack: Int64s, counts: Int64s) -> None:
    """Write the number of points in each rectangle; counting stops at `most` or more."""
    for q in range(rectangles.roots.shape[0]):
        total, left = np.int64(0), np.int64(1)
        stack[0] = rectangles.roots[q]
        while left > 0 and total < most:
            left -= 1
            node = stack[left]
            link = state.links[node]
            meets, is_within = _relation(state, node, rectangles, q)
            if not meets:
                continue
            child, size = np.int64(link[Link.CHILD]), np.int64(link[Link.COUNT])
            if is_within:
                total += size
            elif child >= 0:
                stack[left], stack[left + 1] = child + 1, child
                left += 2
            else:
                first = np.int64(link[Link.BLOCK])
                for i in range(first, first + size):
                    total += np.int64(_is_within(state, i, rectangles, q))
        counts[q] = total


@helper
def _relation(state: State, node: int, rectangles: Rectangles, q: int) -> tuple[bool, bool]:
    """Tell whether a rectangle may contain points of a node, and whether it contains them all."""
    box = state.boxes[node]
    outer_l, inner_l = rectangles.outer_l[q], rectangles.inner_l[q]
    inner_r, outer_r = rectangles.inner_r[q], rectangles.outer_r[q]
    meets = (
        state.links[node, Link.COUNT] > 0
        and box[1] > outer_l
        and box[0] <= inner_l
        and box[3] >= inner_r
        and box[2] < outer_r
    )
    return meets, box[0] > outer_l and box[1] <= inner_l and box[2] >= inner_r and box[3] < outer_r


@helper
def _is_within(state: State, slot: int, rectangles: Rectangles, q: int) -> bool:
    """Return whether the point in a slot lies in rectangle `q`."""
    # Bitwise, without branches: no branch predictor can tell which points at the rim are within.
    x1, x2 = state.x1[slot], state.x2[slot]
    return (
        (x1 > rectangles.outer_l[q])
        & (x1 <= rectangles.inner_l[q])
        & (x2 >= rectangles.inner_r[q])
        & (x2 < rectangles.outer_r[q])
    )
