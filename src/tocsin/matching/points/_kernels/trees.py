"""The trees of conjunctions that are points."""

from __future__ import annotations

import numpy as np

from tocsin.matching.conjunction_store._kernels.numbers import free_number
from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.points.state import INNER, ROOT, ShapeColumn, State, StoredColumn
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.jit import kernel
from tocsin.structures.point_index.state import Link


@kernel
def tree_all(state: State, numbers: Int64s, shape: int, keys: Int64s, fresh: Int64s) -> int:
    """Give conjunctions of one shape the trees of their keys; write the entries of new trees, and return how many.

    There must be room for as many trees.
    """
    new = np.int64(0)
    for i in range(numbers.shape[0]):
        entry = np.int64(hash_index.find(state.trees, shape, keys[i, 0], keys[i, 1]))
        if entry < 0:
            entry = np.int64(hash_index.insert(state.trees, shape, keys[i, 0], keys[i, 1]))
            fresh[new] = entry
            new += 1
        state.store.rows[numbers[i], StoredColumn.SHAPE] = shape
        state.store.rows[numbers[i], StoredColumn.TREE] = entry
    state.shapes[shape, ShapeColumn.LIVE] += numbers.shape[0]
    state.store.counters[StoreCounter.PREDICATES] += numbers.shape[0] * state.shapes[shape, ShapeColumn.WIDTH]
    return new


@kernel
def leave(state: State, numbers: Int64s, links: Int32s, felled: Int64s) -> int:
    """Free numbers whose points are gone; `links` are those of the trees' nodes.

    Write the roots of trees without points, which nothing leads to from now on, and return how many there are.
    """
    gone = np.int64(0)
    for i in range(numbers.shape[0]):
        number = numbers[i]
        shape = np.int64(state.store.rows[number, StoredColumn.SHAPE])
        if shape != INNER:
            state.shapes[shape, ShapeColumn.LIVE] -= 1
            state.store.counters[StoreCounter.PREDICATES] -= state.shapes[shape, ShapeColumn.WIDTH]
            entry = np.int64(state.store.rows[number, StoredColumn.TREE])
            root = state.trees.keys[entry, ROOT]
            if root >= 0 and links[root, Link.COUNT] == 0:
                felled[gone] = root
                gone += 1
                state.trees.keys[entry, ROOT] = -1  # others of these numbers may have had it too
                hash_index.remove(state.trees, entry)
        free_number(state.store, number)
    return gone
