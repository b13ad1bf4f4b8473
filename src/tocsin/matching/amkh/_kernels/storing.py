"""What conjunctions say, kept so that they can be verified, explained, taken out and hashed anew."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import enter, free_number, new_number
from tocsin.matching.amkh.state import (
    EVENTS,
    FREE_FORM,
    HIGH,
    HOME,
    LIVE_FORMS,
    MOST_MEMBERS,
    POINT,
    PREDICATES,
    STORED,
    TOP_FORM,
    Expressions,
    Store,
)
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel

RESIDUAL_FLAG: Final = 1 << 40  # added to the number in a heading: Python has the last word
_NUMBER: Final = RESIDUAL_FLAG - 1
_MASK: Final = (1 << FIELD_BITS) - 1
_BETWEEN, _NOT_BETWEEN, _RESIDUAL = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Op.RESIDUAL)
_EQ, _IN, _NOT_IN, _PRESENT, _MISSING = (
    int(Op.EQ),
    int(Op.IN),
    int(Op.NOT_IN),
    int(Op.PRESENT),
    int(Op.MISSING),
)
_USES: Final = 3  # the column of a list's member that counts


@kernel
def store(state: Store, ids: NDArray[np.int64], forms: Expressions, home: int) -> None:
    """Give conjunctions numbers under their subscriptions' ids, and keep what they say; there must be room."""
    for i in range(ids.shape[0]):
        number = new_number(state.forms, state.tops, FREE_FORM, TOP_FORM)
        enter(state.ids, state.first, state.forms, state.owner, ids[i], number)
        row = state.forms[number]
        row[POINT], row[HOME] = -1, home
        forms.numbers[i] = number
        state.tops[LIVE_FORMS] += 1
        _write(state, number, forms, i)
        _count(state, forms, i, 1)


@helper
def _write(state: Store, number: int, forms: Expressions, i: int) -> None:
    begin, end = forms.offsets[i], forms.offsets[i + 1]
    count, flag = end - begin, np.int64(0)
    for q in range(begin, end):
        op = forms.tags[q] >> FIELD_BITS
        count += op in (_BETWEEN, _NOT_BETWEEN)
        if op == _RESIDUAL:
            flag = np.int64(RESIDUAL_FLAG)
    rows = state.records.rows
    at = blocks.take(state.records, class_of(count + 1))
    state.forms[number, STORED] = at
    rows[at, 0] = number + flag
    rows[at, 1] = count
    for q in range(begin, end):
        at += 1
        rows[at, 0] = forms.lows[q]
        rows[at, 1] = forms.tags[q]
        op = forms.tags[q] >> FIELD_BITS
        if op in (_BETWEEN, _NOT_BETWEEN):
            at += 1
            rows[at, 0] = forms.highs[q]
            rows[at, 1] = HIGH << FIELD_BITS


@helper
def _count(state: Store, forms: Expressions, i: int, change: int) -> None:
    """Count a conjunction's predicates, by field and in all, and the uses of its lists."""
    for q in range(forms.offsets[i], forms.offsets[i + 1]):
        state.tops[PREDICATES] += change
        op, field = forms.tags[q] >> FIELD_BITS, forms.tags[q] & _MASK
        if op == _RESIDUAL:
            continue
        _use(state, field, change)
        list_ = forms.which[q]
        if list_ < 0:
            state.others[field] += change * (op not in (_EQ, _PRESENT, _MISSING))
            continue
        if op == _NOT_IN or forms.starts[list_ + 1] - forms.starts[list_] > MOST_MEMBERS:
            state.others[forms.fields[forms.starts[list_]]] += change
        for m in range(forms.starts[list_], forms.starts[list_ + 1]):
            if op == _IN:
                _use(state, forms.fields[m], change)
            entry = hash_index.find(state.lists, forms.lows[q], forms.fields[m], forms.keys[m])
            if entry < 0:
                entry = hash_index.insert(state.lists, forms.lows[q], forms.fields[m], forms.keys[m])
                state.lists.keys[entry, _USES] = 0
            state.lists.keys[entry, _USES] += change
            if state.lists.keys[entry, _USES] == 0:
                hash_index.remove(state.lists, entry)


@helper
def _use(state: Store, field: int, change: int) -> None:
    """Count a use of a field; of one that nobody asked for before, it is not known which events had it."""
    if state.uses[field] == 0:
        state.seen[field], state.since[field] = 0.0, state.totals[EVENTS]
    state.uses[field] += change


@kernel
def recall(state: Store, numbers: NDArray[np.int64], begin: int, forms: Expressions) -> int:
    """Write what conjunctions from `begin` on say, as many as there is room for; return where it stopped."""
    forms.offsets[0] = 0
    predicates = np.int64(0)
    for i in range(begin, numbers.shape[0]):
        number = numbers[i]
        at = np.int64(state.forms[number, STORED])
        count = state.records.rows[at, 1]
        if i - begin == forms.numbers.shape[0] or predicates + count > forms.tags.shape[0]:
            return i
        forms.numbers[i - begin] = number
        for record in range(at + 1, at + 1 + count):
            key, tag = state.records.rows[record, 0], state.records.rows[record, 1]
            if tag >> FIELD_BITS == HIGH:
                forms.highs[predicates - 1] = key
            else:
                forms.tags[predicates] = tag
                forms.lows[predicates] = key
                forms.highs[predicates] = key
                predicates += 1
        forms.offsets[i - begin + 1] = predicates
    return numbers.shape[0]


@kernel
def leave(state: Store, forms: Expressions) -> None:
    """Give up the numbers of conjunctions that are withdrawn, and what was kept of them."""
    for i in range(forms.numbers.shape[0]):
        number = forms.numbers[i]
        _count(state, forms, i, -1)
        at = np.int64(state.forms[number, STORED])
        blocks.give(state.records, at, class_of(state.records.rows[at, 1] + 1))
        state.owner[number] = -1
        free_number(state.forms, state.tops, FREE_FORM, number)
        state.tops[LIVE_FORMS] -= 1
