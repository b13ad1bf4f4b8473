"""The arrays of the matcher `points`: stored conjunctions, their shapes, and trees by the values of equalities."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.structures import hash_index
from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.hash_index import HashIndex

INNER: Final = -1  # the shape of a conjunction that is not a point
NO_FIELD: Final = -1

MOST_EQUALS: Final = 2  # of a conjunction that is a point
MOST_PREDICATES: Final = 6  # of a point: its equalities, and two comparisons of each coordinate
MOST_SHAPES: Final = 256  # each is searched for every event


class ShapeColumn(IntEnum):
    """Columns of a shape."""

    LIVE = 0  # conjunctions that have it
    WIDTH = 1  # predicates
    EQUALS = 2  # equalities
    TAGS = 3  # of the predicates, in the order they were given
    ROLES = TAGS + MOST_PREDICATES  # which equality, or coordinate, each is
    FIELDS = ROLES + MOST_PREDICATES  # the fields of the equalities
    # Of each coordinate the field below and whether it may be equal, and that above
    SIDES = FIELDS + MOST_EQUALS


_COLUMNS: Final = ShapeColumn.SIDES + 8

# roles: an equality is 0 or 1
FIRST_AXIS: Final = MOST_EQUALS  # and the next one
BETWEEN: Final = FIRST_AXIS + 2  # both coordinates

# trees: the shape and two keys, then
ROOT: Final = 3


class StoredColumn(IntEnum):
    """Columns of `State.store.rows` behind SIBLING."""

    SHAPE = 1  # or INNER
    TREE = 2  # the entry of its tree


class Total(IntEnum):
    """Places in `State.totals`."""

    SHAPES = 0  # rows of shapes ever in use
    EVENTS = 1
    RECTANGLES = 2  # searched for events


class State(NamedTuple):
    """A conjunction that is not a point is stored in the inner matcher, under its number as id."""

    store: ConjunctionStore  # rows: SIBLING, SHAPE, TREE; PREDICATES counts those of points alone
    shapes: Int64s  # [shapes, 25]
    trees: HashIndex  # of shape and keys, and beside them the root
    totals: Int64s  # [3]


class Values(NamedTuple):
    """The numbers of a batch's pairs, or the float below a number that no float equals, and their neighbours."""

    at: Float64s
    below: Float64s
    above: Float64s


def new_state() -> State:
    """Return the state of an empty matcher."""
    return State(
        conjunction_store.new_store(3),
        np.zeros((MOST_SHAPES, _COLUMNS), dtype=np.int64),
        hash_index.new_hash_index(3, extra=1),
        np.zeros(len(Total), dtype=np.int64),
    )


def with_room(state: State, more: int) -> State:
    """Return the state with room for so many more conjunctions, each with an id and a tree of its own."""
    return state._replace(
        store=conjunction_store.with_room(state.store, more), trees=hash_index.with_room(state.trees, more)
    )
