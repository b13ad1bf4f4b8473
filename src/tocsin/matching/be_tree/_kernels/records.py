"""Numbers of conjunctions, and counts of their attributes."""

from __future__ import annotations

from tocsin.matching._kernels.predicates import count_uses
from tocsin.matching.be_tree.state import State
from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import kernel


@kernel
def keep(state: State, ids: Int64s, batch: Expressions) -> None:
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
