"""What forms say, kept so that they can be explained, taken out and placed anew."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import enter, free_number, new_number
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.matching.opindex.state import (
    CLAUSE,
    FREE_FORM,
    HIGH,
    LIVE_FORMS,
    MORE,
    PIVOT,
    PREDICATES,
    RECORDS,
    STORE,
    TOP_FORM,
    Expressions,
    State,
)
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel

_MASK: Final = (1 << FIELD_BITS) - 1
_BETWEEN, _NOT_BETWEEN, _RESIDUAL = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Op.RESIDUAL)


@kernel
def store(state: State, ids: NDArray[np.int64], forms: Expressions) -> None:
    """Give forms numbers under their subscriptions' ids, and keep what they say; there must be room."""
    for i in range(ids.shape[0]):
        number = new_number(state.forms, state.tops, FREE_FORM, TOP_FORM)
        enter(state.ids, state.first, state.forms, state.owner, ids[i], number)
        row = state.forms[number]
        row[PIVOT], row[MORE] = -1, -1
        forms.numbers[i] = number
        state.tops[LIVE_FORMS] += 1
        _write(state, number, forms, i)
        _count(state, forms, i, 1)


@helper
def _records(forms: Expressions, i: int) -> tuple[int, bool]:
    """Return how many records a form takes, and whether they come in clauses."""
    first, last = forms.offsets[i], forms.offsets[i + 1]
    begin, end = forms.bounds[first], forms.bounds[last]
    count = end - begin
    in_clauses = count != last - first
    for q in range(begin, end):
        op = forms.tags[q] >> FIELD_BITS
        count += op in (_BETWEEN, _NOT_BETWEEN)
    return count + (last - first if in_clauses else 0), in_clauses


@helper
def _write(state: State, number: int, forms: Expressions, i: int) -> None:
    count, in_clauses = _records(forms, i)
    row, rows = state.forms[number], state.store.rows
    at = blocks.take(state.store, class_of(count))
    row[STORE] = at
    row[RECORDS] = -count if in_clauses else count
    for clause in range(forms.offsets[i], forms.offsets[i + 1]):
        begin, end = forms.bounds[clause], forms.bounds[clause + 1]
        if in_clauses:
            rows[at, 0] = end - begin
            rows[at, 1] = CLAUSE << FIELD_BITS
            at += 1
        for q in range(begin, end):
            rows[at, 0] = forms.lows[q]
            rows[at, 1] = forms.tags[q]
            at += 1
            op = forms.tags[q] >> FIELD_BITS
            if op in (_BETWEEN, _NOT_BETWEEN):
                rows[at, 0] = forms.highs[q]
                rows[at, 1] = HIGH << FIELD_BITS
                at += 1


@helper
def _count(state: State, forms: Expressions, i: int, change: int) -> None:
    """Count a form's predicates, by attribute and in all."""
    for q in range(forms.bounds[forms.offsets[i]], forms.bounds[forms.offsets[i + 1]]):
        if forms.tags[q] >> FIELD_BITS != _RESIDUAL:
            state.attributes.uses[(forms.tags[q] & _MASK) // FIELDS] += change
        state.tops[PREDICATES] += change


@kernel
def recall(state: State, numbers: NDArray[np.int64], begin: int, forms: Expressions) -> int:
    """Write what forms from `begin` on say, as many as there is room for in `forms`; return where it stopped."""
    forms.offsets[0] = 0
    forms.bounds[0] = 0
    clauses, predicates = np.int64(0), np.int64(0)
    for i in range(begin, numbers.shape[0]):
        number = numbers[i]
        count, at = np.int64(state.forms[number, RECORDS]), np.int64(state.forms[number, STORE])
        if i - begin == forms.numbers.shape[0] or predicates + abs(count) > forms.tags.shape[0]:
            return i
        if clauses + abs(count) >= forms.bounds.shape[0]:
            return i
        forms.numbers[i - begin] = number
        left = np.int64(1)
        for record in range(at, at + abs(count)):
            key, tag = state.store.rows[record, 0], state.store.rows[record, 1]
            op = tag >> FIELD_BITS
            if op == HIGH:
                forms.highs[predicates - 1] = key
            elif op == CLAUSE:
                left = key
            else:
                forms.tags[predicates] = tag
                forms.lows[predicates] = key
                forms.highs[predicates] = key
                predicates += 1
                left -= 1
                if left == 0 or count > 0:
                    clauses += 1
                    forms.bounds[clauses] = predicates
        forms.offsets[i - begin + 1] = clauses
    return numbers.shape[0]


@kernel
def leave(state: State, forms: Expressions) -> None:
    """Give up the numbers of forms that are withdrawn, and what was kept of them."""
    for i in range(forms.numbers.shape[0]):
        number = forms.numbers[i]
        _count(state, forms, i, -1)
        row = state.forms[number]
        blocks.give(state.store, np.int64(row[STORE]), class_of(abs(np.int64(row[RECORDS]))))
        state.owner[number] = -1
        free_number(state.forms, state.tops, FREE_FORM, number)
        state.tops[LIVE_FORMS] -= 1
