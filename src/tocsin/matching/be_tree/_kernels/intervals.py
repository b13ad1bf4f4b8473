"""The fields and the intervals of keys that predicates require, and the middle of an interval."""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.number_keys import key_of_number, number_of_key
from tocsin.matching.be_tree.state import HIGHEST, LOWEST, State, ValueList
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Keys, Op
from tocsin.structures.jit import helper


@helper
def field_at(state: State, rows: Keys, at: int) -> int:
    """Return the field that an event must have to satisfy the predicate in a row, or -1 if there is none.

    An event without the attribute visits no partition on it, so `is missing` has none.
    """
    tag = rows[at, 1]
    op = tag >> FIELD_BITS
    if op >= Op.RESIDUAL:  # or `is missing`, or the upper bound of the row before
        return np.int64(-1)
    return state.lists[rows[at, 0], ValueList.FIELD] if op == Op.IN else tag & FIELD_MASK


@helper
def interval_at(state: State, rows: Keys, at: int) -> tuple[int, int]:
    """Return the least and the greatest key that satisfy the predicate in a row, which has a field.

    The keys of strings are codes without order, so an ordered predicate on strings takes all keys. So does a negated
    one.
    """
    key, tag = rows[at, 0], rows[at, 1]
    op, is_string = tag >> FIELD_BITS, (tag & FIELD_MASK) % FIELDS == Field.STRING
    low, high = np.int64(LOWEST), np.int64(HIGHEST)
    if op == Op.EQ:
        return key, key
    if op == Op.IN:
        return state.lists[key, ValueList.LEAST], state.lists[key, ValueList.GREATEST]
    if is_string:
        return low, high
    if op == Op.LE:
        return low, key
    if op == Op.GE:
        return key, high
    if op == Op.LT:
        return low, key - 1
    if op == Op.GT:
        return key + 1, high
    if op == Op.BETWEEN and key <= rows[at + 1, 0]:
        return key, rows[at + 1, 0]
    return low, high


@helper
def interval_on(state: State, at: int, field: int) -> tuple[int, int]:
    """Return the interval that the value of a field must lie in for the conjunction whose first row is `at`.

    Several predicates on the field must all hold, so their intervals are intersected, unless they are disjoint. A string
    may pass several tests, so only the first predicate counts there.
    """
    found, low, high = False, np.int64(LOWEST), np.int64(HIGHEST)
    rows = state.leaves.rows
    for row in range(at + 1, at + 1 + rows[at, 1]):
        if field_at(state, rows, row) == field:
            least, greatest = interval_at(state, rows, row)
            if max(low, least) <= min(high, greatest) and (not found or field % FIELDS != Field.TEXT):
                low, high = max(low, least), min(high, greatest)
            found = True
    return low, high


@helper
def middle(field: int, low: int, high: int) -> int:
    """Return the key in the middle of two different ones, below the greater one."""
    if field % FIELDS != Field.NUMBER:
        return low + ((high - low) >> 1)
    between = key_of_number(number_of_key(low) * 0.5 + number_of_key(high) * 0.5)
    return min(max(between, low), high - 1)
