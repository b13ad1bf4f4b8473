"""The pivots, entries and gates of an expression (OpIndex, §4.2 and §6.1).

A conjunction counts down its units, one for each predicate and two for a range. A clause of several predicates is a
gate: the first of them that holds counts once towards the expression. Within a clause, a predicate with two entries, or
one that another value refutes, is a gate of its own.
"""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.predicates import has_residual, is_mixed, required_field
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex.state import EntryDraft, GateDraft, State, Top
from tocsin.structures.jit import helper


@helper
def member_count(batch: Expressions, begin: int, end: int) -> int:
    """Return how many members the lists of some predicates have."""
    count = np.int64(0)
    for q in range(begin, end):
        if batch.which[q] >= 0:
            count += batch.starts[batch.which[q] + 1] - batch.starts[batch.which[q]]
    return count


@helper
def choose(state: State, batch: Expressions, clause: int) -> int:
    """Write the pivot fields of a clause into `chosen`, each once; return how many.

    Every event that satisfies the clause must have one of them. So a list with members of several kinds gives one for
    each kind, unless it is the whole clause: then its attribute has an entry of its own.
    """
    if clause < 0:
        state.chosen[0] = arrays.ALWAYS
        return np.int64(1)
    count = np.int64(0)
    begin, end = batch.bounds[clause], batch.bounds[clause + 1]
    for q in range(begin, end):
        if end - begin > 1 and is_mixed(batch, q):
            for m in range(batch.starts[batch.which[q]], batch.starts[batch.which[q] + 1]):
                count = _add_chosen(state, batch.fields[m], count)
        else:
            count = _add_chosen(state, required_field(batch, q), count)
    return count


@helper
def _add_chosen(state: State, field: int, count: int) -> int:
    came = False
    for before in range(count):
        came |= state.chosen[before] == field
    state.chosen[count] = field
    return count if came else count + 1


@helper
def draft(state: State, batch: Expressions, i: int, without_pivot: bool) -> int:
    """Write the entries of an expression into `draft` and its gates into `gate_draft`; return the units of its counter.

    A gate is named by its position in `gate_draft`, counted from 1; 0 is the expression's own counter.
    """
    tops = state.tops
    tops[Top.EMITTED] = 0
    tops[Top.OPENED] = 0
    units = np.int64(0)
    if without_pivot:
        _emit(state, arrays.EQ, np.int64(arrays.ALWAYS), np.int64(0), np.int64(0))
        units += 1
    for clause in range(batch.offsets[i], batch.offsets[i + 1]):
        begin, end = batch.bounds[clause], batch.bounds[clause + 1]
        if end - begin == 1:
            if is_mixed(batch, begin):
                # Text that reads as a timestamp may satisfy two members: a gate counts them once.
                _emit_predicate(state, batch, begin, _open(state, np.int64(1), np.int64(0)))
                _emit(state, arrays.EQ, required_field(batch, begin), np.int64(0), np.int64(0))
            else:
                _emit_predicate(state, batch, begin, np.int64(0))
            units += _units(batch, begin)
            continue
        if has_residual(batch, begin, end):
            continue  # the whole clause is evaluated in Python
        units += 1
        joint = _open(state, np.int64(1), np.int64(0))
        for q in range(begin, end):
            op, field = batch.tags[q] >> FIELD_BITS, batch.tags[q] & FIELD_MASK
            target = joint
            if op in (Op.BETWEEN, Op.NOT_IN, Op.MISSING) or (op == Op.NE and field % FIELDS == Field.TEXT):
                target = _open(state, np.int64(2 if op == Op.BETWEEN else 1), joint)
            _emit_predicate(state, batch, q, target)
            if op == Op.MISSING:
                _emit(state, arrays.EQ, np.int64(arrays.ALWAYS), np.int64(0), target)
    return units


@helper
def _units(batch: Expressions, q: int) -> int:
    """Return the units of a predicate that is a clause of its own."""
    op = batch.tags[q] >> FIELD_BITS
    if op in (Op.RESIDUAL, Op.MISSING):
        return np.int64(0)
    return np.int64(2 if op == Op.BETWEEN or is_mixed(batch, q) else 1)


@helper
def _open(state: State, units: int, parent: int) -> int:
    gate = state.tops[Top.OPENED]
    state.gate_draft[gate, GateDraft.UNITS] = units
    state.gate_draft[gate, GateDraft.PARENT] = parent
    state.tops[Top.OPENED] += 1
    return gate + 1


@helper
def _emit(state: State, kind: int, field: int, key: int, target: int) -> None:
    entry = state.draft[state.tops[Top.EMITTED]]
    entry[EntryDraft.KIND], entry[EntryDraft.FIELD] = kind, field
    entry[EntryDraft.KEY], entry[EntryDraft.TARGET] = key, target
    state.tops[Top.EMITTED] += 1


@helper
def _emit_predicate(state: State, batch: Expressions, q: int, target: int) -> None:
    """Append the index entries of one predicate; a residual predicate has none."""
    op, field = batch.tags[q] >> FIELD_BITS, batch.tags[q] & FIELD_MASK
    low, high = batch.lows[q], batch.highs[q]
    if op in (Op.EQ, Op.PRESENT):
        _emit(state, arrays.EQ, field, low, target)
    elif op == Op.NE and field % FIELDS == Field.TEXT:
        _emit(state, arrays.ANY_VALUE, field, np.int64(0), target)
        _emit(state, arrays.REFUTATION, field, low, target)
    elif Op.NE <= op <= Op.GE:
        _emit(state, op, field, low, target)
    elif op == Op.BETWEEN:
        _emit(state, arrays.GE, field, low, target)
        _emit(state, arrays.LE, field, high, target)
    elif op == Op.NOT_BETWEEN and low <= high:
        _emit(state, arrays.LT, field, low, target)
        _emit(state, arrays.GT, field, high, target)
    elif op == Op.MISSING:
        _emit(state, arrays.REFUTATION, field, np.int64(0), target)
    elif op in (Op.IN, Op.NOT_IN):
        if op == Op.NOT_IN:
            _emit(state, arrays.ANY_VALUE, field, np.int64(0), target)
        kind = arrays.EQ if op == Op.IN else arrays.REFUTATION
        for m in range(batch.starts[batch.which[q]], batch.starts[batch.which[q] + 1]):
            _emit(state, kind, batch.fields[m], batch.keys[m], target)
    elif op != Op.RESIDUAL:  # `not between` with an empty range: every value of the kind satisfies it
        _emit(state, arrays.ANY_VALUE, field, np.int64(0), target)
