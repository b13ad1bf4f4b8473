"""Evaluating the conjunctions of a leaf: predicate by predicate, until one fails."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.be_tree.state import Node, Pair, State, Top, ValueList
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Op
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper

# How a value compares with a constant, one bit each
_LESS: Final = 1
_EQUAL: Final = 2
_GREATER: Final = 4
# The bits that satisfy each of the operators EQ, NE, LT, LE, GT and GE, three per operator
_WANTED: Final = sum(bits << (3 * op) for op, bits in enumerate((2, 5, 1, 3, 4, 6)))
_FEW: Final = 8  # members of a list that are scanned


@helper
def evaluate(state: State, node: int, count: int, found: Int64s) -> tuple[int, int]:
    """Write the members of a node's leaf that the event satisfies; return how many by now, and how many failed.

    A conjunction with residual predicates is written with NEEDS_RESIDUAL added, if all its other predicates hold.
    """
    rows = state.leaves.rows
    epoch = state.tops[Top.EPOCH]
    at = np.uint64(state.nodes[node, Node.LEAF])
    end = at + np.uint64(state.nodes[node, Node.ROWS])
    failed = np.int64(0)
    while at < end:
        number, last = rows[at, 0], at + np.uint64(rows[at, 1])
        row = at + np.uint64(1)
        at = last + np.uint64(1)
        if number < 0:
            continue
        residual = np.int64(0)
        while row <= last:
            tag = rows[row, 1]
            op, field = tag >> FIELD_BITS, tag & FIELD_MASK
            word = state.attributes.slots[np.uint64(field // FIELDS)]
            if op >= Op.RESIDUAL:
                if op == Op.RESIDUAL:
                    residual = np.int64(NEEDS_RESIDUAL)
                elif op == Op.MISSING and word >> 32 == epoch:
                    break
            elif word >> 32 != epoch or not _holds(state, row, op, field, word & 0xFFFFFFFF):
                break
            row += np.uint64(1)
        if row > last:
            found[count] = number + residual
            count += 1
        else:
            failed += 1
    return count, failed


@helper
def _holds(state: State, row: int, op: int, field: int, pair: int) -> bool:
    """Tell whether the pairs of an attribute satisfy the predicate in a row."""
    if op == Op.PRESENT:
        return True
    constant = state.leaves.rows[row, 0]
    if op == Op.IN:
        return _is_member(state, constant, np.int64(-1), pair)
    relation = _compared(state, op, field, constant, pair)
    if op == Op.NE:  # one of the pairs for the tests that a string passes is always present
        return relation != 0 and relation & _EQUAL == 0
    if op <= Op.GE:
        return (_WANTED >> (3 * op)) & relation != 0
    if relation == 0:
        return False
    if op == Op.NOT_IN:
        return not _is_member(state, constant, field, pair)
    above = _compared(state, op, field, state.leaves.rows[row + np.uint64(1), 0], pair)
    is_within = relation & _LESS == 0 and above & _GREATER == 0
    return is_within == (op == Op.BETWEEN)


@helper
def _compared(state: State, op: int, field: int, constant: int, pair: int) -> int:
    """Return the bits of how the values of a field compare with a constant; 0 if there is no value."""
    pairs, relation = state.pairs, np.int64(0)
    while pair >= 0:
        row = np.uint64(pair)
        if pairs[row, Pair.FIELD] == field:
            same = pairs[row, Pair.KEY] if op <= Op.NE else pairs[row, Pair.POINT]
            order = np.int64(_LESS) if pairs[row, Pair.LOW] < constant else np.int64(_GREATER)
            relation |= np.int64(_EQUAL) if same == constant else order
        pair = pairs[row, Pair.NEXT]
    return relation


@helper
def _is_member(state: State, code: int, field: int, pair: int) -> bool:
    """Tell whether any pair of an attribute is in a list; only pairs of `field`, unless it is -1."""
    pairs, rows = state.pairs, state.members.rows
    first = state.lists[code, ValueList.FIRST]
    end = first + state.lists[code, ValueList.COUNT]
    while pair >= 0:
        kind, key = pairs[pair, Pair.FIELD], pairs[pair, Pair.KEY]
        if field in (-1, kind):
            low, high = first, end
            while high - low > _FEW:
                middle = (low + high) >> 1
                if rows[middle, 0] < kind or (rows[middle, 0] == kind and rows[middle, 1] < key):
                    low = middle + 1
                else:
                    high = middle + 1
            for i in range(low, high):
                if rows[i, 0] == kind and rows[i, 1] == key:
                    return True
        pair = pairs[pair, Pair.NEXT]
    return False
