"""Allocation of nodes and of blocks of points."""

from __future__ import annotations

import numpy as np

from tocsin.structures import free_lists
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index.state import NONE, Link, Scratch, State, Top


@helper
def _clear(state: State, node: int, parent: int) -> None:
    """Make a node a leaf without points."""
    link = state.links[node]
    link[Link.CHILD] = NONE
    link[Link.COUNT] = 0
    link[Link.PARENT] = parent
    link[Link.CLASS] = NONE


@kernel
def new_roots(state: State, roots: Int64s) -> None:
    """Write the roots of new trees; there must be room for as many nodes."""
    for i in range(roots.shape[0]):
        root = free_lists.take(state.links[:, Link.PARENT], state.tops, Top.FREE_ROOT, Top.NODE)
        _clear(state, root, NONE)
        roots[i] = root


@kernel
def give_roots(state: State, roots: Int64s) -> None:
    """Give back the roots of trees without points."""
    for i in range(roots.shape[0]):
        free_lists.give(state.links[:, Link.PARENT], state.tops, Top.FREE_ROOT, roots[i])


@helper
def take_pair(state: State, parent: int) -> int:
    """Return the first of two new leaves; there must be room."""
    first = free_lists.take_run(
        state.links[:, Link.PARENT], state.tops, Top.FREE_PAIR, state.tops, Top.NODE, 2
    )
    _clear(state, first, parent)
    _clear(state, first + 1, parent)
    return first


@helper
def give_pair(state: State, first: int) -> None:
    """Give back two neighbours; their other links stay until they are taken again."""
    free_lists.give(state.links[:, Link.PARENT], state.tops, Top.FREE_PAIR, first)


@helper
def take_block(state: State, class_: int) -> int:
    """Return the first slot of a block that is not in use; there must be room."""
    return free_lists.take_run(state.ids, state.free, class_, state.tops, Top.SLOT, size_of(class_))


@helper
def give_block(state: State, node: int) -> None:
    """Give back the block of a leaf, if it has one."""
    link = state.links[node]
    if link[Link.CLASS] >= 0:
        first = np.int64(link[Link.BLOCK])
        free_lists.give(state.ids, state.free, link[Link.CLASS], first)
        link[Link.CLASS] = NONE


@helper
def copy_points(source: State | Scratch, first: int, target: State | Scratch, at: int, count: int) -> None:
    """Copy neighbouring points from one position to another."""
    for i in range(count):
        target.x1[at + i] = source.x1[first + i]
        target.x2[at + i] = source.x2[first + i]
        target.ids[at + i] = source.ids[first + i]


@kernel
def compact(state: State, slots: Scratch) -> None:
    """Copy every leaf's points to new slots, in blocks no larger than they need; there must be room.

    The free lists of blocks are emptied, since the caller replaces the old slots by the new ones.
    """
    end = np.int64(0)
    for node in range(state.tops[Top.NODE]):
        link = state.links[node]
        if link[Link.CHILD] >= 0 or link[Link.COUNT] == 0:  # free nodes count none
            continue
        count = np.int64(link[Link.COUNT])
        copy_points(state, np.int64(link[Link.BLOCK]), slots, end, count)
        link[Link.BLOCK] = end
        link[Link.CLASS] = class_of(count)
        end += size_of(np.int64(link[Link.CLASS]))
    state.free[:] = NONE
    state.tops[Top.SLOT] = end
