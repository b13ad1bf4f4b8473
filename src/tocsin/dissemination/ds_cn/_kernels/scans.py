"""Looking at one owner's rows outwards from an x, for those that are lower than all before them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.ds_cn.state import Rows
from tocsin.structures.jit import helper


class Tuples(NamedTuple):
    """Rows that somebody gets to know because of a change."""

    change: NDArray[np.int64]  # [room]
    x: NDArray[np.float64]
    height: NDArray[np.float64]


@helper
def look(
    rows: Rows,
    what: tuple[int, int, int, int],
    rim: float,
    limit: float,
    lowest: float,
    tuples: Tuples,
    count: int,
) -> tuple[int, float, bool]:
    """Look at one owner's rows from one on, but not at `rim` or beyond; return the tuples, the lowest then, and whether to end.

    Rows at one x count as their lowest. Once none of the owner's is lower, the rest is not looked at.
    """
    zone, row, direction, i = what
    first, last = rows.starts[zone], rows.starts[zone] + rows.counts[zone]
    least = rows.least[zone]
    while first <= row < last and (rim - rows.x[row]) * direction > 0 and (least < lowest or least <= limit):
        if rows.height[row] < lowest or rows.height[row] <= limit:
            while direction < 0 and row > first and rows.x[row - 1] == rows.x[row]:
                row -= 1
            count = return_row(tuples, count, (i, rows.x[row], rows.height[row]))
            lowest = min(lowest, rows.height[row])
            if rows.height[row] <= limit:
                return count, lowest, True
        row += direction
    return count, lowest, False


@helper
def return_row(tuples: Tuples, count: int, row: tuple[int, float, float]) -> int:
    """Write a row, if there is room for it, and return how many there are then, or would be."""
    if count < tuples.change.shape[0]:
        tuples.change[count], tuples.x[count], tuples.height[count] = row
    return count + 1
