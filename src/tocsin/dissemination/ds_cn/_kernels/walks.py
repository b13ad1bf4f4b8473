"""How far a change reaches along the diagonal: two walks from its x, from owner to owner (2.3.2).

A walk looks at rows from x outwards. It knows a limit, the lower of the change's old and new height, and the lowest height
so far, which begins with what there is at x itself after the change. Each row that is lower than all so far is one that the
change may expose, or one where its influence ends for some ranges: it is returned. A row no higher than the limit ends the
walk: no range that holds it as well as x is concerned.

A row that moves has two such x. Between them, the walks from either side end at the other one at the latest: the owner there
knows of the change itself. A range that has the new x alone ends before a row as low as the new one, so there the walk begins
just above it, that an equal one may be returned.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.ds_cn._kernels.rows import NOT_HELD, change_rows, first_from, has_room, row_at
from tocsin.dissemination.ds_cn._kernels.scans import Tuples, look, return_row
from tocsin.dissemination.ds_cn.state import Moves, Rows
from tocsin.structures.jit import helper, kernel

CHANGES: Final = 0  # of the progress: changes made
LINES: Final = 1  # of the progress: lines written
TUPLES: Final = 2  # of the progress: tuples written

DONE: Final = 0
NO_ROOM: Final = 1  # for lines or tuples
NO_ROOM_FOR_ROWS: Final = 2
ABSENT: Final = 3  # the next change's old row is not there

_FIELDS: Final = 3  # of a queries: x, the limit, the lowest so far; and of a row that is returned
_NOTHING: Final = 1  # field that says that nothing is returned


class WalkLines(NamedTuple):
    """Messages from owner to owner, by their places on the diagonal."""

    change: NDArray[np.int64]  # [room]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    fields: NDArray[np.int64]
    step: NDArray[np.int64]
    is_reply: NDArray[np.bool_]


class Homes(NamedTuple):
    """Who reformulates each change, from what step on, and whether it may alter anything."""

    place: NDArray[np.int64]  # [changes] that of the old x, if there is one
    step: NDArray[np.int64]  # [changes]
    matters: NDArray[np.bool_]  # [changes]


@kernel
def walk_changes(
    rows: Rows,
    moves: Moves,
    progress: NDArray[np.int64],
    homes: Homes,
    lines: WalkLines,
    tuples: Tuples,
) -> int:
    """Walk for each change, then make it; write what was asked and returned, and say why it ended.

    It goes on from where `progress` says. A change is made once all of its walks are written, so that after more room was
    given it can be called again. It costs O(log n), and what is looked at: rows until the part's lowest one is found.
    """
    for i in range(progress[CHANGES], moves.old_x.shape[0]):
        old, new = moves.old_place[i], moves.new_place[i]
        if new >= 0 and not has_room(rows, new):
            return NO_ROOM_FOR_ROWS
        at = NOT_HELD
        if old >= 0:
            at = row_at(rows, old, moves.old_x[i], moves.old_height[i])
            if at == NOT_HELD:
                return ABSENT
        homes.place[i] = old if old >= 0 else new
        homes.step[i] = 0
        homes.matters[i] = False
        line, count = progress[LINES], progress[TUPLES]
        for side in range(2):
            line, count = _walk_from(rows, moves, (i, side, at), homes, lines, tuples, line, count)
        if line > lines.change.shape[0] or count > tuples.change.shape[0]:
            return NO_ROOM
        change_rows(rows, moves, i, at)
        progress[CHANGES] = i + 1
        progress[LINES] = line
        progress[TUPLES] = count
    return DONE


@helper
def _walk_from(
    rows: Rows,
    moves: Moves,
    what: tuple[int, int, int],
    homes: Homes,
    lines: WalkLines,
    tuples: Tuples,
    line: int,
    count: int,
) -> tuple[int, int]:
    """Walk from a change's old x (side 0) or from its new one, if that is another (side 1); return the lines and tuples then.

    They are counted even where there is no room for them.
    """
    i, side, at = what
    here, there = moves.old_place[i], moves.new_place[i]
    x, other = moves.old_x[i], moves.new_x[i]
    if side == 1:
        here, there = there, here
        x, other = other, x
    if here < 0 or (side == 1 and x == other):
        return line, count
    limit = _lower(moves.old_height[i], moves.new_height[i])
    first, last = rows.starts[here], rows.starts[here] + rows.counts[here]
    begin = first_from(rows.x, first, last, x)
    end = first_from(rows.x, begin, last, np.nextafter(x, np.inf))
    peak = np.inf  # the least height of others at x
    others = begin + 1 if begin == at else begin
    before = count
    if others < end:
        peak = rows.height[others]
        count = return_row(tuples, count, (i, x, peak))
    returned = count - before  # by the owner of x

    if peak > limit and not (x == other and moves.old_height[i] == moves.new_height[i]):
        homes.matters[i] = True
        if x == other:
            peak = min(peak, moves.new_height[i])
        elif side == 1:
            peak = min(peak, np.nextafter(moves.new_height[i], np.inf))
        for direction in (-1, 1):
            rim, final = direction * np.inf, 0 if direction < 0 else rows.counts.shape[0] - 1
            if (other - x) * direction > 0:
                rim, final = other, there
            zone, hop, lowest = here, np.int64(0), peak
            row = begin - 1 if direction < 0 else end
            while True:
                before = count
                count, lowest, ended = look(
                    rows, (zone, row, direction, i), rim, limit, lowest, tuples, count
                )
                if hop == 0:
                    returned += count - before
                elif count > before or zone == final:
                    line = _reply(lines, line, homes, (i, zone, count - before, hop))
                if ended or zone == final:
                    break
                line = _send(lines, line, (i, zone, zone + direction, np.int64(_FIELDS), hop), False)
                zone += direction
                hop += 1
                row = rows.starts[zone] + (rows.counts[zone] - 1 if direction < 0 else 0)
    if here != homes.place[i]:  # the old owner waits for what the new one has to say, be it nothing
        line = _reply(lines, line, homes, (i, here, returned, np.int64(0)))
    return line, count


@helper
def _lower(one: float, other: float) -> float:
    """Return the lower of two numbers, or the one that is not NaN."""
    return other if np.isnan(one) or other < one else one


@helper
def _reply(lines: WalkLines, line: int, homes: Homes, what: tuple[int, int, int, int]) -> int:
    """Send rows, or word that there are none, to the one who reformulates, and let it wait for them."""
    i, zone, found, hop = what
    home = homes.place[i]
    homes.step[i] = max(homes.step[i], hop if zone == home else hop + 1)
    if zone == home:
        return line
    return _send(lines, line, (i, zone, home, max(_FIELDS * found, _NOTHING), hop), True)


@helper
def _send(lines: WalkLines, line: int, message: tuple[int, int, int, int, int], is_reply: bool) -> int:
    if line < lines.change.shape[0]:
        (
            lines.change[line],
            lines.sender[line],
            lines.receiver[line],
            lines.fields[line],
            lines.step[line],
        ) = message
        lines.is_reply[line] = is_reply
    return line + 1
