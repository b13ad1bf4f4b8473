"""Whether an event satisfies the conjunctions of a leaf: predicate by predicate, until one fails."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.be_tree.state import (
    COUNT,
    EPOCH,
    KEY,
    LEAF,
    LOW,
    MEMBER,
    NEXT,
    PAIR_FIELD,
    POINT,
    ROWS,
    State,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.structures.jit import helper

_MASK: Final = (1 << FIELD_BITS) - 1
_NE, _GE, _BETWEEN, _NOT_BETWEEN = int(Op.NE), int(Op.GE), int(Op.BETWEEN), int(Op.NOT_BETWEEN)
_IN, _NOT_IN, _PRESENT, _RESIDUAL, _MISSING = (
    int(Op.IN),
    int(Op.NOT_IN),
    int(Op.PRESENT),
    int(Op.RESIDUAL),
    int(Op.MISSING),
)
# How a value compares with a constant, a bit each
_LESS: Final = 1
_EQUAL: Final = 2
_GREATER: Final = 4
# What each of the operators EQ, NE, LT, LE, GT and GE wants of these, three bits each
_WANTED: Final = sum(bits << (3 * op) for op, bits in enumerate((2, 5, 1, 3, 4, 6)))
_FEW: Final = 8  # members of a list that are gone through


@helper
def evaluate(state: State, node: int, count: int, found: NDArray[np.int64]) -> tuple[int, int]:
    """Write which members of a node's leaf the event at hand satisfies; return how many by now, and how many failed.

    A conjunction with predicates that only Python can tell is found as NEEDS_RESIDUAL, if all others hold.
    """
    rows = state.leaves.rows
    epoch = state.tops[EPOCH]
    at = np.uint64(state.nodes[node, LEAF])
    end = at + np.uint64(state.nodes[node, ROWS])
    failed = np.int64(0)
    while at < end:
        number, last = rows[at, 0], at + np.uint64(rows[at, 1])
        row = at + np.uint64(1)
        at = last + np.uint64(1)
        if number < 0:
            continue
        unsure = np.int64(0)
        while row <= last:
            tag = rows[row, 1]
            op, field = tag >> FIELD_BITS, tag & _MASK
            word = state.attributes.slots[np.uint64(field // FIELDS)]
            if op >= _RESIDUAL:
                if op == _RESIDUAL:
                    unsure = np.int64(NEEDS_RESIDUAL)
                elif op == _MISSING and word >> 32 == epoch:
                    break
            elif word >> 32 != epoch or not _holds(state, row, op, field, word & 0xFFFFFFFF):
                break
            row += np.uint64(1)
        if row > last:
            found[count] = number + unsure
            count += 1
        else:
            failed += 1
    return count, failed


@helper
def _holds(state: State, row: int, op: int, field: int, pair: int) -> bool:
    """Tell whether some of the pairs of an attribute satisfy the predicate in a row."""
    if op == _PRESENT:
        return True
    constant = state.leaves.rows[row, 0]
    if op == _IN:
        return _is_member(state, constant, np.int64(-1), pair)
    told = _compared(state, op, field, constant, pair)
    if op == _NE:  # of the pairs that tell which tests a string passes, one is always there
        return told != 0 and told & _EQUAL == 0
    if op <= _GE:
        return (_WANTED >> (3 * op)) & told != 0
    if told == 0:
        return False
    if op == _NOT_IN:
        return not _is_member(state, constant, field, pair)
    above = _compared(state, op, field, state.leaves.rows[row + np.uint64(1), 0], pair)
    is_within = told & _LESS == 0 and above & _GREATER == 0
    return is_within == (op == _BETWEEN)


@helper
def _compared(state: State, op: int, field: int, constant: int, pair: int) -> int:
    """Return how the values of a field compare with a constant, all in one; 0 if there is none."""
    pairs, told = state.pairs, np.int64(0)
    while pair >= 0:
        row = np.uint64(pair)
        if pairs[row, PAIR_FIELD] == field:
            same = pairs[row, KEY] if op <= _NE else pairs[row, POINT]
            order = np.int64(_LESS) if pairs[row, LOW] < constant else np.int64(_GREATER)
            told |= np.int64(_EQUAL) if same == constant else order
        pair = pairs[row, NEXT]
    return told


@helper
def _is_member(state: State, code: int, field: int, pair: int) -> bool:
    """Tell whether any of the pairs of an attribute, or of one of its fields if it is not negative, is in a list."""
    pairs, rows = state.pairs, state.members.rows
    first = state.lists[code, MEMBER]
    end = first + state.lists[code, COUNT]
    while pair >= 0:
        kind, key = pairs[pair, PAIR_FIELD], pairs[pair, KEY]
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
        pair = pairs[pair, NEXT]
    return False
