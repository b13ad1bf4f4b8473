"""The order of entries: by field, key, and counter or gate."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import helper

_TARGET: Final = 0xFFFFFFFF
_FIELD: Final = 0x7FFFFFFF


@helper
def is_before(rows: NDArray[np.int64], at: int, field: int, key: int, target: int) -> bool:
    """Tell whether an entry's place is before that of another."""
    word = rows[at, 1]
    own = (word >> 32) & _FIELD
    if own != field:
        return own < field
    if rows[at, 0] != key:
        return rows[at, 0] < key
    return (word & _TARGET) < target


@helper
def first_at(rows: NDArray[np.int64], begin: int, end: int, field: int, key: int, target: int) -> int:
    """Return the first of the sorted entries from `begin` to `end` that is not before (field, key, target)."""
    while begin < end:
        middle = (begin + end) >> 1
        if is_before(rows, middle, field, key, target):
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def sort(rows: NDArray[np.int64], count: int) -> None:
    """Sort rows in place by heap sort."""
    for root in range(count // 2 - 1, -1, -1):
        _sift(rows, root, count)
    for last in range(count - 1, 0, -1):
        key, word = rows[0, 0], rows[0, 1]
        rows[0, 0] = rows[last, 0]
        rows[0, 1] = rows[last, 1]
        rows[last, 0] = key
        rows[last, 1] = word
        _sift(rows, np.int64(0), last)


@helper
def _sift(rows: NDArray[np.int64], root: int, size: int) -> None:
    key, word = rows[root, 0], rows[root, 1]
    field, target = (word >> 32) & _FIELD, word & _TARGET
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size:
            other = rows[child + 1, 1]
            if is_before(rows, child, (other >> 32) & _FIELD, rows[child + 1, 0], other & _TARGET):
                child += 1
        if not _is_after(rows, child, field, key, target):
            break
        rows[root, 0] = rows[child, 0]
        rows[root, 1] = rows[child, 1]
        root = child
    rows[root, 0] = key
    rows[root, 1] = word


@helper
def _is_after(rows: NDArray[np.int64], at: int, field: int, key: int, target: int) -> bool:
    word = rows[at, 1]
    own = (word >> 32) & _FIELD
    if own != field:
        return own > field
    if rows[at, 0] != key:
        return rows[at, 0] > key
    return (word & _TARGET) > target
