"""Finding and changing the rows that one owner on the diagonal holds."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.ds_cn.state import Moves, Rows
from tocsin.structures.jit import helper

NOT_HELD: Final = -1


@helper
def first_from(ascending: NDArray[np.float64], begin: int, end: int, value: float) -> int:
    """Return the first place from `begin` on, before `end`, of a number that is not below `value`; `end` if there is none."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def row_at(rows: Rows, place: int, x: float, height: float) -> int:
    """Return where a row stands, the first of equal ones, or NOT_HELD."""
    begin = rows.starts[place]
    end = begin + rows.counts[place]
    at = _fitting(rows, begin, end, x, height)
    return at if at < end and rows.x[at] == x and rows.height[at] == height else NOT_HELD


@helper
def has_room(rows: Rows, place: int) -> bool:
    """Tell whether a place has room for one row more."""
    return rows.starts[place] + rows.counts[place] < rows.starts[place + 1]


@helper
def change_rows(rows: Rows, moves: Moves, i: int, at: int) -> None:
    """Make a change: the row that stands at `at`, if there is an old one, goes, and the new one comes.

    There must be room for it. It costs O(rows between) where old and new have the same owner, else O(rows of both).
    """
    old, new = moves.old_place[i], moves.new_place[i]
    if old == new and old >= 0:
        begin = rows.starts[old]
        end = begin + rows.counts[old]
        to = _fitting(rows, begin, end, moves.new_x[i], moves.new_height[i])
        if to > at:  # the row itself goes from before it
            to -= 1
            _shift(rows, at, to, 1)
        else:
            _shift(rows, at, to, -1)
        _write(rows, to, moves.new_x[i], moves.new_height[i])
    else:
        if old >= 0:
            rows.counts[old] -= 1
            _shift(rows, at, rows.starts[old] + rows.counts[old], 1)
        if new >= 0:
            begin = rows.starts[new]
            end = begin + rows.counts[new]
            to = _fitting(rows, begin, end, moves.new_x[i], moves.new_height[i])
            _shift(rows, end, to, -1)
            _write(rows, to, moves.new_x[i], moves.new_height[i])
            rows.counts[new] += 1
    if new >= 0 and moves.new_height[i] <= rows.least[new]:
        rows.least[new] = moves.new_height[i]
    if old >= 0 and moves.old_height[i] == rows.least[old]:
        rows.least[old] = _least(rows, old)


@helper
def _fitting(rows: Rows, begin: int, end: int, x: float, height: float) -> int:
    """Return where a row belongs: behind those of lower x, and behind those of its x with a lower height."""
    first = first_from(rows.x, begin, end, x)
    if first == end or rows.x[first] != x:
        return first
    behind = first_from(rows.x, first, end, np.nextafter(x, np.inf))
    return first_from(rows.height, first, behind, height)


@helper
def _shift(rows: Rows, gap: int, to: int, step: int) -> None:
    """Let a gap wander to another place, so that the rows between come one place nearer to where it was."""
    for at in range(gap, to, step):
        rows.x[at] = rows.x[at + step]
        rows.height[at] = rows.height[at + step]


@helper
def _write(rows: Rows, at: int, x: float, height: float) -> None:
    rows.x[at] = x
    rows.height[at] = height


@helper
def _least(rows: Rows, place: int) -> float:
    least = np.inf
    begin = rows.starts[place]
    for at in range(begin, begin + rows.counts[place]):
        least = min(least, rows.height[at])
    return least
