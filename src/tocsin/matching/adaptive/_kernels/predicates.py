"""Distinct predicates: their codes, as closed intervals of a slot where they can be, and the lists they name."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive.state import (
    ABSENT,
    HIGHEST,
    LOWEST,
    OP_BITS,
    ORDER,
    SLOT_MASK,
    Code,
    ListRow,
    Slot,
    State,
    Top,
    Value,
)
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper

_LOW_HALF: Final = 0xFFFFFFFF
_FEW: Final = 8  # members of a list that are scanned


@helper
def float_of(word: int) -> float:
    """Return the 32-bit float in the upper half of a word."""
    return np.float64(np.int32(word >> 32).view(np.float32))


@helper
def with_float(word: int, number: float) -> int:
    """Return a word with another 32-bit float in its upper half."""
    return (word & _LOW_HALF) | (np.int64(np.float32(number).view(np.int32)) << 32)


@helper
def slot_for(state: State, field: int) -> int:
    """Return the slot of a field, which gets one if it has none; there must be room."""
    slot = np.int64(state.slots.of[field]) - 1
    if slot < 0:
        slot = new_slot(state, field)
        state.slots.of[field] = slot + 1
    return slot


@helper
def new_slot(state: State, field: int) -> int:
    """Return a new slot, of a field or of cells of the slot that is -1 - `field`; there must be room."""
    slot = state.tops[Top.SLOTS]
    state.tops[Top.SLOTS] += 1
    for column in range(state.slots.rows.shape[1]):
        state.slots.rows[slot, column] = 0
    state.slots.rows[slot, Slot.FIELD] = field
    state.slots.seen[slot] = 0.0
    return slot


@helper
def _field_of(expressions: Expressions, q: int) -> int:
    """Return the field that a predicate of an expression asks about."""
    tag = expressions.tags[q]
    op, field = tag >> FIELD_BITS, tag & FIELD_MASK
    if op == Op.IN:
        begin, end = expressions.starts[expressions.which[q]], expressions.starts[expressions.which[q] + 1]
        for m in range(begin + 1, end):
            if expressions.fields[m] != expressions.fields[begin]:
                return field
        return expressions.fields[begin] if begin < end else field
    if field % FIELDS == Field.STRING and Op.LT <= op <= Op.NOT_BETWEEN:
        return field - Field.STRING + ORDER
    return field


@helper
def intern(state: State, expressions: Expressions, q: int) -> int:
    """Return the code of a predicate, with one more use; there must be room for it and the members of its list."""
    tag, low, high = expressions.tags[q], expressions.lows[q], expressions.highs[q]
    op = tag >> FIELD_BITS
    if op == Op.RESIDUAL:
        return retain_code(state, np.int64(Op.RESIDUAL) << OP_BITS, low, np.int64(0))
    key = (op << OP_BITS) | slot_for(state, _field_of(expressions, q))
    if op == Op.LT:
        low, high = (np.int64(LOWEST), high - 1) if high > LOWEST else (np.int64(HIGHEST), np.int64(LOWEST))
    elif op == Op.LE:
        low = np.int64(LOWEST)
    elif op == Op.GT:
        low, high = low + 1, np.int64(HIGHEST - 1)  # no key; an absent value has HIGHEST
    elif op == Op.GE:
        high = np.int64(HIGHEST - 1)
    elif op in (Op.IN, Op.NOT_IN):
        high = np.int64(0)
        if state.lists[low, ListRow.COUNT] == 0:
            _enter_list(state, expressions, expressions.which[q], low)
    return retain_code(state, key, low, high)


@helper
def retain_code(state: State, key: int, low: int, high: int) -> int:
    """Return the code with this key, a new one if there is none, with one more use."""
    predicates = state.predicates
    code = hash_index.find(predicates.entries, key, low, high)
    if code < 0:
        code = hash_index.insert(predicates.entries, key, low, high)
        predicates.entries.keys[code, Code.USE] = 0
        predicates.uses[code] = 0
        predicates.linked[code] = 0
        if key >> OP_BITS == Op.EQ:
            state.slots.rows[key & SLOT_MASK, Slot.EQUALITIES] += 1
    predicates.uses[code] += 1
    return code


@helper
def release_code(state: State, code: int) -> None:
    """Count one use less of a code, and forget the code with the last one."""
    predicates = state.predicates
    predicates.uses[code] -= 1
    if predicates.uses[code] > 0:
        return
    key, low = predicates.entries.keys[code, Code.TAG], predicates.entries.keys[code, Code.LOW]
    op = key >> OP_BITS
    if op == Op.EQ:
        state.slots.rows[key & SLOT_MASK, Slot.EQUALITIES] -= 1
    hash_index.remove(predicates.entries, code)
    if op in (Op.IN, Op.NOT_IN):
        other = (np.int64(Op.IN + Op.NOT_IN) - op) << OP_BITS
        if hash_index.find(predicates.entries, other | (key & SLOT_MASK), low, np.int64(0)) < 0:
            row = state.lists[low]
            blocks.give(state.members, row[ListRow.FIRST], class_of(row[ListRow.COUNT]))
            row[ListRow.COUNT] = 0


@helper
def _enter_list(state: State, expressions: Expressions, which: int, code: int) -> None:
    """Store the members of a list, by slot and key."""
    begin, end = expressions.starts[which], expressions.starts[which + 1]
    first, rows = blocks.take(state.members, class_of(end - begin)), state.members.rows
    for m in range(begin, end):
        slot, key, at = slot_for(state, expressions.fields[m]), expressions.keys[m], first + m - begin
        while at > first and (rows[at - 1, 0] > slot or (rows[at - 1, 0] == slot and rows[at - 1, 1] > key)):
            rows[at, 0], rows[at, 1] = rows[at - 1, 0], rows[at - 1, 1]
            at -= 1
        rows[at, 0], rows[at, 1] = slot, key
    row = state.lists[code]
    row[ListRow.FIRST], row[ListRow.COUNT], row[ListRow.LINKS] = first, end - begin, -1


@helper
def decode(state: State, code: int, into: Expressions, q: int) -> None:
    """Write a predicate as it was encoded before it got a code."""
    keys = state.predicates.entries.keys
    tag, low, high = keys[code, Code.TAG], keys[code, Code.LOW], keys[code, Code.HIGH]
    op = tag >> OP_BITS
    field = np.int64(0)
    if op != Op.RESIDUAL:
        field = state.slots.rows[tag & SLOT_MASK, Slot.FIELD]
        kind = field % FIELDS
        if op == Op.IN:
            field += Field.ANY - kind
        elif kind == ORDER:
            field += Field.STRING - ORDER
    if op == Op.LT:
        low = high = high + 1 if low == LOWEST else np.int64(LOWEST)
    elif op == Op.LE:
        low = high
    elif op == Op.GT:
        low = high = low - 1
    elif op == Op.GE:
        high = low
    into.tags[q], into.lows[q], into.highs[q] = (op << FIELD_BITS) | field, low, high


@helper
def is_listed(members: Int64s, row: Int64s, slot: int, key: int) -> bool:
    """Tell whether a list has a key of a slot."""
    low = row[ListRow.FIRST]
    high = low + row[ListRow.COUNT]
    while high - low > _FEW:
        middle = (low + high) >> 1
        if members[middle, 0] < slot or (members[middle, 0] == slot and members[middle, 1] < key):
            low = middle + 1
        else:
            high = middle + 1
    found = False
    for i in range(low, high):
        found |= members[i, 0] == slot and members[i, 1] == key
    return found


@helper
def is_present(state: State, slot: int) -> bool:
    """Tell whether the event has a value in a slot."""
    return state.slots.values[slot, Value.CODE] != ABSENT
