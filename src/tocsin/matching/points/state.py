"""The arrays of the matcher `points`: conjunctions under their ids, shapes, and trees by what they must equal."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import hash_index
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

INNER: Final = -1  # the shape of a conjunction that is not a point
NO_FIELD: Final = -1

MOST_EQUALS: Final = 2  # of a conjunction that is a point
MOST_PREDICATES: Final = 6  # of such a one: those, and two comparisons of each coordinate
MOST_SHAPES: Final = 256  # every event is asked about each

# forms: SIBLING, then
FORM_SHAPE: Final = 1
FORM_TREE: Final = 2  # the entry of its tree

# shapes
LIVE: Final = 0  # conjunctions that have it
WIDTH: Final = 1  # predicates
EQUALS: Final = 2  # equalities
TAGS: Final = 3  # of the predicates, in the order they were given
ROLES: Final = TAGS + MOST_PREDICATES  # which equality, or coordinate, each is
MEANT: Final = ROLES + MOST_PREDICATES  # the fields of the equalities
SIDES: Final = (
    MEANT + MOST_EQUALS
)  # of each coordinate the field below and whether it may be equal, and that above
_COLUMNS: Final = SIDES + 8

# roles: an equality is 0 or 1
FIRST_AXIS: Final = MOST_EQUALS  # and the next one
BETWEEN: Final = FIRST_AXIS + 2  # both coordinates

# trees: the shape and two keys, then
ROOT: Final = 3

# tops
FREE_FORM: Final = 0
TOP_FORM: Final = 1
LIVE_FORMS: Final = 2
PREDICATES: Final = 3  # of conjunctions that are points
SHAPES: Final = 4  # rows of shapes ever used
EVENTS: Final = 5
QUESTIONS: Final = 6
_TOPS: Final = 7


class State(NamedTuple):
    """A conjunction has a number; one that is no point is held by the inner matcher, with its number for an id."""

    ids: HashIndex  # of one integer
    first: NDArray[np.int32]  # [ids] the newest conjunction of each
    forms: NDArray[np.int32]  # [numbers, 3]
    owner: NDArray[np.int32]  # [numbers] the entry of the id, or -1
    shapes: NDArray[np.int64]  # [shapes, 25]
    trees: HashIndex  # of shape and keys, and beside them the root
    tops: NDArray[np.int64]  # [7]


class Values(NamedTuple):
    """The numbers of a batch's pairs: each, or the float below what no float equals, and that number's neighbours."""

    at: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]


def new_state() -> State:
    """Return the state of a matcher that holds nothing."""
    tops = np.zeros(_TOPS, dtype=np.int64)
    tops[FREE_FORM] = -1
    return State(
        hash_index.new_hash_index(1),
        np.zeros(64, dtype=np.int32),
        np.zeros((64, 3), dtype=np.int32),
        np.zeros(64, dtype=np.int32),
        np.zeros((MOST_SHAPES, _COLUMNS), dtype=np.int64),
        hash_index.new_hash_index(3, extra=1),
        tops,
    )


def with_forms(state: State, more: int) -> State:
    """Return the state with room for so many more conjunctions, each with an id and a tree of its own."""
    state = state._replace(
        ids=hash_index.with_room(state.ids, more), trees=hash_index.with_room(state.trees, more)
    )
    state = grown(state, ("first",), len(state.ids.chain))
    return grown(state, ("forms", "owner"), int(state.tops[TOP_FORM]) + more)
