"""How far a change reaches along the diagonal: two walks from its x, from owner to owner (2.3.2).

A walk scans rows from x outwards. It knows a limit, the lower of the change's old and new height, and the lowest height
so far, which begins with the rows at x itself after the change. A row that is lower than all so far is one that the change
may expose, or one where its influence ends for some ranges: it is returned. A row no higher than the limit ends the walk: a
range that contains it and x is not affected.

A move has two such x. The walks between them end at the other x at the latest, since the owner there knows the change
itself. A range that contains the new x only ends before a row as low as the new one, so that walk begins just above the new
height, and an equal row may be returned.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.ds_cn._kernels.rows import (
    DiagonalMessages,
    ReturnedRows,
    apply_change,
    find_change,
    first_from,
    return_row,
    scan_rows,
    send,
)
from tocsin.dissemination.ds_cn.state import DiagonalRows, Ended, RowChanges
from tocsin.structures.jit import helper, kernel


class Progress(IntEnum):
    """Columns of the progress array: how many are done or written."""

    CHANGES = 0
    MESSAGES = 1
    ROWS = 2


_FIELDS: Final = 3  # of a request: x, the limit, the lowest so far; and of a row that is returned
_EMPTY_FIELDS: Final = 1  # of a reply without rows


class Coordinators(NamedTuple):
    """The position that reformulates each change, its first step, and whether the change may affect any range."""

    position: NDArray[np.int64]  # [changes] that of the old x, if there is one
    step: NDArray[np.int64]  # [changes]
    is_relevant: NDArray[np.bool_]  # [changes]


class Output(NamedTuple):
    """The output of walks; senders and receivers are positions on the diagonal."""

    coordinators: Coordinators
    messages: DiagonalMessages
    returned: ReturnedRows


@kernel
def walk_changes(rows: DiagonalRows, changes: RowChanges, progress: NDArray[np.int64], out: Output) -> int:
    """Walk for each change, then apply it; return an `Ended`.

    Continues where `progress` says: a change is applied once all of its walks are written. Costs O(log n) per owner,
    and the rows scanned, until an owner's lowest one is found.
    """
    for i in range(progress[Progress.CHANGES], changes.old_x.shape[0]):
        ended, at = find_change(rows, changes, i)
        if ended != Ended.DONE:
            return ended
        out.coordinators.position[i] = (
            changes.old_position[i] if changes.old_position[i] >= 0 else changes.new_position[i]
        )
        out.coordinators.step[i] = 0
        out.coordinators.is_relevant[i] = False
        line, count = progress[Progress.MESSAGES], progress[Progress.ROWS]
        for side in range(2):
            line, count = _walk_from(rows, changes, (i, side, at), out, line, count)
        if line > out.messages.cause.shape[0] or count > out.returned.change.shape[0]:
            return np.int64(Ended.NO_ROOM)
        apply_change(rows, changes, i, at)
        progress[Progress.CHANGES] = i + 1
        progress[Progress.MESSAGES] = line
        progress[Progress.ROWS] = count
    return np.int64(Ended.DONE)


@helper
def _walk_from(
    rows: DiagonalRows, changes: RowChanges, which: tuple[int, int, int], out: Output, line: int, count: int
) -> tuple[int, int]:
    """Walk from a change's old x (side 0) or its new x, if that differs (side 1); return the messages and rows by then.

    `which` is the change, the side, and where the old row stands. Output is counted even where there is no room.
    """
    i, side, at = which
    here, there = changes.old_position[i], changes.new_position[i]
    x, other = changes.old_x[i], changes.new_x[i]
    if side == 1:
        here, there = there, here
        x, other = other, x
    if here < 0 or (side == 1 and x == other):
        return line, count
    limit = _lower(changes.old_height[i], changes.new_height[i])
    first, last = rows.starts[here], rows.starts[here] + rows.counts[here]
    begin = first_from(rows.x, first, last, x)
    end = first_from(rows.x, begin, last, np.nextafter(x, np.inf))
    peak = np.inf  # the lowest height of other rows at x
    others = begin + 1 if begin == at else begin
    before = count
    if others < end:
        peak = rows.height[others]
        count = return_row(out.returned, count, (i, x, peak))
    returned = count - before  # by the owner of x

    if peak > limit and not (x == other and changes.old_height[i] == changes.new_height[i]):
        out.coordinators.is_relevant[i] = True
        if x == other:
            peak = min(peak, changes.new_height[i])
        elif side == 1:
            peak = min(peak, np.nextafter(changes.new_height[i], np.inf))
        for direction in (-1, 1):
            rim, final = direction * np.inf, 0 if direction < 0 else rows.counts.shape[0] - 1
            if (other - x) * direction > 0:
                rim, final = other, there
            position, hop, lowest = here, np.int64(0), peak
            row = begin - 1 if direction < 0 else end
            while True:
                before = count
                count, lowest, ended = scan_rows(
                    rows, (position, row, direction, i), rim, limit, lowest, out.returned, count
                )
                if hop == 0:
                    returned += count - before
                elif count > before or position == final:
                    line = _reply(out, line, (i, position, count - before, hop))
                if ended or position == final:
                    break
                line = send(
                    out.messages, line, (i, position, position + direction, np.int64(_FIELDS), hop), False
                )
                position += direction
                hop += 1
                row = rows.starts[position] + (rows.counts[position] - 1 if direction < 0 else 0)
    if (
        here != out.coordinators.position[i]
    ):  # the coordinator waits for the new owner's reply, even an empty one
        line = _reply(out, line, (i, here, returned, np.int64(0)))
    return line, count


@helper
def _lower(one: float, other: float) -> float:
    """Return the lower of two numbers, or the one that is not NaN."""
    return other if np.isnan(one) or other < one else one


@helper
def _reply(out: Output, line: int, reply: tuple[int, int, int, int]) -> int:
    """Send rows, or the message that there are none, to the coordinator, and let it wait for them."""
    i, position, found, hop = reply
    coordinator = out.coordinators.position[i]
    arrival = hop if position == coordinator else hop + 1
    out.coordinators.step[i] = max(out.coordinators.step[i], arrival)
    if position == coordinator:
        return line
    fields = max(_FIELDS * found, _EMPTY_FIELDS)
    return send(out.messages, line, (i, position, coordinator, fields, hop), True)
