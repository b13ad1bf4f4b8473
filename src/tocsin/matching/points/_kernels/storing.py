"""Conjunctions under their subscriptions' ids, and the trees of those that are points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import enter, free_number, new_number
from tocsin.matching.points.state import (
    FORM_SHAPE,
    FORM_TREE,
    FREE_FORM,
    INNER,
    LIVE,
    LIVE_FORMS,
    PREDICATES,
    ROOT,
    TOP_FORM,
    WIDTH,
    State,
)
from tocsin.structures import hash_index
from tocsin.structures.jit import kernel
from tocsin.structures.point_index.state import COUNT


@kernel
def number_all(state: State, ids: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """Give conjunctions numbers under their subscriptions' ids; there must be room."""
    for i in range(ids.shape[0]):
        number = new_number(state.forms, state.tops, FREE_FORM, TOP_FORM)
        enter(state.ids, state.first, state.forms, state.owner, ids[i], number)
        state.forms[number, FORM_SHAPE] = INNER
        numbers[i] = number
        state.tops[LIVE_FORMS] += 1


@kernel
def tree_all(
    state: State, numbers: NDArray[np.int64], shape: int, keys: NDArray[np.int64], fresh: NDArray[np.int64]
) -> int:
    """Let conjunctions of one shape have the trees of their keys; write the entries that are new, return how many.

    There must be room for as many trees.
    """
    new = np.int64(0)
    for i in range(numbers.shape[0]):
        entry = np.int64(hash_index.find(state.trees, shape, keys[i, 0], keys[i, 1]))
        if entry < 0:
            entry = np.int64(hash_index.insert(state.trees, shape, keys[i, 0], keys[i, 1]))
            fresh[new] = entry
            new += 1
        state.forms[numbers[i], FORM_SHAPE] = shape
        state.forms[numbers[i], FORM_TREE] = entry
    state.shapes[shape, LIVE] += numbers.shape[0]
    state.tops[PREDICATES] += numbers.shape[0] * state.shapes[shape, WIDTH]
    return new


@kernel
def leave(
    state: State, numbers: NDArray[np.int64], links: NDArray[np.int32], felled: NDArray[np.int64]
) -> int:
    """Give up numbers whose points are gone; `links` are those of the trees' nodes.

    Write the roots of trees that have no points, and return how many: they are of no use from now on.
    """
    gone = np.int64(0)
    for i in range(numbers.shape[0]):
        number = numbers[i]
        shape = np.int64(state.forms[number, FORM_SHAPE])
        if shape != INNER:
            state.shapes[shape, LIVE] -= 1
            state.tops[PREDICATES] -= state.shapes[shape, WIDTH]
            entry = np.int64(state.forms[number, FORM_TREE])
            root = state.trees.keys[entry, ROOT]
            if root >= 0 and links[root, COUNT] == 0:
                felled[gone] = root
                gone += 1
                state.trees.keys[entry, ROOT] = -1  # others of these numbers may have had it too
                hash_index.remove(state.trees, entry)
        state.owner[number] = -1
        free_number(state.forms, state.tops, FREE_FORM, number)
        state.tops[LIVE_FORMS] -= 1
    return gone
