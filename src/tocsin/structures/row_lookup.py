"""Looking many keys up at once, in arrays that are sorted for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.array_types import Int64s


def find_rows(keys: NDArray[Any], sought: NDArray[Any]) -> Int64s:
    """Return the row of `keys`, which are all different, that equals each of the sought; -1 where none does.

    >>> find_rows(np.array([30, 10, 20]), np.array([10, 15, 30])).tolist()
    [1, -1, 0]
    """
    if not len(keys):
        return np.full(len(sought), -1, dtype=np.int64)
    order = _order(keys)
    turns = _order(sought)  # ascending look-ups read the keys once, others from all over the memory
    at = np.empty(len(sought), dtype=np.int64)
    at[turns] = np.searchsorted(keys[order], sought[turns])
    rows = order[np.minimum(at, len(keys) - 1)]
    return np.where(keys[rows] == sought, rows, -1)


def _order(numbers: NDArray[Any]) -> Int64s:
    """Return the rows in ascending order."""
    is_sorted = bool((numbers[1:] >= numbers[:-1]).all())
    return np.arange(len(numbers)) if is_sorted else np.argsort(numbers)
