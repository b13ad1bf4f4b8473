"""Which forms would be better off with another pivot, because the stream has changed."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.matching.opindex.state import (
    ALWAYS,
    CLAUSE,
    COUNT_BITS,
    COUNTERS,
    EVENTS,
    EXTRA_NEXT,
    EXTRA_PIVOT,
    FIELD,
    HIGH,
    MORE,
    PIVOT,
    RECORDS,
    STORE,
    TOP,
    TOP_FORM,
    TOP_PIVOT,
    WEIGHT,
    State,
)
from tocsin.structures.jit import helper, kernel

_MUCH: Final = 4.0  # times as frequent as need be, and a pivot is given up
_MASK: Final = (1 << FIELD_BITS) - 1
_UNITS: Final = ((1 << COUNT_BITS) - 1) << COUNT_BITS
_RESIDUAL, _MISSING = int(Op.RESIDUAL), int(Op.MISSING)


@kernel
def review(state: State, start: int, end: int, moves: NDArray[np.int64]) -> tuple[int, int]:
    """Write the forms from `start` to `end` whose pivots events have too often, as many as there is room for.

    Returns where it stopped, and how many there are.
    """
    count = np.int64(0)
    for number in range(start, min(np.int64(end), state.tops[TOP_FORM])):
        if state.owner[number] < 0 or state.forms[number, PIVOT] < 0:
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
    """Return in how many of the events that count an attribute was."""
    return state.attributes.seen[field // FIELDS] / state.totals[WEIGHT]


@helper
def _own_cost(state: State, number: int) -> float:
    """Return how often events have a form's pivots, each attribute once; 0 if it has none and can have none."""
    field = state.pivots[state.forms[number, PIVOT], FIELD]
    if field == ALWAYS:
        return 0.0
    cost = _seen(state, field)
    extra = np.int64(state.forms[number, MORE])
    while extra >= 0:
        other = state.pivots[state.extras[extra, EXTRA_PIVOT], FIELD]
        cost += _seen(state, other) if other // FIELDS != field // FIELDS else 0.0
        field = other
        extra = np.int64(state.extras[extra, EXTRA_NEXT])
    return cost


@helper
def _least_cost(state: State, number: int) -> float:
    """Return how often events would have a form's pivots if they were chosen now."""
    first, records = np.int64(state.forms[number, STORE]), np.int64(state.forms[number, RECORDS])
    least, cost = np.inf, 0.0
    size, fewest, left = np.int64(1), np.int64(1) << 62, np.int64(1)
    for at in range(first, first + abs(records)):
        tag = state.store.rows[at, 1]
        op = tag >> FIELD_BITS
        if op == HIGH:
            continue
        if op == CLAUSE:
            size, left, cost = state.store.rows[at, 0], state.store.rows[at, 0], 0.0
            continue
        if records > 0:
            left, cost = np.int64(1), 0.0
        left -= 1
        cost += np.inf if op in (_RESIDUAL, _MISSING) else _seen(state, tag & _MASK)
        if left == 0 and cost < np.inf and (size < fewest or (size == fewest and cost < least)):
            fewest, least = size, cost
    return least


@helper
def _is_much_more(own: float, least: float) -> bool:
    """Tell whether one count is so much above another that chance does not explain it."""
    return own - 2.0 * np.sqrt(own) > _MUCH * (least + 2.0 * np.sqrt(least) + 2.0)


@kernel
def decay(totals: NDArray[np.float64], seen: NDArray[np.float64], factor: float) -> None:
    """Let what was counted so far weigh less by `factor`. Costs nothing: what comes next weighs more."""
    totals[WEIGHT] /= factor
    if totals[WEIGHT] > 1e100:
        scale = 1.0 / totals[WEIGHT]
        for i in range(seen.shape[0]):
            seen[i] *= scale
        totals[EVENTS] *= scale
        totals[WEIGHT] = 1.0


@kernel
def forget_events(state: State) -> None:
    """Let every counter be untouched, so that events can be numbered from 1 again."""
    for pivot in range(state.tops[TOP_PIVOT]):
        first = state.pivots[pivot, COUNTERS]
        for at in range(first, first + state.pivots[pivot, TOP]):
            state.counters.rows[at, 0] &= _UNITS
    for gate in range(state.gates.shape[0]):
        state.gates[gate, 0] &= _UNITS
    for attribute in range(state.attributes.met.shape[0]):
        state.attributes.met[attribute] = 0
