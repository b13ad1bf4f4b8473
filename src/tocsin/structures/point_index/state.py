"""The arrays of the point index: nodes of trees, and blocks of points that lie next to each other."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures.array_types import Float64s, Int32s, Int64s, zeros
from tocsin.structures.growth import grown

NONE: Final = -1
LEAF: Final = 64  # points at which a leaf is split
FILL: Final = 48  # points that a leaf of a new tree has at the most
MERGED: Final = LEAF // 2  # points below which two leaves are one: an inner node has more
DEPTH: Final = 192  # nodes on the stack of a visit: more than any tree is deep
_CLASSES: Final = 12  # of 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 and 64 slots


class Link(IntEnum):
    """Columns of a node's links."""

    CHILD = 0  # the first of two children, which are neighbours; NONE in a leaf
    COUNT = 1  # points below
    PARENT = 2  # NONE in a root; of a free node, the next free one
    AXIS = 3  # 0 if the children are divided by x1, 1 if by x2
    BLOCK = 4  # a leaf's first slot
    CLASS = 5  # the size class of a leaf's block; NONE without points, and so without a block


class Top(IntEnum):
    """Positions in the counters of the index."""

    NODE = 0  # nodes ever in use
    FREE_PAIR = 1  # the first of two free neighbours
    FREE_ROOT = 2  # a single free node
    SLOT = 3  # slots ever in use
    POINTS = 4  # points in all trees


class State(NamedTuple):
    """Trees that share their memory. A tree is known by its root, which never changes.

    The points of a left child are at most `splits` along the axis, those of a right child at least. `boxes` are
    tight, and undefined where there are no points.
    """

    boxes: Float64s  # [nodes, 4] least and greatest x1, least and greatest x2
    splits: Float64s  # [nodes]
    links: Int32s  # [nodes, Link]
    x1: Float64s  # [slots]
    x2: Float64s  # [slots]
    ids: Int32s  # [slots] the first of a free block is the next free block of its size
    where: Int32s  # [ids] the leaf that each id's point is in, or NONE
    free: Int64s  # [classes] the first slot of a free block, or NONE
    tops: Int64s  # [Top]


class Scratch(NamedTuple):
    """Points on their way from one tree to another."""

    x1: Float64s
    x2: Float64s
    ids: Int32s
    stack: Int64s  # [DEPTH, 3] nodes to visit, with the begin and end of their points


class Rectangles(NamedTuple):
    """Queries for the points of one tree each with outer_l < x1 <= inner_l and inner_r <= x2 < outer_r.

    All arrays are contiguous and writable: others would compile a second version of each kernel.
    """

    roots: Int64s
    outer_l: Float64s
    inner_l: Float64s
    inner_r: Float64s
    outer_r: Float64s


def new_state() -> State:
    """Return an index without trees."""
    tops = np.zeros(len(Top), dtype=np.int64)
    tops[[Top.FREE_PAIR, Top.FREE_ROOT]] = NONE
    where, free = np.full(LEAF, NONE, dtype=np.int32), np.full(_CLASSES, NONE, dtype=np.int64)
    return zeros(State, LEAF, boxes=4, links=len(Link), where=where, free=free, tops=tops)


def new_scratch(points: int) -> Scratch:
    """Return room for so many points."""
    return zeros(Scratch, points, stack=np.empty((DEPTH, 3), dtype=np.int64))


def with_nodes(state: State, more: int) -> State:
    """Return the index with room for so many more nodes."""
    return grown(state, ("boxes", "splits", "links"), int(state.tops[Top.NODE]) + more)


def with_slots(state: State, more: int) -> State:
    """Return the index with room for blocks of so many more slots in all."""
    return grown(state, ("x1", "x2", "ids"), int(state.tops[Top.SLOT]) + more)


def with_places(state: State, ids: int) -> State:
    """Return the index with room for ids below a number."""
    known = len(state.where)
    state = grown(state, ("where",), ids)
    state.where[known:] = NONE
    return state
