"""Which points lie in a rectangle, and how many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index.state import BLOCK, CHILD, COUNT, Rectangles, State


@kernel
def find(
    state: State,
    asked: Rectangles,
    start: int,
    waiting: NDArray[np.int64],
    offsets: NDArray[np.int64],
    found: NDArray[np.int64],
) -> tuple[int, int]:
    """Write the ids in rectangles from `start` on; those of rectangle i go from `offsets[i]` to `offsets[i + 1]`.

    Return how many rectangles are done, and how long `found` must at least be for the next, 0 if none is left. Where
    a node lies within, its leaves are copied; at the rim, points are looked at. `waiting` has room for DEPTH nodes.
    """
    for q in range(start, asked.roots.shape[0]):
        end, left = offsets[q], np.int64(1)
        waiting[0] = asked.roots[q]
        while left > 0:
            left -= 1
            node = waiting[left]
            is_within = node < 0
            node = ~node if is_within else node
            link = state.links[node]
            if not is_within:
                meets, is_within = _relation(state, node, asked, q)
                if not meets:
                    continue
            child, size = np.int64(link[CHILD]), np.int64(link[COUNT])
            if child >= 0:
                waiting[left] = ~(child + 1) if is_within else child + 1
                waiting[left + 1] = ~child if is_within else child
                left += 2
                continue
            if end + size > found.shape[0]:
                return np.int64(q), end + size
            first = np.int64(link[BLOCK])
            if is_within:
                for i in range(size):
                    found[end + i] = state.ids[first + i]
                end += size
            else:
                for i in range(first, first + size):
                    found[end] = state.ids[i]  # written over by the next, unless it is within
                    end += np.int64(_is_within(state, i, asked, q))
        offsets[q + 1] = end
    return asked.roots.shape[0], np.int64(0)


@kernel
def count(
    state: State, asked: Rectangles, most: int, waiting: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """Write how many points each rectangle holds; one that is found to hold `most` or more is not gone on with."""
    for q in range(asked.roots.shape[0]):
        total, left = np.int64(0), np.int64(1)
        waiting[0] = asked.roots[q]
        while left > 0 and total < most:
            left -= 1
            node = waiting[left]
            link = state.links[node]
            meets, is_within = _relation(state, node, asked, q)
            if not meets:
                continue
            child, size = np.int64(link[CHILD]), np.int64(link[COUNT])
            if is_within:
                total += size
            elif child >= 0:
                waiting[left], waiting[left + 1] = child + 1, child
                left += 2
            else:
                first = np.int64(link[BLOCK])
                for i in range(first, first + size):
                    total += np.int64(_is_within(state, i, asked, q))
        counts[q] = total


@helper
def _relation(state: State, node: int, asked: Rectangles, q: int) -> tuple[bool, bool]:
    """Tell whether a rectangle may meet a node's points, and whether all of them are within."""
    box = state.boxes[node]
    outer_l, inner_l, inner_r, outer_r = (
        asked.outer_l[q],
        asked.inner_l[q],
        asked.inner_r[q],
        asked.outer_r[q],
    )
    meets = (
        state.links[node, COUNT] > 0
        and box[1] > outer_l
        and box[0] <= inner_l
        and box[3] >= inner_r
        and box[2] < outer_r
    )
    return meets, box[0] > outer_l and box[1] <= inner_l and box[2] >= inner_r and box[3] < outer_r


@helper
def _is_within(state: State, slot: int, asked: Rectangles, q: int) -> bool:
    # Without a branch for each: whether a point at the rim is within cannot be foretold.
    x1, x2 = state.x1[slot], state.x2[slot]
    return (
        (x1 > asked.outer_l[q])
        & (x1 <= asked.inner_l[q])
        & (x2 >= asked.inner_r[q])
        & (x2 < asked.outer_r[q])
    )
