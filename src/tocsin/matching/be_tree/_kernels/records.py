"""Numbers of conjunctions, and their recall from the leaves of the tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.predicates import count_uses
from tocsin.matching.be_tree.state import Node, State, StoredColumn
from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number
from tocsin.matching.conjunction_store._kernels.records import read_rows
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.structures.jit import kernel


@kernel
def keep(state: State, ids: NDArray[np.int64], batch: Expressions) -> None:
    """Give conjunctions numbers under their subscriptions' ids; there must be room."""
    for i in range(ids.shape[0]):
        batch.numbers[i] = add_number(state.store, ids[i])
    state.store.counters[StoreCounter.PREDICATES] += batch.tags.shape[0]
    count_uses(state.attributes.uses, batch, 1)


@kernel
def forget(state: State, batch: Expressions) -> None:
    """Free the numbers of conjunctions that are taken out."""
    count_uses(state.attributes.uses, batch, -1)
    state.store.counters[StoreCounter.PREDICATES] -= batch.tags.shape[0]
    for i in range(batch.numbers.shape[0]):
        free_number(state.store, batch.numbers[i])


@kernel
def recall(state: State, numbers: NDArray[np.int64], begin: int, into: Expressions) -> int:
    """Read conjunctions from `begin` on, as many as there is room for; return where it stopped."""
    into.offsets[0] = into.bounds[0] = 0
    rows, count, clauses = state.leaves.rows, np.int64(0), np.int64(0)
    for i in range(begin, numbers.shape[0]):
        stored = state.store.rows[numbers[i]]
        at = state.nodes[stored[StoredColumn.NODE], Node.LEAF] + stored[StoredColumn.ROW]
        if i - begin == into.numbers.shape[0] or count + rows[at, 1] > into.tags.shape[0]:
            return i
        into.numbers[i - begin] = numbers[i]
        clauses, count = read_rows(rows, at + 1, rows[at, 1], into, clauses, count)
        into.offsets[i - begin + 1] = clauses
    return numbers.shape[0]
