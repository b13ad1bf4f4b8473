"""Asking along the diagonal: messages from owner to owner, and scans of one owner's rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.ds_cn.state import DiagonalRows
from tocsin.structures.jit import helper


class DiagonalMessages(NamedTuple):
    """Requests along the diagonal and their replies; `cause` is the change or the request that they belong to."""

    cause: NDArray[np.int64]  # [room]
    sender: NDArray[np.int64]  # places on the diagonal, or zones
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

    `start` is the place, the first row, the direction and the change. The result is the number of rows returned by then,
    the lowest height, and whether a row no higher than `limit` ended the scan. Rows at one x count as their lowest. Once
    none of the owner's is lower, the rest is skipped.
    """
    place, row, direction, i = start
    first, last = rows.starts[place], rows.starts[place] + rows.counts[place]
    least = rows.lowest[place]
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
