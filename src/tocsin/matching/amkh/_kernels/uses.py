"""Storing conjunctions, and counting the uses of their fields and lists."""

from __future__ import annotations

from typing import Final

from tocsin.matching.amkh.state import MOST_MEMBERS, State, Total
from tocsin.matching.conjunction_store._kernels.records import free_all, store_all
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, Op
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_USES: Final = 3  # the column of a list's member that counts


@kernel
def keep(state: State, ids: Int64s, expressions: Expressions) -> None:
    """Store conjunctions, and count the uses of their fields and lists; there must be room."""
    store_all(state.store, state.records, ids, expressions)
    _count(state, expressions, 1)


@kernel
def forget(state: State, expressions: Expressions) -> None:
    """Free conjunctions that are withdrawn, and no longer count the uses of their fields and lists."""
    _count(state, expressions, -1)
    free_all(state.store, state.records, expressions)


@helper
def _count(state: State, expressions: Expressions, change: int) -> None:
    """Add `change` to the uses of conjunctions' fields and lists."""
    fields = state.fields
    for q in range(expressions.tags.shape[0]):
        op, field = expressions.tags[q] >> FIELD_BITS, expressions.tags[q] & FIELD_MASK
        if op == Op.RESIDUAL:
            continue
        _use(state, field, change)
        list_ = expressions.which[q]
        if list_ < 0:
            fields.others[field] += change * (op not in (Op.EQ, Op.PRESENT, Op.MISSING))
            continue
        if op == Op.NOT_IN or expressions.starts[list_ + 1] - expressions.starts[list_] > MOST_MEMBERS:
            fields.others[expressions.fields[expressions.starts[list_]]] += change
        for m in range(expressions.starts[list_], expressions.starts[list_ + 1]):
            if op == Op.IN:
                _use(state, expressions.fields[m], change)
            entry = hash_index.find(
                state.lists, expressions.lows[q], expressions.fields[m], expressions.keys[m]
            )
            if entry < 0:
                entry = hash_index.insert(
                    state.lists, expressions.lows[q], expressions.fields[m], expressions.keys[m]
                )
                state.lists.keys[entry, _USES] = 0
            state.lists.keys[entry, _USES] += change
            if state.lists.keys[entry, _USES] == 0:
                hash_index.remove(state.lists, entry)


@helper
def _use(state: State, field: int, change: int) -> None:
    """Count a use of a field; the events with a field are counted from its first use on."""
    if state.fields.uses[field] == 0:
        state.fields.seen[field], state.fields.since[field] = 0.0, state.totals[Total.EVENTS]
    state.fields.uses[field] += change
