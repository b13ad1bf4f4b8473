"""Columns of numbers: as kernels take them, their runs of equal rows, and their offsets by key."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)


def for_kernel(column: NDArray[Any], dtype: type[Number]) -> NDArray[Number]:
    """Return a contiguous, writable column of a type; a kernel would be compiled again for any other."""
    return np.require(column, dtype, ("C", "W"))


def is_run_start(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the rows that differ from the row before in some column; the first row is one of them."""
    found = np.zeros(len(columns[0]), dtype=np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def offsets_of(keys: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return where the rows of each key from 0 to `count` - 1 begin once rows are sorted by key, and their number."""
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=offsets[1:])
    return offsets
