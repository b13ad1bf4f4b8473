"""How forms get into the lists of their pivots, and out again (OpIndex, 4.3)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.matching.opindex._kernels.entries import choose, draft, has_residual
from tocsin.matching.opindex._kernels.predicate_lists import erase, insert
from tocsin.matching.opindex._kernels.room import has_draft_room, has_room
from tocsin.matching.opindex.state import (
    ALWAYS,
    ASKED,
    CLASS,
    COPIES,
    COUNT_BITS,
    COUNTERS,
    EMITTED,
    EVENTS,
    EXTRA_GATE,
    EXTRA_NEXT,
    EXTRA_PIVOT,
    EXTRA_SLOT,
    FIELD,
    FIRST_GATE,
    FREE,
    FREE_EXTRA,
    FREE_GATE,
    GATE,
    KINDS,
    MEMBERS,
    MORE,
    NEXT_GATE,
    NUMBER,
    OPENED,
    PARENT,
    PIVOT,
    SLOT,
    STATE,
    TOP,
    TOP_EXTRA,
    TOP_GATE,
    TOP_PIVOT,
    UNITS,
    WEIGHT,
    Expressions,
    State,
)
from tocsin.structures import blocks
from tocsin.structures.blocks import size_of
from tocsin.structures.jit import helper, kernel

KNOWN: Final = 1000.0  # events from which on it is they that tell how frequent an attribute is
_NONE: Final = np.inf
_MOST_ENTRIES: Final = 1 << 20  # that a form may have in all; one with more is looked at for every event
_RESIDUAL, _MISSING = int(Op.RESIDUAL), int(Op.MISSING)


@helper
def _frequency(state: State, field: int) -> float:
    """Return how frequent a field's attribute is: in events, or in subscriptions while few events were seen."""
    attribute = field // FIELDS
    if state.totals[EVENTS] >= KNOWN * state.totals[WEIGHT]:
        return state.attributes.seen[attribute]
    return np.float64(state.attributes.uses[attribute])


@helper
def _cost_of_clause(state: State, forms: Expressions, clause: int) -> float:
    """Return how often a clause's pivots are met, all together; infinity if it can have none."""
    cost = 0.0
    for q in range(forms.bounds[clause], forms.bounds[clause + 1]):
        op = forms.tags[q] >> FIELD_BITS
        if op in (_RESIDUAL, _MISSING):
            return _NONE
        cost += _frequency(state, forms.pivots[q])
    return cost


@helper
def _pivot_clause(state: State, forms: Expressions, i: int) -> int:
    """Return the clause with the fewest predicates, and of those the least frequent one; -1 if none will do."""
    best, size, least = np.int64(-1), np.int64(0), _NONE
    for clause in range(forms.offsets[i], forms.offsets[i + 1]):
        count = forms.bounds[clause + 1] - forms.bounds[clause]
        if best >= 0 and count > size:
            continue
        cost = _cost_of_clause(state, forms, clause)
        if cost < _NONE and (best < 0 or count < size or cost < least):
            best, size, least = clause, count, cost
    return best


@kernel
def choose_pivots(
    state: State, forms: Expressions, clauses: NDArray[np.int64], pivots: NDArray[np.int64]
) -> None:
    """Write, of each form, which clause gives its pivots, or -1, and the first of them."""
    for i in range(forms.numbers.shape[0]):
        clauses[i] = _pivot_clause(state, forms, i)
        pivots[i] = ALWAYS if clauses[i] < 0 else forms.pivots[forms.bounds[clauses[i]]]


@kernel
def place(
    state: State, forms: Expressions, clauses: NDArray[np.int64], order: NDArray[np.int64], start: int
) -> int:
    """Place forms in this order, from `start` on; return how many were done: fewer than all if there was no room.

    Expressions of one pivot that follow each other find its lists in the cache.
    """
    for at in range(start, order.shape[0]):
        i = order[at]
        clause = clauses[i]
        if not has_draft_room(state, forms, i):
            return at
        copies = choose(state, forms, clause)
        units = draft(state, forms, i, clause < 0)
        if copies * state.tops[EMITTED] > _MOST_ENTRIES:
            copies = choose(state, forms, np.int64(-1))
            units = draft(state, forms, i, True)
        state.tops[COPIES] = copies
        if not has_room(state, copies):
            return at
        number = forms.numbers[i]
        begin, end = forms.bounds[forms.offsets[i]], forms.bounds[forms.offsets[i + 1]]
        holder = number + (ASKED if has_residual(forms, begin, end) else 0)
        state.forms[number, PIVOT] = -1
        state.forms[number, MORE] = -1
        for copy in range(copies):
            _place_at(state, number, holder, units, state.chosen[copy])
    return order.shape[0]


@helper
def _place_at(state: State, number: int, holder: int, units: int, field: int) -> None:
    """Place the form that is drafted under one of its pivots."""
    pivot = np.int64(state.fields.pivot[field])
    if pivot < 0:
        pivot = _new_pivot(state, field)
    slot, gate = _new_counter(state, pivot), np.int64(-1)
    for opened in range(state.tops[OPENED] - 1, -1, -1):  # the first one last, so that it leads the chain
        gate = _new_gate(state, gate)
        state.gate_draft[opened, NUMBER] = gate | GATE
    for opened in range(state.tops[OPENED]):
        row = state.gates[state.gate_draft[opened, NUMBER] - GATE]
        parent = state.gate_draft[opened, PARENT]
        row[STATE] = _at_rest(state.gate_draft[opened, UNITS])
        row[PARENT] = slot if parent == 0 else state.gate_draft[parent - 1, NUMBER]
    for e in range(state.tops[EMITTED]):
        entry = state.draft[e]
        target = slot if entry[3] == 0 else state.gate_draft[entry[3] - 1, NUMBER]
        insert(state, pivot, entry[0], entry[1], entry[2], target)
    at = state.pivots[pivot, COUNTERS] + slot
    state.counters.rows[at, 0] = _at_rest(units)
    state.holders[at] = holder
    state.pivots[pivot, MEMBERS] += 1
    form = state.forms[number]
    if form[PIVOT] < 0:
        form[PIVOT], form[SLOT], form[FIRST_GATE] = pivot, slot, gate
        return
    extra = _new_extra(state)
    further = state.extras[extra]
    further[EXTRA_PIVOT], further[EXTRA_SLOT], further[EXTRA_GATE] = pivot, slot, gate
    further[EXTRA_NEXT] = form[MORE]
    form[MORE] = extra


@helper
def _at_rest(units: int) -> int:
    """Return a counter that no event has touched."""
    return units << COUNT_BITS


@helper
def _new_gate(state: State, following: int) -> int:
    gate = state.tops[FREE_GATE]
    if gate >= 0:
        state.tops[FREE_GATE] = state.gates[gate, NEXT_GATE]
    else:
        gate = state.tops[TOP_GATE]
        state.tops[TOP_GATE] += 1
    state.gates[gate, NEXT_GATE] = following
    return gate


@helper
def _new_pivot(state: State, field: int) -> int:
    pivot = state.tops[TOP_PIVOT]
    state.tops[TOP_PIVOT] += 1
    state.fields.pivot[field] = pivot
    for kind in range(KINDS):
        state.lists[pivot, kind] = -1
    row = state.pivots[pivot]
    row[FIELD], row[COUNTERS], row[CLASS], row[TOP], row[FREE], row[MEMBERS] = field, -1, 0, 0, -1, 0
    return pivot


@helper
def _new_counter(state: State, pivot: int) -> int:
    """Return the number, within its pivot, of a counter that nobody uses."""
    row, counters = state.pivots[pivot], state.counters
    slot = row[FREE]
    if slot >= 0:
        row[FREE] = state.holders[row[COUNTERS] + slot]
        return slot
    if row[COUNTERS] < 0:
        row[COUNTERS] = blocks.take(counters, np.int64(0))
        row[CLASS] = 0
    elif row[TOP] == size_of(row[CLASS]):
        old = row[COUNTERS]
        new = blocks.take(counters, row[CLASS] + 1)
        for i in range(row[TOP]):
            counters.rows[new + i, 0] = counters.rows[old + i, 0]
            state.holders[new + i] = state.holders[old + i]
        blocks.give(counters, old, row[CLASS])
        row[COUNTERS] = new
        row[CLASS] += 1
    row[TOP] += 1
    return row[TOP] - 1


@helper
def _new_extra(state: State) -> int:
    extra = state.tops[FREE_EXTRA]
    if extra >= 0:
        state.tops[FREE_EXTRA] = state.extras[extra, EXTRA_NEXT]
        return extra
    state.tops[TOP_EXTRA] += 1
    return state.tops[TOP_EXTRA] - 1


@kernel
def withdraw(state: State, forms: Expressions) -> None:
    """Take forms out of all places where they were placed."""
    for i in range(forms.numbers.shape[0]):
        row = state.forms[forms.numbers[i]]
        if row[PIVOT] < 0:
            continue
        draft(state, forms, i, state.pivots[row[PIVOT], FIELD] == ALWAYS)
        pivot, slot, gate = np.int64(row[PIVOT]), np.int64(row[SLOT]), np.int64(row[FIRST_GATE])
        extra = np.int64(row[MORE])
        while True:
            _withdraw_from(state, pivot, slot, gate)
            if extra < 0:
                break
            further = state.extras[extra]
            pivot, slot = np.int64(further[EXTRA_PIVOT]), np.int64(further[EXTRA_SLOT])
            gate = np.int64(further[EXTRA_GATE])
            following = np.int64(further[EXTRA_NEXT])
            further[EXTRA_NEXT] = state.tops[FREE_EXTRA]
            state.tops[FREE_EXTRA] = extra
            extra = following
        row[PIVOT] = -1
        row[MORE] = -1


@helper
def _withdraw_from(state: State, pivot: int, slot: int, gate: int) -> None:
    """Take out the form that is drafted from one pivot, and give up its counter and gates there."""
    for opened in range(state.tops[OPENED]):
        state.gate_draft[opened, NUMBER] = gate | GATE
        following = state.gates[gate, NEXT_GATE]
        state.gates[gate, NEXT_GATE] = state.tops[FREE_GATE]
        state.tops[FREE_GATE] = gate
        gate = following
    for e in range(state.tops[EMITTED]):
        entry = state.draft[e]
        target = slot if entry[3] == 0 else state.gate_draft[entry[3] - 1, NUMBER]
        erase(state, pivot, entry[0], entry[1], entry[2], target)
    row = state.pivots[pivot]
    state.holders[row[COUNTERS] + slot] = row[FREE]
    row[FREE] = slot
    row[MEMBERS] -= 1
    if row[MEMBERS] == 0:
        blocks.give(state.counters, row[COUNTERS], row[CLASS])
        row[COUNTERS], row[CLASS], row[TOP], row[FREE] = -1, 0, 0, -1
