"""Classes of clauses: whether an event satisfies any clause of a class is told by the class's extreme constants.

An extreme that is too wide costs a look at a bucket, never a match. So a clause that goes leaves the extremes as they
are until many have gone: then they are found anew, which costs each clause that goes a constant number of steps.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.amkh.state import (
    BOTH_HIGH,
    BOTH_LOW,
    CLASS_COLUMNS,
    CLASS_COUNT,
    CLASSES,
    CLASSES_CLASS,
    CLASSES_COUNT,
    CLAUSE_BEFORE,
    CLAUSE_CLASS,
    CLAUSE_ID,
    CLAUSE_NEXT,
    CUTS,
    HAS_LOWER,
    HAS_UPPER,
    HEAD,
    HIGHEST,
    LARGEST_CLASSES,
    LEAST_GE,
    LEAST_GT,
    LIVE,
    LOOSE_COUNT,
    LOWER_STRICT,
    LOWEST,
    MOST_LE,
    MOST_LT,
    NE_COUNT,
    RANGE,
    RANKED,
    STALE,
    UNEQUALS,
    UPPER_STRICT,
    Index,
)
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper

__all__ = ["enter_class", "is_matched", "leave_class"]

_NE: Final = int(Op.NE)
_FEW: Final = 32  # clauses of a class that are gone through whenever one has gone
_PART: Final = 8  # of more, when an eighth has gone


@helper
def _shape(op: int) -> int:
    """Return whether a clause is bounded below (0), above (1), on both sides (2) or not at all (3)."""
    if op < RANGE:
        return np.int64(3)
    flags = op - RANGE
    if flags & HAS_LOWER == 0:
        return np.int64(1)
    return np.int64(2) if flags & HAS_UPPER else np.int64(0)


@helper
def _class_for(index: Index, place: int, entry: int) -> int:
    """Return the class of a clause other than an equality."""
    count, keys = index.settings[CLASS_COUNT], index.clauses.keys
    if count == 0:
        return keys[entry, CLAUSE_ID]
    if index.settings[RANKED] == 0:
        return keys[entry, CLAUSE_ID] % count
    shape = _shape(keys[entry, 0] >> FIELD_BITS)
    if shape == 3:
        return 3 * count
    low, high = keys[entry, 1], keys[entry, 2]
    constant = low if shape == 0 else high if shape == 1 else (low >> 1) + (high >> 1)
    first = (3 * index.places[place, CUTS] + shape) * (count - 1)
    rank = np.int64(0)
    while rank < count - 1 and index.cuts[first + rank] < constant:
        rank += 1
    return shape * count + rank


@helper
def _clear(row: NDArray[np.int64]) -> None:
    row[LEAST_GE] = row[LEAST_GT] = row[BOTH_LOW] = HIGHEST
    row[MOST_LE] = row[MOST_LT] = row[BOTH_HIGH] = LOWEST


@helper
def _make_classes(index: Index, place: int, class_: int) -> int:
    """Return the row of an attribute's class, making rows for it if there are none."""
    row = index.places[place]
    count = row[CLASSES_COUNT]
    if class_ >= count:
        block = class_of(max(class_ + 1, count))
        if index.settings[CLASS_COUNT] > 0:
            settled = index.settings[CLASS_COUNT]
            block = class_of(3 * settled + 1 if index.settings[RANKED] else settled)
        first = blocks.take(index.classes, block)
        rows = index.classes.rows
        for i in range(count):
            for column in range(CLASS_COLUMNS):
                rows[first + i, column] = rows[row[CLASSES] + i, column]
        for i in range(count, size_of(block)):
            _clear(rows[first + i])
            rows[first + i, NE_COUNT] = rows[first + i, LOOSE_COUNT] = 0
            rows[first + i, LIVE] = rows[first + i, STALE] = 0
            rows[first + i, HEAD] = -1
        if count > 0:
            blocks.give(index.classes, row[CLASSES], row[CLASSES_CLASS])
        row[CLASSES], row[CLASSES_CLASS], row[CLASSES_COUNT] = first, block, size_of(block)
        index.tops[LARGEST_CLASSES] = max(index.tops[LARGEST_CLASSES], size_of(block))
    return row[CLASSES] + class_


@helper
def _widen(row: NDArray[np.int64], tag: int, low: int, high: int) -> None:
    """Let a class's extremes take in a clause."""
    op = tag >> FIELD_BITS
    if op < RANGE:
        return
    flags, shape = op - RANGE, _shape(op)
    if shape == 2:
        row[BOTH_LOW] = min(row[BOTH_LOW], low)
        row[BOTH_HIGH] = max(row[BOTH_HIGH], high)
    elif shape == 0:
        column = LEAST_GT if flags & LOWER_STRICT else LEAST_GE
        row[column] = min(row[column], low)
    else:
        column = MOST_LT if flags & UPPER_STRICT else MOST_LE
        row[column] = max(row[column], high)


@helper
def enter_class(index: Index, place: int, entry: int) -> int:
    """Put a clause into its class, and return the class; there must be room."""
    keys = index.clauses.keys
    class_ = _class_for(index, place, entry)
    row = index.classes.rows[_make_classes(index, place, class_)]
    _widen(row, keys[entry, 0], keys[entry, 1], keys[entry, 2])
    op = keys[entry, 0] >> FIELD_BITS
    if op == _NE:
        row[NE_COUNT] += 1
        index.places[place, UNEQUALS] += 1
    elif op < RANGE:
        row[LOOSE_COUNT] += 1
    row[LIVE] += 1
    keys[entry, CLAUSE_CLASS] = class_
    keys[entry, CLAUSE_NEXT] = row[HEAD]
    keys[entry, CLAUSE_BEFORE] = -1
    if row[HEAD] >= 0:
        keys[row[HEAD], CLAUSE_BEFORE] = entry
    row[HEAD] = entry
    return class_


@helper
def leave_class(index: Index, place: int, entry: int) -> None:
    """Take a clause out of its class, and find the class's extremes anew if many have gone."""
    keys = index.clauses.keys
    row = index.classes.rows[index.places[place, CLASSES] + keys[entry, CLAUSE_CLASS]]
    op = keys[entry, 0] >> FIELD_BITS
    if op == _NE:
        row[NE_COUNT] -= 1
        index.places[place, UNEQUALS] -= 1
    elif op < RANGE:
        row[LOOSE_COUNT] -= 1
    before, following = keys[entry, CLAUSE_BEFORE], keys[entry, CLAUSE_NEXT]
    if before >= 0:
        keys[before, CLAUSE_NEXT] = following
    else:
        row[HEAD] = following
    if following >= 0:
        keys[following, CLAUSE_BEFORE] = before
    row[LIVE] -= 1
    row[STALE] += 1
    if row[LIVE] <= _FEW or row[STALE] * _PART >= row[LIVE]:
        row[STALE] = 0
        _clear(row)
        other = row[HEAD]
        while other >= 0:
            _widen(row, keys[other, 0], keys[other, 1], keys[other, 2])
            other = keys[other, CLAUSE_NEXT]


@helper
def is_matched(row: NDArray[np.int64], low: int, high: int, refuted: int) -> bool:
    """Tell whether a value may satisfy a clause of a class, of which it refutes so many `!=`."""
    return (
        low >= row[LEAST_GE]
        or high > row[LEAST_GT]
        or high <= row[MOST_LE]
        or low < row[MOST_LT]
        or (low <= row[BOTH_HIGH] and high >= row[BOTH_LOW])
        or row[NE_COUNT] > refuted
        or row[LOOSE_COUNT] > 0
    )
