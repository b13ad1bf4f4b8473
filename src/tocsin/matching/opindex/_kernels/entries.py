"""What a form consists of: its pivots, its entries and its gates (OpIndex, 4.2 and 6.1).

A conjunction counts down its units, one for each predicate and two for a range. A clause of several predicates
is a gate: the first of them that holds counts once towards the form. Within a clause, a predicate that takes two
entries at once, or that another value refutes, is a gate of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.matching.opindex.state import (
    ALWAYS,
    EMITTED,
    EQ,
    GE,
    GT,
    LE,
    LT,
    OPENED,
    PARENT,
    RUN,
    STRIKE,
    UNITS,
    Expressions,
    State,
)
from tocsin.structures.jit import helper

_MASK: Final = (1 << FIELD_BITS) - 1
_ANY, _TEXT = int(Field.ANY), int(Field.TEXT)
_OP_EQ, _OP_NE, _OP_GE = int(Op.EQ), int(Op.NE), int(Op.GE)
_BETWEEN, _NOT_BETWEEN, _IN, _NOT_IN = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Op.IN), int(Op.NOT_IN)
_PRESENT, _RESIDUAL, _MISSING = int(Op.PRESENT), int(Op.RESIDUAL), int(Op.MISSING)


@helper
def members_of(forms: Expressions, begin: int, end: int) -> int:
    """Return how many members the lists of some predicates have."""
    count = np.int64(0)
    for q in range(begin, end):
        if forms.which[q] >= 0:
            count += forms.starts[forms.which[q] + 1] - forms.starts[forms.which[q]]
    return count


@helper
def choose(state: State, forms: Expressions, clause: int) -> int:
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
        if end - begin > 1 and is_mixed(forms, q):
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
def draft(state: State, forms: Expressions, i: int, without_pivot: bool) -> int:
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
            if is_mixed(forms, begin):
                # Text that reads as a timestamp may satisfy two members: a gate counts them once.
                _emit_predicate(state, forms, begin, _open(state, np.int64(1), np.int64(0)))
                _emit(state, EQ, forms.pivots[begin], np.int64(0), np.int64(0))
            else:
                _emit_predicate(state, forms, begin, np.int64(0))
            units += _units(forms, begin)
            continue
        if has_residual(forms, begin, end):
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
def _units(forms: Expressions, q: int) -> int:
    """Return how often a predicate that holds counts towards its form, where it is a clause of its own."""
    op = forms.tags[q] >> FIELD_BITS
    if op in (_RESIDUAL, _MISSING):
        return np.int64(0)
    return np.int64(2 if op == _BETWEEN or is_mixed(forms, q) else 1)


@helper
def is_mixed(forms: Expressions, q: int) -> bool:
    """Tell whether a predicate is a list with members of several kinds."""
    return forms.tags[q] >> FIELD_BITS == _IN and forms.pivots[q] % FIELDS == _ANY


@helper
def has_residual(forms: Expressions, begin: int, end: int) -> bool:
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
def _emit_predicate(state: State, forms: Expressions, q: int, target: int) -> None:
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
