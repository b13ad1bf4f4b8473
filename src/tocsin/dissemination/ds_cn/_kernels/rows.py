"""The rows of one owner on the diagonal: finding, changing and scanning them, and the messages from owner to owner."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.ds_cn.state import DiagonalRows, Ended, RowChanges
from tocsin.structures.jit import helper

_NOT_STORED: Final = -1


@helper
def first_from(ascending: NDArray[np.float64], begin: int, end: int, value: float) -> int:
    """Return the first position in [begin, end) of a number that is not below `value`, or `end`."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def find_change(rows: DiagonalRows, changes: RowChanges, i: int) -> tuple[int, int]:
    """Return whether a change can be applied, as an `Ended`, and where its old row stands, -1 if it has none."""
    old, new = changes.old_position[i], changes.new_position[i]
    if new >= 0 and rows.starts[new] + rows.counts[new] == rows.starts[new + 1]:
        return np.int64(Ended.NO_ROOM_FOR_ROWS), np.int64(_NOT_STORED)
    if old < 0:
        return np.int64(Ended.DONE), np.int64(_NOT_STORED)
    begin = rows.starts[old]
    end = begin + rows.counts[old]
    x, height = changes.old_x[i], changes.old_height[i]
    at = _insertion_point(rows, begin, end, x, height)
    if at < end and rows.x[at] == x and rows.height[at] == height:
        return np.int64(Ended.DONE), at
    return np.int64(Ended.ABSENT), np.int64(_NOT_STORED)


@helper
def apply_change(rows: DiagonalRows, changes: RowChanges, i: int, at: int) -> None:
    """Remove the old row at `at`, if there is one, and insert the new one; `find_change` found both possible.

    Costs O(rows between) where old and new have the same owner, else O(rows of both).
    """
    old, new = changes.old_position[i], changes.new_position[i]
    if old == new and old >= 0:
        begin = rows.starts[old]
        end = begin + rows.counts[old]
        to = _insertion_point(rows, begin, end, changes.new_x[i], changes.new_height[i])
        if to > at:  # the old row stands before it and goes
            to -= 1
            _shift(rows, at, to, 1)
        else:
            _shift(rows, at, to, -1)
        _write(rows, to, changes.new_x[i], changes.new_height[i])
    else:
        if old >= 0:
            rows.counts[old] -= 1
            _shift(rows, at, rows.starts[old] + rows.counts[old], 1)
        if new >= 0:
            begin = rows.starts[new]
            end = begin + rows.counts[new]
            to = _insertion_point(rows, begin, end, changes.new_x[i], changes.new_height[i])
            _shift(rows, end, to, -1)
            _write(rows, to, changes.new_x[i], changes.new_height[i])
            rows.counts[new] += 1
    if new >= 0 and changes.new_height[i] <= rows.lowest[new]:
        rows.lowest[new] = changes.new_height[i]
    if old >= 0 and changes.old_height[i] == rows.lowest[old]:
        rows.lowest[old] = _lowest(rows, old)


@helper
def _insertion_point(rows: DiagonalRows, begin: int, end: int, x: float, height: float) -> int:
    """Return the position behind rows of lower x, and behind rows of the same x with a lower height."""
    first = first_from(rows.x, begin, end, x)
    if first == end or rows.x[first] != x:
        return first
    behind = first_from(rows.x, first, end, np.nextafter(x, np.inf))
    return first_from(rows.height, first, behind, height)


@helper
def _shift(rows: DiagonalRows, gap: int, to: int, step: int) -> None:
    """Move a gap to another position by shifting the rows between by one."""
    for at in range(gap, to, step):
        rows.x[at] = rows.x[at + step]
        rows.height[at] = rows.height[at + step]


@helper
def _write(rows: DiagonalRows, at: int, x: float, height: float) -> None:
    rows.x[at] = x
    rows.height[at] = height


@helper
def _lowest(rows: DiagonalRows, position: int) -> float:
    lowest = np.inf
    begin = rows.starts[position]
    for at in range(begin, begin + rows.counts[position]):
        lowest = min(lowest, rows.height[at])
    return lowest


class DiagonalMessages(NamedTuple):
    """Requests along the diagonal and their replies; `cause` is the change or the request that they belong to."""

    cause: NDArray[np.int64]  # [room]
    sender: NDArray[np.int64]  # positions on the diagonal, or zones
    receiver: NDArray[np.int64]
    fields: NDArray[np.int64]
    step: NDArray[np.int64]
    is_reply: NDArray[np.bool_]


class ReturnedRows(NamedTuple):
    """Rows that a node learns because of a change."""

    change: NDArray[np.int64]  # [room]
    x: NDArray[np.float64]
    height: NDArray[np.float64]


@helper
def scan_rows(
    rows: DiagonalRows,
    start: tuple[int, int, int, int],
    rim: float,
    limit: float,
    lowest: float,
    returned: ReturnedRows,
    count: int,
) -> tuple[int, float, bool]:
    """Return an owner's rows that are lower than all before them, from one outwards, up to `rim` exclusive.

    `start` is the position, the first row, the direction and the change. The result is the number of rows returned by then,
    the lowest height, and whether a row no higher than `limit` ended the scan. Rows at one x count as their lowest. Once
    none of the owner's is lower, the rest is skipped.
    """
    position, row, direction, i = start
    first, last = rows.starts[position], rows.starts[position] + rows.counts[position]
    least = rows.lowest[position]
    while first <= row < last and (rim - rows.x[row]) * direction > 0 and (least < lowest or least <= limit):
        if rows.height[row] < lowest or rows.height[row] <= limit:
            while direction < 0 and row > first and rows.x[row - 1] == rows.x[row]:
                row -= 1
            count = return_row(returned, count, (i, rows.x[row], rows.height[row]))
            lowest = min(lowest, rows.height[row])
            if rows.height[row] <= limit:
                return count, lowest, True
        row += direction
    return count, lowest, False


@helper
def return_row(returned: ReturnedRows, count: int, row: tuple[int, float, float]) -> int:
    """Write a row if there is room for it, and return how many there are then, or would be."""
    if count < returned.change.shape[0]:
        returned.change[count], returned.x[count], returned.height[count] = row
    return count + 1


@helper
def send(
    messages: DiagonalMessages, count: int, message: tuple[int, int, int, int, int], is_reply: bool
) -> int:
    """Write a message if there is room for it, and return how many there are then, or would be."""
    if count < messages.cause.shape[0]:
        (
            messages.cause[count],
            messages.sender[count],
            messages.receiver[count],
            messages.fields[count],
            messages.step[count],
        ) = message
        messages.is_reply[count] = is_reply
    return count + 1
