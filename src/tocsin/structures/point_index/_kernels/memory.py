"""Nodes and blocks: taken when they are needed, and given back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import free_lists
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index.state import (
    BLOCK,
    CHILD,
    CLASS,
    COUNT,
    FREE_PAIR,
    FREE_ROOT,
    NONE,
    PARENT,
    TOP_NODE,
    TOP_SLOT,
    State,
)


@helper
def _clear(state: State, node: int, parent: int) -> None:
    """Make a node a leaf without points."""
    link = state.links[node]
    link[CHILD] = NONE
    link[COUNT] = 0
    link[PARENT] = parent
    link[CLASS] = NONE


@kernel
def new_roots(state: State, roots: NDArray[np.int64]) -> None:
    """Write the roots of new trees; there must be room for as many nodes."""
    for i in range(roots.shape[0]):
        root = free_lists.take(state.links[:, PARENT], state.tops, FREE_ROOT, TOP_NODE)
        _clear(state, root, NONE)
        roots[i] = root


@kernel
def give_roots(state: State, roots: NDArray[np.int64]) -> None:
    """Take back the roots of trees without points."""
    for i in range(roots.shape[0]):
        free_lists.give(state.links[:, PARENT], state.tops, FREE_ROOT, roots[i])


@helper
def take_pair(state: State, parent: int) -> int:
    """Return the first of two new leaves; there must be room."""
    first = free_lists.take_run(state.links[:, PARENT], state.tops, FREE_PAIR, state.tops, TOP_NODE, 2)
    _clear(state, first, parent)
    _clear(state, first + 1, parent)
    return first


@helper
def give_pair(state: State, first: int) -> None:
    """Take back two neighbours; their other links stay as they are until they are taken."""
    free_lists.give(state.links[:, PARENT], state.tops, FREE_PAIR, first)


@helper
def take_block(state: State, class_: int) -> int:
    """Return the first slot of a block that nobody uses; there must be room."""
    return free_lists.take_run(state.ids, state.free, class_, state.tops, TOP_SLOT, size_of(class_))


@helper
def give_block(state: State, node: int) -> None:
    """Take back the block of a leaf, if it has one."""
    link = state.links[node]
    if link[CLASS] >= 0:
        first = np.int64(link[BLOCK])
        free_lists.give(state.ids, state.free, link[CLASS], first)
        link[CLASS] = NONE


@kernel
def compact(state: State, x1: NDArray[np.float64], x2: NDArray[np.float64], ids: NDArray[np.int32]) -> None:
    """Copy every leaf's points to new slots, in blocks no larger than they need; there must be room.

    The free blocks are forgotten: the new slots are the index's from then on.
    """
    end = np.int64(0)
    for node in range(state.tops[TOP_NODE]):
        link = state.links[node]
        if link[CHILD] >= 0 or link[COUNT] == 0:  # free nodes count none
            continue
        first, count = np.int64(link[BLOCK]), np.int64(link[COUNT])
        for i in range(count):
            x1[end + i] = state.x1[first + i]
            x2[end + i] = state.x2[first + i]
            ids[end + i] = state.ids[first + i]
        link[BLOCK] = end
        link[CLASS] = class_of(count)
        end += size_of(np.int64(link[CLASS]))
    state.free[:] = NONE
    state.tops[TOP_SLOT] = end
