"""The numbers of conjunctions under their subscriptions' ids, and what they say."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import enter, free_number, new_number
from tocsin.matching.be_tree.state import (
    FREE_FORM,
    HIGH,
    LEAF,
    LIVE_FORMS,
    NODE,
    PREDICATES,
    SIZE,
    SPOT,
    TOP_FORM,
    Expressions,
    State,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.structures.jit import helper, kernel

_MASK: Final = (1 << FIELD_BITS) - 1
_RESIDUAL: Final = int(Op.RESIDUAL)


@kernel
def number_all(state: State, ids: NDArray[np.int64], forms: Expressions) -> None:
    """Give conjunctions numbers under their subscriptions' ids; there must be room."""
    for i in range(ids.shape[0]):
        number = new_number(state.forms, state.tops, FREE_FORM, TOP_FORM)
        enter(state.ids, state.first, state.forms, state.owner, ids[i], number)
        row = state.forms[number]
        row[NODE] = -1
        row[SIZE] = forms.offsets[i + 1] - forms.offsets[i]
        forms.numbers[i] = number
        state.tops[LIVE_FORMS] += 1
        _count(state, forms, i, 1)


@helper
def _count(state: State, forms: Expressions, i: int, change: int) -> None:
    """Count a conjunction's predicates, by attribute and in all."""
    for q in range(forms.offsets[i], forms.offsets[i + 1]):
        if forms.tags[q] >> FIELD_BITS != _RESIDUAL:
            state.attributes.uses[(forms.tags[q] & _MASK) // FIELDS] += change
        state.tops[PREDICATES] += change


@kernel
def recall(state: State, numbers: NDArray[np.int64], forms: Expressions) -> None:
    """Write what conjunctions in the tree say; there must be room."""
    forms.offsets[0] = 0
    rows, end = state.leaves.rows, np.int64(0)
    for i in range(numbers.shape[0]):
        row = state.forms[numbers[i]]
        at = state.nodes[row[NODE], LEAF] + row[SPOT]
        for record in range(at + 1, at + 1 + rows[at, 1]):
            key, tag = rows[record, 0], rows[record, 1]
            if tag >> FIELD_BITS == HIGH:
                forms.highs[end - 1] = key
            else:
                forms.tags[end], forms.lows[end], forms.highs[end] = tag, key, key
                end += 1
        forms.offsets[i + 1] = end


@kernel
def leave(state: State, forms: Expressions) -> None:
    """Give up the numbers of conjunctions that are taken out."""
    for i in range(forms.numbers.shape[0]):
        number = forms.numbers[i]
        _count(state, forms, i, -1)
        state.owner[number] = -1
        free_number(state.forms, state.tops, FREE_FORM, number)
        state.tops[LIVE_FORMS] -= 1
