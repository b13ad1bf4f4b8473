"""The order of entries: by field, key, and counter or gate."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import copy_row
from tocsin.structures.jit import helper

TARGET: Final = 0xFFFFFFFF  # bits of an entry's word for its counter or gate
FIELD: Final = 0x7FFFFFFF  # bits above them for its field; the sign says that the entry is dead


@helper
def is_before(rows: Int64s, at: int, field: int, key: int, target: int) -> bool:
    """Tell whether an entry sorts before (field, key, target)."""
    word = rows[at, 1]
    own = (word >> 32) & FIELD
    if own != field:
        return own < field
    if rows[at, 0] != key:
        return rows[at, 0] < key
    return (word & TARGET) < target


@helper
def first_at(rows: Int64s, begin: int, end: int, field: int, key: int, target: int) -> int:
    """Return the first of the sorted entries from `begin` to `end` that is not before (field, key, target)."""
    while begin < end:
        middle = (begin + end) >> 1
        if is_before(rows, middle, field, key, target):
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def sort(rows: Int64s, count: int) -> None:
    """Sort rows in place by heap sort."""
    for root in range(count // 2 - 1, -1, -1):
        _sift(rows, root, count)
    for last in range(count - 1, 0, -1):
        key, word = rows[0, 0], rows[0, 1]
        copy_row(rows, last, np.int64(0))
        rows[last, 0], rows[last, 1] = key, word
        _sift(rows, np.int64(0), last)


@helper
def _sift(rows: Int64s, root: int, size: int) -> None:
    """Restore the heap below `root`."""
    key, word = rows[root, 0], rows[root, 1]
    field, target = (word >> 32) & FIELD, word & TARGET
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size:
            other = rows[child + 1, 1]
            child += is_before(rows, child, (other >> 32) & FIELD, rows[child + 1, 0], other & TARGET)
        if is_before(rows, child, field, key, target):
            break
        copy_row(rows, child, root)
        root = child
    rows[root, 0], rows[root, 1] = key, word
