"""Verification: whether the event at hand satisfies a conjunction."""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.predicates import is_in_order
from tocsin.matching.amkh.state import State
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.structures import hash_index
from tocsin.structures.jit import helper


@helper
def holds(state: State, at: int, pairs: int) -> bool:
    """Tell whether the event satisfies all predicates of the record at `at`; residual ones are skipped."""
    rows = state.records.rows
    end = at + 1 + rows[at, 1]
    at += 1
    while at < end:
        key, tag = rows[at, 0], rows[at, 1]
        op, field = tag >> FIELD_BITS, tag & FIELD_MASK
        at += 1
        if op == Op.RESIDUAL:
            continue
        pair = np.int64(state.fields.slot[field]) - 1
        if op == Op.MISSING:
            if pair >= 0:
                return False
            continue
        if op == Op.IN:
            if not _is_listed(state, key, field - field % FIELDS):
                return False
            continue
        if pair < 0:
            return False
        if field % FIELDS == Field.TEXT:
            if _passes(state, pair, pairs, key) != (op == Op.EQ):
                return False
            continue
        bounded = op in (Op.BETWEEN, Op.NOT_BETWEEN)
        if not _compare(state, pair, tag, (key, rows[at, 0] if bounded else key)):
            return False
        at += bounded
    return True


@helper
def _compare(state: State, pair: int, tag: int, constants: tuple[int, int]) -> bool:
    """Tell whether a pair satisfies a predicate on its field."""
    scratch, op = state.scratch, tag >> FIELD_BITS
    value, low, high = scratch.key[pair], scratch.low[pair], scratch.high[pair]
    key, other = constants
    if op == Op.EQ:
        return value == key
    if op == Op.NE:
        return value != key
    if op == Op.NOT_IN:
        return hash_index.find(state.lists, key, tag & FIELD_MASK, value) < 0
    return op == Op.PRESENT or is_in_order(op, low, high, key, other)


@helper
def _passes(state: State, pair: int, pairs: int, key: int) -> bool:
    """Tell whether a string passes a test; the tests it passes are the pairs from `pair` on."""
    scratch, field = state.scratch, state.scratch.field[pair]
    while pair < pairs and scratch.field[pair] == field:
        if scratch.key[pair] == key:
            return True
        pair += 1
    return False


@helper
def _is_listed(state: State, code: int, base: int) -> bool:
    """Tell whether a value of an attribute, of any kind, is a member of a list."""
    for field in range(base, base + Field.ANY):
        pair = np.int64(state.fields.slot[field]) - 1
        if pair >= 0 and hash_index.find(state.lists, code, field, state.scratch.key[pair]) >= 0:
            return True
    return False
