"""The pivots of expressions: their choice (OpIndex, §4.3), and its review when the stream has changed."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.predicates import required_field
from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import Expressions, StoreColumn, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Op
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex.state import Gate, Pivot, Placement, State, StoredColumn, Top, Total
from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import helper, kernel

KNOWN: Final = 1000.0  # events after which they, not the subscriptions, tell how frequent an attribute is
_MUCH: Final = 4.0  # a pivot is given up when it is so many times as frequent as another
_UNITS: Final = ((1 << arrays.COUNT_BITS) - 1) << arrays.COUNT_BITS


@kernel
def choose_pivots(state: State, batch: Expressions, clauses: Int64s, pivots: Int64s) -> None:
    """Write, for each expression, the clause that gives its pivots, or -1, and the first of them."""
    for i in range(batch.numbers.shape[0]):
        clauses[i] = _pivot_clause(state, batch, i)
        pivots[i] = arrays.ALWAYS if clauses[i] < 0 else required_field(batch, batch.bounds[clauses[i]])


@helper
def _pivot_clause(state: State, batch: Expressions, i: int) -> int:
    """Return the least frequent of the clauses with the fewest predicates; -1 if no clause can have pivots."""
    best, size, least = np.int64(-1), np.int64(0), np.inf
    for clause in range(batch.offsets[i], batch.offsets[i + 1]):
        count = batch.bounds[clause + 1] - batch.bounds[clause]
        if best >= 0 and count > size:
            continue
        cost = _cost_of_clause(state, batch, clause)
        if cost < np.inf and (best < 0 or count < size or cost < least):
            best, size, least = clause, count, cost
    return best


@helper
def _cost_of_clause(state: State, batch: Expressions, clause: int) -> float:
    """Return how often events have a clause's pivots, all together; infinity if it can have none."""
    cost = 0.0
    for q in range(batch.bounds[clause], batch.bounds[clause + 1]):
        if batch.tags[q] >> FIELD_BITS in (Op.RESIDUAL, Op.MISSING):
            return np.inf
        cost += _frequency(state, required_field(batch, q))
    return cost


@helper
def _frequency(state: State, field: int) -> float:
    """Return how frequent a field's attribute is: in events, or in subscriptions while few events were seen."""
    attribute = field // FIELDS
    if state.totals[Total.EVENTS] >= KNOWN * state.totals[Total.WEIGHT]:
        return state.attributes.seen[attribute]
    return np.float64(state.attributes.uses[attribute])


@kernel
def review(state: State, start: int, end: int, moves: Int64s) -> tuple[int, int]:
    """Write the expressions from `start` to `end` whose pivots have become too frequent, until `moves` is full.

    Returns the expression it stopped at, and the number written.
    """
    count = np.int64(0)
    for number in range(start, min(np.int64(end), state.store.counters[StoreCounter.TOP])):
        if state.store.owner[number] < 0 or state.store.rows[number, StoredColumn.PLACEMENT] < 0:
            continue
        own = _own_cost(state, number)
        if _is_much_more(own, 0.0) and _is_much_more(own, _least_cost(state, number)):
            if count == moves.shape[0]:
                return number, count
            moves[count] = number
            count += 1
    return end, count


@helper
def _seen(state: State, field: int) -> float:
    """Return how many events had a field's attribute, the recent ones counting more."""
    return state.attributes.seen[field // FIELDS] / state.totals[Total.WEIGHT]


@helper
def _own_cost(state: State, number: int) -> float:
    """Return how often events have an expression's pivots, each attribute once; 0 if it can have no other pivot."""
    placement = np.int64(state.store.rows[number, StoredColumn.PLACEMENT])
    cost, before = 0.0, np.int64(-1)
    while placement >= 0:
        field = state.pivots[state.placements[placement, Placement.PIVOT], Pivot.FIELD]
        if field == arrays.ALWAYS:
            return 0.0
        cost += _seen(state, field) if field // FIELDS != before else 0.0
        before = field // FIELDS
        placement = np.int64(state.placements[placement, Placement.NEXT])
    return cost


@helper
def _least_cost(state: State, number: int) -> float:
    """Return how often events would have an expression's pivots if they were chosen now."""
    rows = state.records.rows
    first = np.int64(state.store.rows[number, StoreColumn.RECORD])
    count = rows[first, 1]  # negative for a CNF
    least, cost = np.inf, 0.0
    size, fewest, left = np.int64(1), np.int64(1) << 62, np.int64(1)
    for at in range(first + 1, first + 1 + abs(count)):
        tag = rows[at, 1]
        op = tag >> FIELD_BITS
        if op == conjunction_store.HIGH_ROW:
            continue
        if op == conjunction_store.CLAUSE_ROW:
            size, left, cost = rows[at, 0], rows[at, 0], 0.0
            continue
        if count > 0:
            left, cost = np.int64(1), 0.0
        left -= 1
        cost += np.inf if op in (Op.RESIDUAL, Op.MISSING) else _seen(state, tag & FIELD_MASK)
        if left == 0 and cost < np.inf and (size < fewest or (size == fewest and cost < least)):
            fewest, least = size, cost
    return least


@helper
def _is_much_more(own: float, least: float) -> bool:
    """Tell whether one count is so much above another that chance does not explain it."""
    return own - 2.0 * np.sqrt(own) > _MUCH * (least + 2.0 * np.sqrt(least) + 2.0)


@kernel
def decay(totals: Float64s, seen: Float64s, factor: float) -> None:
    """Multiply the weight of all earlier events by `factor`, by giving later ones more."""
    totals[Total.WEIGHT] /= factor
    if totals[Total.WEIGHT] > 1e100:
        scale = 1.0 / totals[Total.WEIGHT]
        for i in range(seen.shape[0]):
            seen[i] *= scale
        totals[Total.EVENTS] *= scale
        totals[Total.WEIGHT] = 1.0


@kernel
def forget_events(state: State) -> None:
    """Reset every counter, so that events can be numbered from 1 again."""
    for pivot in range(state.tops[Top.PIVOTS]):
        first = state.pivots[pivot, Pivot.COUNTERS]
        for at in range(first, first + state.pivots[pivot, Pivot.TOP]):
            state.counters.rows[at, 0] &= _UNITS
    for gate in range(state.gates.shape[0]):
        state.gates[gate, Gate.STATE] &= _UNITS
    for attribute in range(state.attributes.met.shape[0]):
        state.attributes.met[attribute] = 0
