"""How probable it is that an event satisfies an access predicate (Le Subscribe, 3.1: nu)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.le_subscribe._kernels.predicates import PRIOR, selectivity
from tocsin.matching.le_subscribe.state import FALLBACK, NO_SLOT, WIDEST, ClusterTotal, State
from tocsin.structures.array_types import Float64s
from tocsin.structures.jit import helper, kernel


@helper
def probability_of(state: State, entry: int) -> float:
    """Return the probability that an event satisfies an access predicate: its hits, which begin at the expected ones."""
    if entry == FALLBACK:
        return 1.0
    doubt = PRIOR * state.totals[ClusterTotal.WEIGHT]
    return (state.access.hits[entry] + doubt * expected(state, entry)) / (
        state.totals[ClusterTotal.EVENTS] + doubt
    )


@helper
def expected(state: State, entry: int) -> float:
    """Return the probability that an event satisfies an access predicate, by that of each of its equalities.

    They are taken to be independent but for their table's correlation, and together no more probable than one alone.
    """
    a, b = state.access.entries.keys[entry, 0], state.access.entries.keys[entry, 1]
    probability, least = 1.0, 1.0
    for w in range(WIDEST):
        slot = key_slot(a, b, w)
        if slot >= 0:
            chance = selectivity(state, slot)
            probability *= chance
            least = min(least, chance)
    table = state.access.table[entry]
    return min(probability * state.tables.correlation[table], least) if table >= 0 else probability


@kernel
def expect(state: State, events: float, probability: Float64s) -> None:
    """Count so many events towards every access predicate, as many for each as are to be expected.

    `probability` tells of some what they are to satisfy, and is below 0 for the others.
    """
    access = state.access
    for entry in range(FALLBACK + 1, access.entries.counters[1]):
        if access.members[entry] > 0:
            share = probability[entry] if probability[entry] >= 0.0 else expected(state, np.int64(entry))
            access.hits[entry] += events * share


@helper
def key_slot(a: int, b: int, which: int) -> int:
    """Return one slot of an access predicate's key, or -1 behind its last."""
    half = a if which < 2 else b
    slot = (half >> 32) & NO_SLOT if which % 2 == 0 else half & NO_SLOT
    return np.int64(-1) if slot == NO_SLOT else slot
