"""From where to where a value must lie to satisfy a predicate, and where to cut between such intervals."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree.state import (
    HIGHEST,
    KIND,
    LEAST,
    LOWEST,
    MOST,
    State,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Keys, Op
from tocsin.structures.jit import helper

_MASK: Final = (1 << FIELD_BITS) - 1
_SIGN: Final = 0x7FFFFFFFFFFFFFFF
_NUMBER, _STRING, _TEXT = int(Field.NUMBER), int(Field.STRING), int(Field.TEXT)
_EQ, _LT, _LE, _GT, _GE = int(Op.EQ), int(Op.LT), int(Op.LE), int(Op.GT), int(Op.GE)
_BETWEEN, _IN, _RESIDUAL = int(Op.BETWEEN), int(Op.IN), int(Op.RESIDUAL)


@helper
def field_at(state: State, rows: Keys, at: int) -> int:
    """Return the field that an event must have to satisfy the predicate in a row, or -1 if there is none.

    An event that lacks an attribute comes to no partition of it, so `is missing` has none.
    """
    tag = rows[at, 1]
    op = tag >> FIELD_BITS
    if op >= _RESIDUAL:  # or `is missing`, or no predicate but an upper bound
        return np.int64(-1)
    return state.lists[rows[at, 0], KIND] if op == _IN else tag & _MASK


@helper
def interval_at(state: State, rows: Keys, at: int) -> tuple[int, int]:
    """Return the least and the greatest key that satisfy the predicate in a row, which has a field.

    The keys of strings are codes, which tell what is equal and not what is greater: an ordered predicate on strings
    takes them all. So does a negated one.
    """
    key, tag = rows[at, 0], rows[at, 1]
    op, is_string = tag >> FIELD_BITS, (tag & _MASK) % FIELDS == _STRING
    low, high = np.int64(LOWEST), np.int64(HIGHEST)
    if op == _EQ:
        return key, key
    if op == _IN:
        return state.lists[key, LEAST], state.lists[key, MOST]
    if is_string:
        return low, high
    if op == _LE:
        return low, key
    if op == _GE:
        return key, high
    if op == _LT:
        return low, key - 1
    if op == _GT:
        return key + 1, high
    if op == _BETWEEN and key <= rows[at + 1, 0]:
        return key, rows[at + 1, 0]
    return low, high


@helper
def interval_on(state: State, at: int, field: int) -> tuple[int, int]:
    """Return from where to where the values of a field must lie for the conjunction whose first row is `at`.

    Of several predicates on the field, all must hold; where they contradict each other, the first will do. A string
    may pass several tests, so of those the first will do, too.
    """
    found, low, high = False, np.int64(LOWEST), np.int64(HIGHEST)
    rows = state.leaves.rows
    for row in range(at + 1, at + 1 + rows[at, 1]):
        if field_at(state, rows, row) == field:
            least, greatest = interval_at(state, rows, row)
            if max(low, least) <= min(high, greatest) and (not found or field % FIELDS != _TEXT):
                low, high = max(low, least), min(high, greatest)
            found = True
    return low, high


@helper
def middle(field: int, low: int, high: int) -> int:
    """Return the key in the middle of two that differ, but not the greater one."""
    if field % FIELDS != _NUMBER:
        return low + ((high - low) >> 1)
    between = _number(low) * 0.5 + _number(high) * 0.5
    bits = np.float64(between).view(np.int64)
    key = bits ^ ((bits >> 63) & _SIGN)
    return min(max(key, low), high - 1)


@helper
def _number(key: int) -> float:
    bits = key if key >= 0 else key ^ _SIGN
    return np.int64(bits).view(np.float64)
