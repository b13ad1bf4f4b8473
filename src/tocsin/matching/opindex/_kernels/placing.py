"""How forms get into the lists of their pivots, and out again (OpIndex, 4.3 and 6.1).

A conjunction counts down its units, one for each predicate and two for a range. A clause of several predicates
is a gate: the first of them that holds counts once towards the form. Within a clause, a predicate that takes two
entries at once, or that another value refutes, is a gate of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.matching.opindex._kernels.lists import erase, growth, insert, splitting
from tocsin.matching.opindex.state import (
    ALWAYS,
    ASKED,
    CLASS,
    COPIES,
    COUNT_BITS,
    COUNTERS,
    EMITTED,
    EQ,
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
    GE,
    GT,
    KINDS,
    LACKING,
    LARGEST,
    LE,
    LT,
    MEMBERS,
    MORE,
    MOST_SEGMENTS,
    NEEDED,
    NEXT_GATE,
    NUMBER,
    OPENED,
    PARENT,
    PIVOT,
    RUN,
    SHORT_OF,
    SLOT,
    STATE,
    STRIKE,
    TOP,
    TOP_EXTRA,
    TOP_GATE,
    TOP_PIVOT,
    TOP_SEGMENT,
    UNITS,
    WEIGHT,
    Forms,
    State,
)
from tocsin.structures import blocks
from tocsin.structures.blocks import size_of
from tocsin.structures.jit import helper, kernel

__all__ = ["KNOWN", "cost_of_clause", "frequency", "place", "withdraw"]

KNOWN: Final = 1000.0  # events from which on it is they that tell how frequent an attribute is
_NONE: Final = np.inf
_MOST_ENTRIES: Final = 1 << 20  # that a form may have in all; one with more is looked at for every event
_MASK: Final = (1 << FIELD_BITS) - 1
_ANY, _TEXT = int(Field.ANY), int(Field.TEXT)
_OP_EQ, _OP_NE, _OP_LT, _OP_LE, _OP_GT, _OP_GE = (
    int(Op.EQ),
    int(Op.NE),
    int(Op.LT),
    int(Op.LE),
    int(Op.GT),
    int(Op.GE),
)
_BETWEEN, _NOT_BETWEEN, _IN, _NOT_IN = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Op.IN), int(Op.NOT_IN)
_PRESENT, _RESIDUAL, _MISSING = int(Op.PRESENT), int(Op.RESIDUAL), int(Op.MISSING)


@helper
def frequency(state: State, field: int) -> float:
    """Return how frequent a field's attribute is: in events, or in subscriptions while few events were seen."""
    attribute = field // FIELDS
    if state.totals[EVENTS] >= KNOWN * state.totals[WEIGHT]:
        return state.attributes.seen[attribute]
    return np.float64(state.attributes.uses[attribute])


@helper
def cost_of_clause(state: State, forms: Forms, clause: int) -> float:
    """Return how often a clause's pivots are met, all together; infinity if it can have none."""
    cost = 0.0
    for q in range(forms.bounds[clause], forms.bounds[clause + 1]):
        op = forms.tags[q] >> FIELD_BITS
        if op in (_RESIDUAL, _MISSING):
            return _NONE
        cost += frequency(state, forms.pivots[q])
    return cost


@helper
def _pivot_clause(state: State, forms: Forms, i: int) -> int:
    """Return the clause with the fewest predicates, and of those the least frequent one; -1 if none will do."""
    best, size, least = np.int64(-1), np.int64(0), _NONE
    for clause in range(forms.offsets[i], forms.offsets[i + 1]):
        count = forms.bounds[clause + 1] - forms.bounds[clause]
        if best >= 0 and count > size:
            continue
        cost = cost_of_clause(state, forms, clause)
        if cost < _NONE and (best < 0 or count < size or cost < least):
            best, size, least = clause, count, cost
    return best


@kernel
def place(state: State, forms: Forms, start: int) -> int:
    """Place forms from `start` on; return how many were done: fewer than all if there was no room."""
    for i in range(start, forms.numbers.shape[0]):
        clause = _pivot_clause(state, forms, i)
        if not _has_draft_room(state, forms, i):
            return i
        copies = _choose(state, forms, clause)
        units = _draft(state, forms, i, clause < 0)
        if copies * state.tops[EMITTED] > _MOST_ENTRIES:
            copies = _choose(state, forms, np.int64(-1))
            units = _draft(state, forms, i, True)
        state.tops[COPIES] = copies
        if not _has_room(state, copies):
            return i
        number = forms.numbers[i]
        begin, end = forms.bounds[forms.offsets[i]], forms.bounds[forms.offsets[i + 1]]
        holder = number + (ASKED if _has_residual(forms, begin, end) else 0)
        state.forms[number, PIVOT] = -1
        state.forms[number, MORE] = -1
        for copy in range(copies):
            _place_at(state, number, holder, units, state.chosen[copy])
    return forms.numbers.shape[0]


@helper
def _has_draft_room(state: State, forms: Forms, i: int) -> bool:
    """Tell whether there is room to write down all that a form consists of."""
    begin, end = forms.bounds[forms.offsets[i]], forms.bounds[forms.offsets[i + 1]]
    gates = end - begin + forms.offsets[i + 1] - forms.offsets[i]
    entries = 2 * (end - begin) + 1 + _members(forms, begin, end)
    for place_ in (NEEDED, LACKING, SHORT_OF, COPIES, OPENED):
        state.tops[place_] = 0
    return (
        entries <= state.draft.shape[0]
        and entries <= state.chosen.shape[0]
        and gates <= state.gate_draft.shape[0]
    )


@helper
def _has_room(state: State, copies: int) -> bool:
    """Tell whether there is room to place the form that is drafted.

    NEEDED says how many rows of entries it takes, LACKING how many segments, and SHORT_OF how many counters.
    """
    tops = state.tops
    for copy in range(copies):
        tops[SHORT_OF] += _counter_growth(state, np.int64(state.fields.pivot[state.chosen[copy]]))
    return (
        _has_entry_room(state, copies)
        and tops[TOP_PIVOT] + copies <= state.pivots.shape[0]
        and tops[TOP_GATE] + tops[OPENED] * copies <= state.gates.shape[0]
        and tops[TOP_EXTRA] + copies <= state.extras.shape[0]
        and state.counters.top[0] + tops[SHORT_OF] <= state.counters.rows.shape[0]
    )


@helper
def _counter_growth(state: State, pivot: int) -> int:
    """Return how many rows one more counter takes at a pivot."""
    if pivot < 0 or state.pivots[pivot, COUNTERS] < 0:
        return np.int64(1)
    row = state.pivots[pivot]
    return np.int64(0) if row[FREE] >= 0 or row[TOP] < size_of(row[CLASS]) else size_of(row[CLASS] + 1)


@helper
def _members(forms: Forms, begin: int, end: int) -> int:
    """Return how many members the lists of some predicates have."""
    count = np.int64(0)
    for q in range(begin, end):
        if forms.which[q] >= 0:
            count += forms.starts[forms.which[q] + 1] - forms.starts[forms.which[q]]
    return count


@helper
def _choose(state: State, forms: Forms, clause: int) -> int:
    """Write the fields that are pivots by a clause into `chosen`, each once; return how many.

    One of them must tell that the clause holds, so a list with members of several kinds gives one for each kind,
    unless it is the whole clause: then its attribute alone is counted too.
    """
    if clause < 0:
        state.chosen[0] = ALWAYS
        return np.int64(1)
    count = np.int64(0)
    begin, end = forms.bounds[clause], forms.bounds[clause + 1]
    for q in range(begin, end):
        if end - begin > 1 and _is_mixed(forms, q):
            for m in range(forms.starts[forms.which[q]], forms.starts[forms.which[q] + 1]):
                count = _add_chosen(state, forms.fields[m], count)
        else:
            count = _add_chosen(state, forms.pivots[q], count)
    return count


@helper
def _add_chosen(state: State, field: int, count: int) -> int:
    came = False
    for before in range(count):
        came |= state.chosen[before] == field
    state.chosen[count] = field
    return count if came else count + 1


@helper
def _has_entry_room(state: State, copies: int) -> bool:
    """Tell whether there is room for the entries of the form that is drafted.

    NEEDED says how many rows of entries they take, and LACKING how many segments.
    """
    tops = state.tops
    emitted = tops[EMITTED]
    rows = state.entries.rows.shape[0] - state.entries.top[0]
    segments = state.segments.shape[0] - tops[TOP_SEGMENT]
    # If the largest segment were to grow for each of them, and the largest lists to be split, would there be room?
    lists = min(emitted, np.int64(KINDS))
    growing = emitted * (2 * tops[LARGEST] + 2) + lists * (18 * tops[MOST_SEGMENTS] + 4 * emitted)
    if 2 * copies * growing <= rows and copies * lists * (4 * tops[MOST_SEGMENTS] + emitted + 2) <= segments:
        return True
    for copy in range(copies):
        pivot = np.int64(state.fields.pivot[state.chosen[copy]])
        for kind in range(KINDS):
            if pivot >= 0:
                more, further = splitting(state, pivot, kind, emitted)
                tops[NEEDED] += more
                tops[LACKING] += further
            else:
                tops[LACKING] += emitted + 2
        if pivot >= 0:
            last = np.int64(-1)
            for e in range(emitted):
                entry = state.draft[e]
                row, more = growth(state, pivot, entry[0], entry[1], entry[2], emitted)
                tops[NEEDED] += more if row != last or row < 0 else 0
                last = row
    # Several entries may go into one segment, which then grows several times; and those of a new list are split.
    tops[NEEDED] = 2 * tops[NEEDED] + 12 * copies * emitted
    return tops[NEEDED] <= rows and tops[LACKING] <= segments


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


@helper
def _draft(state: State, forms: Forms, i: int, without_pivot: bool) -> int:
    """Write the entries of a form into `draft` and its gates into `gate_draft`; return the units of its counter.

    A counter or gate is told by its place in `gate_draft`, counted from 1; 0 is the form's own counter.
    """
    tops = state.tops
    tops[EMITTED] = 0
    tops[OPENED] = 0
    units = np.int64(0)
    if without_pivot:
        _emit(state, EQ, np.int64(ALWAYS), np.int64(0), np.int64(0))
        units += 1
    for clause in range(forms.offsets[i], forms.offsets[i + 1]):
        begin, end = forms.bounds[clause], forms.bounds[clause + 1]
        if end - begin == 1:
            if _is_mixed(forms, begin):
                # Text that reads as a timestamp may satisfy two members: a gate counts them once.
                _emit_predicate(state, forms, begin, _open(state, np.int64(1), np.int64(0)))
                _emit(state, EQ, forms.pivots[begin], np.int64(0), np.int64(0))
            else:
                _emit_predicate(state, forms, begin, np.int64(0))
            units += _units(forms, begin)
            continue
        if _has_residual(forms, begin, end):
            continue  # Python tells about the whole clause
        units += 1
        joint = _open(state, np.int64(1), np.int64(0))
        for q in range(begin, end):
            op, field = forms.tags[q] >> FIELD_BITS, forms.tags[q] & _MASK
            target = joint
            if op in (_BETWEEN, _NOT_IN, _MISSING) or (op == _OP_NE and field % FIELDS == _TEXT):
                target = _open(state, np.int64(2 if op == _BETWEEN else 1), joint)
            _emit_predicate(state, forms, q, target)
            if op == _MISSING:
                _emit(state, EQ, np.int64(ALWAYS), np.int64(0), target)
    return units


@helper
def _units(forms: Forms, q: int) -> int:
    """Return how often a predicate that holds counts towards its form, where it is a clause of its own."""
    op = forms.tags[q] >> FIELD_BITS
    if op in (_RESIDUAL, _MISSING):
        return np.int64(0)
    return np.int64(2 if op == _BETWEEN or _is_mixed(forms, q) else 1)


@helper
def _is_mixed(forms: Forms, q: int) -> bool:
    """Tell whether a predicate is a list with members of several kinds."""
    return forms.tags[q] >> FIELD_BITS == _IN and forms.pivots[q] % FIELDS == _ANY


@helper
def _has_residual(forms: Forms, begin: int, end: int) -> bool:
    found = False
    for q in range(begin, end):
        found |= forms.tags[q] >> FIELD_BITS == _RESIDUAL
    return found


@helper
def _open(state: State, units: int, parent: int) -> int:
    gate = state.tops[OPENED]
    state.gate_draft[gate, UNITS] = units
    state.gate_draft[gate, PARENT] = parent
    state.tops[OPENED] += 1
    return gate + 1


@helper
def _emit(state: State, kind: int, field: int, key: int, target: int) -> None:
    entry = state.draft[state.tops[EMITTED]]
    entry[0], entry[1], entry[2], entry[3] = kind, field, key, target
    state.tops[EMITTED] += 1


@helper
def _emit_predicate(state: State, forms: Forms, q: int, target: int) -> None:
    op, field = forms.tags[q] >> FIELD_BITS, forms.tags[q] & _MASK
    low, high = forms.lows[q], forms.highs[q]
    if op in (_OP_EQ, _PRESENT):
        _emit(state, EQ, field, low, target)
    elif op == _OP_NE and field % FIELDS == _TEXT:
        _emit(state, RUN, field, np.int64(0), target)
        _emit(state, STRIKE, field, low, target)
    elif _OP_NE <= op <= _OP_GE:
        _emit(state, op, field, low, target)
    elif op == _BETWEEN:
        _emit(state, GE, field, low, target)
        _emit(state, LE, field, high, target)
    elif op == _NOT_BETWEEN and low <= high:
        _emit(state, LT, field, low, target)
        _emit(state, GT, field, high, target)
    elif op == _MISSING:
        _emit(state, STRIKE, field, np.int64(0), target)
    elif op in (_IN, _NOT_IN):
        if op == _NOT_IN:
            _emit(state, RUN, field, np.int64(0), target)
        kind = EQ if op == _IN else STRIKE
        for m in range(forms.starts[forms.which[q]], forms.starts[forms.which[q] + 1]):
            _emit(state, kind, forms.fields[m], forms.keys[m], target)
    elif op != _RESIDUAL:  # `not between` with nothing between: every value of the kind will do
        _emit(state, RUN, field, np.int64(0), target)


@kernel
def withdraw(state: State, forms: Forms) -> None:
    """Take forms out of all places where they were placed."""
    for i in range(forms.numbers.shape[0]):
        row = state.forms[forms.numbers[i]]
        if row[PIVOT] < 0:
            continue
        _draft(state, forms, i, state.pivots[row[PIVOT], FIELD] == ALWAYS)
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
