"""The numbers of conjunctions under their subscriptions' ids, and what they say."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.be_tree.state import (
    FREE_FORM,
    HIGH,
    LEAF,
    LIVE_FORMS,
    NODE,
    PREDICATES,
    SIBLING,
    SIZE,
    SPOT,
    TOP_FORM,
    Forms,
    State,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.structures import hash_index
from tocsin.structures.jit import helper, kernel

__all__ = ["leave", "number_all", "numbers_of", "recall", "unlink"]

_MASK: Final = (1 << FIELD_BITS) - 1
_RESIDUAL: Final = int(Op.RESIDUAL)


@kernel
def number_all(state: State, ids: NDArray[np.int64], forms: Forms) -> None:
    """Give conjunctions numbers under their subscriptions' ids; there must be room."""
    for i in range(ids.shape[0]):
        entry = hash_index.find(state.ids, ids[i], 0, 0)
        if entry < 0:
            entry = hash_index.insert(state.ids, ids[i], 0, 0)
            state.first[entry] = -1
        number = state.tops[FREE_FORM]
        if number >= 0:
            state.tops[FREE_FORM] = state.forms[number, SIBLING]
        else:
            number = state.tops[TOP_FORM]
            state.tops[TOP_FORM] += 1
        row = state.forms[number]
        row[SIBLING], row[NODE] = state.first[entry], -1
        row[SIZE] = forms.offsets[i + 1] - forms.offsets[i]
        state.owner[number] = entry
        state.first[entry] = number
        forms.numbers[i] = number
        state.tops[LIVE_FORMS] += 1
        _count(state, forms, i, 1)


@helper
def _count(state: State, forms: Forms, i: int, change: int) -> None:
    """Count a conjunction's predicates, by attribute and in all."""
    for q in range(forms.offsets[i], forms.offsets[i + 1]):
        if forms.tags[q] >> FIELD_BITS != _RESIDUAL:
            state.attributes.uses[(forms.tags[q] & _MASK) // FIELDS] += change
        state.tops[PREDICATES] += change


@kernel
def numbers_of(
    state: State, ids: NDArray[np.int64], start: int, numbers: NDArray[np.int64]
) -> tuple[int, int]:
    """Write the conjunctions of ids from `start` on, as many as there is room for; return the ids and those done.

    An id that comes twice is asked for once: its conjunctions are taken from it.
    """
    count = np.int64(0)
    for i in range(start, ids.shape[0]):
        entry = hash_index.find(state.ids, ids[i], 0, 0)
        if entry < 0:
            continue
        size, number = np.int64(0), np.int64(state.first[entry])
        while number >= 0:
            size += 1
            number = np.int64(state.forms[number, SIBLING])
        if count + size > numbers.shape[0]:
            return np.int64(i), count
        number = np.int64(state.first[entry])
        while number >= 0:
            numbers[count] = number
            count += 1
            number = np.int64(state.forms[number, SIBLING])
        hash_index.remove(state.ids, entry)
    return ids.shape[0], count


@kernel
def unlink(state: State, ids: NDArray[np.int64], forms: Forms) -> None:
    """Take conjunctions from their ids, and ids that have no other out of the index."""
    for i in range(ids.shape[0]):
        entry = hash_index.find(state.ids, ids[i], 0, 0)
        before, number = np.int64(-1), np.int64(state.first[entry])
        while number != forms.numbers[i]:
            before = number
            number = np.int64(state.forms[number, SIBLING])
        following = state.forms[number, SIBLING]
        if before >= 0:
            state.forms[before, SIBLING] = following
        else:
            state.first[entry] = following
            if following < 0:
                hash_index.remove(state.ids, entry)


@kernel
def recall(state: State, numbers: NDArray[np.int64], forms: Forms) -> None:
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
def leave(state: State, forms: Forms) -> None:
    """Give up the numbers of conjunctions that are taken out."""
    for i in range(forms.numbers.shape[0]):
        number = forms.numbers[i]
        _count(state, forms, i, -1)
        state.owner[number] = -1
        state.forms[number, SIBLING] = state.tops[FREE_FORM]
        state.tops[FREE_FORM] = number
        state.tops[LIVE_FORMS] -= 1
