"""How changes pass through the zones, and what subscriptions that keep their minimum alone make of them (2.2.2).

A row that falls at its x goes out with a tag: the ranges that it may still concern begin above c1 and end below c2. A
subscription that holds x, and whose minimum is no higher than the new height, proves that all ranges which hold both x and
that minimum's x' are not concerned; so c1 rises to x', or c2 falls to it. The zone hands the change on to those of its
children that meet (c1, x] x [x, c2). Nobody who is concerned is missed: whom a tag leaves out holds such an x', and a zone
that meets the rectangle left over has only ancestors that meet it. For the parent holds a point right of or below the corner
in which the zone and the quadrant meet nearest to (x, x), and that is no further from (x, x) in either dimension.

Where a row goes or rises, those whose minimum it was cannot know the next one: rows whose fall was cut off, or which were
higher when they came, were never kept. Their gateway asks the owners on the diagonal, once for all that lost theirs.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import NO_PARENT, Zones
from tocsin.dissemination.cn_plus.state import BUCKETS, COMES, CUT, Kept, Passing, Reached
from tocsin.dissemination.ds_cn._kernels.rows import NOT_HELD, change_rows, first_from, has_room, row_at
from tocsin.dissemination.ds_cn._kernels.scans import Tuples, look
from tocsin.dissemination.ds_cn.state import Rows
from tocsin.structures.jit import helper, kernel

# of the progress
PASSES: Final = 0  # made
ENTRY: Final = 1  # of the spread, the next one of the present pass
TOLD: Final = 2  # lines written
ASKED: Final = 3
LINES: Final = 4
NOT_BEGUN: Final = -1

DONE: Final = 0
NO_ROOM: Final = 1  # for lines
NO_ROOM_FOR_ROWS: Final = 2
ABSENT: Final = 3  # the next pass's old row is not there

_FIELDS: Final = 4  # of a queries: from x, how far, for whom, the lowest so far; the first one has both ends
_ROW: Final = 3
_NOTHING: Final = 1  # field that says that nothing is returned


class ToldLines(NamedTuple):
    """Answers that changed."""

    change: NDArray[np.int64]  # [room]
    place: NDArray[np.int64]  # of the subscription among those that are kept
    old: NDArray[np.float64]  # heights; inf for none
    new: NDArray[np.float64]


class Asked(NamedTuple):
    """Questions of gateways."""

    change: NDArray[np.int64]  # [room]
    x: NDArray[np.float64]  # whose owner is asked first
    gateway: NDArray[np.int64]
    step: NDArray[np.int64]


class AskLines(NamedTuple):
    """Messages along the diagonal, and back to the gateway, for a queries that has reached the owner of its x."""

    asked: NDArray[np.int64]  # [room] the queries's number
    sender: NDArray[np.int64]  # zones
    receiver: NDArray[np.int64]
    fields: NDArray[np.int64]
    step: NDArray[np.int64]  # from when the owner is reached
    is_reply: NDArray[np.bool_]


class Heard(NamedTuple):
    """All that is written. `stairs` have room for all rows; they are those of one queries, which comes after another."""

    told: ToldLines
    asked: Asked
    lines: AskLines
    stairs: Tuples


@kernel
def pass_changes(
    rows: Rows,
    kept: Kept,
    passing: Passing,
    progress: NDArray[np.int64],
    reached: Reached,
    heard: Heard,
) -> int:
    """Make changes, pass after pass and zone after zone; say why it ended.

    It goes on from where `progress` says: nothing of a zone is done before there is room for all that may come of it. A
    zone costs its subscriptions, if any of them may be concerned.
    """
    passes, spread = passing.passes, passing.spread
    for p in range(progress[PASSES], passes.change.shape[0]):
        if progress[ENTRY] == NOT_BEGUN:
            if p == 0 or passes.change[p] != passes.change[p - 1]:
                ended = _make_change(rows, passing, passes.change[p])
                if ended != DONE:
                    return ended
            progress[ENTRY] = spread.starts[p]
        bucket = _bucket_of(passes.x[p])
        for e in range(progress[ENTRY], spread.starts[p + 1]):
            zone = spread.zones[e]
            reached.entry[zone] = e
            reached.is_reached[e] = passes.sort[p] != CUT or _is_within(passing, e, reached)
            if not reached.is_reached[e]:
                continue
            if not _have_room(rows, kept, zone, progress, heard):
                progress[ENTRY] = e
                return NO_ROOM
            if passes.sort[p] == CUT:
                _fall(kept, passing, (p, e), reached, progress, heard.told)
            elif passes.sort[p] == COMES:
                if passes.height[p] < kept.most[zone]:
                    _come(kept, passing, (p, e), progress, heard.told)
            elif kept.counts[zone, bucket] > 0:
                _go(rows, kept, passing, (p, e), progress, heard)
        progress[ENTRY] = NOT_BEGUN
        progress[PASSES] = p + 1
    return DONE


@kernel
def count_minima(kept: Kept) -> None:
    """Count the minimum rows of all subscriptions by zone and bucket, and find the greatest of each zone's."""
    for zone in range(kept.most.shape[0]):
        kept.most[zone] = -np.inf
        for s in range(kept.starts[zone], kept.starts[zone + 1]):
            kept.most[zone] = max(kept.most[zone], kept.height[s])
            if kept.height[s] < np.inf:
                kept.counts[zone, _bucket_of(kept.x[s])] += 1


@helper
def _bucket_of(x: float) -> int:
    """Return the bucket of an x: all of its digits, mixed, since those of short numbers are the first ones."""
    digits = np.int64(math.frexp(x)[0] * 2.0**53)
    digits ^= digits >> 9
    digits ^= digits >> 18
    digits ^= digits >> 36
    return digits & (BUCKETS - 1)


@helper
def _make_change(rows: Rows, passing: Passing, i: int) -> int:
    moves = passing.moves
    old, new = moves.old_place[i], moves.new_place[i]
    if new >= 0 and not has_room(rows, new):
        return NO_ROOM_FOR_ROWS
    at = NOT_HELD
    if old >= 0:
        at = row_at(rows, old, moves.old_x[i], moves.old_height[i])
        if at == NOT_HELD:
            return ABSENT
    change_rows(rows, moves, i, at)
    return DONE


@helper
def _have_room(rows: Rows, kept: Kept, zone: int, progress: NDArray[np.int64], heard: Heard) -> bool:
    """Tell whether there is room for all that a zone can make of a pass: all its answers, one queries, two long walks."""
    answers = kept.starts[zone + 1] - kept.starts[zone]
    return (
        progress[TOLD] + answers <= heard.told.change.shape[0]
        and progress[ASKED] < heard.asked.change.shape[0]
        and progress[LINES] + 2 * rows.counts.shape[0] + 1 <= heard.lines.asked.shape[0]
    )


@helper
def _is_within(passing: Passing, e: int, reached: Reached) -> bool:
    """Tell whether a pass that is cut off comes to an entry's zone; if so, with its parent's tag."""
    zone, parent = passing.spread.zones[e], passing.spread.parents[e]
    reached.above[e], reached.below[e] = -np.inf, np.inf
    if parent == NO_PARENT:
        return True
    before = reached.entry[parent]
    if not reached.is_reached[before]:
        return False
    reached.above[e], reached.below[e] = reached.above[before], reached.below[before]
    return passing.zones.high1[zone] > reached.above[e] and passing.zones.low2[zone] < reached.below[e]


@helper
def _fall(
    kept: Kept,
    passing: Passing,
    what: tuple[int, int],
    reached: Reached,
    progress: NDArray[np.int64],
    told: ToldLines,
) -> None:
    """Let a zone's subscriptions hear of a row that falls, and narrow the tag by those that are not concerned."""
    p, e = what
    zone = passing.spread.zones[e]
    x, height = passing.passes.x[p], passing.passes.height[p]
    above, below = reached.above[e], reached.below[e]
    for s in range(kept.starts[zone], kept.starts[zone + 1]):
        if not (above < kept.low[s] <= x <= kept.high[s] < below):
            continue
        if height < kept.height[s]:
            _tell(kept, (passing.passes.change[p], zone, s), x, height, progress, told)
        elif kept.x[s] < x:
            above = max(above, kept.x[s])
        elif kept.x[s] > x:
            below = min(below, kept.x[s])
        else:  # another row at x is as low: no range is concerned
            above, below = np.inf, -np.inf
    reached.above[e], reached.below[e] = above, below


@helper
def _come(
    kept: Kept, passing: Passing, what: tuple[int, int], progress: NDArray[np.int64], told: ToldLines
) -> None:
    """Let a zone's subscriptions hear of a row that comes."""
    p, e = what
    zone = passing.spread.zones[e]
    x, height = passing.passes.x[p], passing.passes.height[p]
    most = -np.inf
    for s in range(kept.starts[zone], kept.starts[zone + 1]):
        if kept.low[s] <= x <= kept.high[s] and height < kept.height[s]:
            _tell(kept, (passing.passes.change[p], zone, s), x, height, progress, told)
        most = max(most, kept.height[s])
    kept.most[zone] = most


@helper
def _go(
    rows: Rows,
    kept: Kept,
    passing: Passing,
    what: tuple[int, int],
    progress: NDArray[np.int64],
    heard: Heard,
) -> None:
    """Let a zone's subscriptions hear of a row that goes or rises; ask for those whose minimum it was."""
    p, e = what
    zone, i = passing.spread.zones[e], passing.passes.change[p]
    x, gone = passing.passes.x[p], passing.passes.height[p]
    low, high = np.inf, -np.inf
    for s in range(kept.starts[zone], kept.starts[zone + 1]):
        if kept.x[s] == x and kept.height[s] == gone:
            low, high = min(low, kept.low[s]), max(high, kept.high[s])
    if low > high:
        return
    peak, lefts, stairs = _ask(rows, passing, what, (low, high), progress, heard)
    most = kept.most[zone]
    for s in range(kept.starts[zone], kept.starts[zone + 1]):
        if kept.x[s] != x or kept.height[s] != gone:
            continue
        # Stairs fall outwards: the last one within the range is the lowest.
        new_x, new = x if peak < np.inf else np.nan, peak
        for step in range(lefts - 1, -1, -1):
            if heard.stairs.x[step] >= kept.low[s]:
                new_x, new = heard.stairs.x[step], heard.stairs.height[step]
                break
        for step in range(stairs - 1, lefts - 1, -1):
            if heard.stairs.x[step] <= kept.high[s]:
                if heard.stairs.height[step] < new:
                    new_x, new = heard.stairs.x[step], heard.stairs.height[step]
                break
        _tell(kept, (i, zone, s), new_x, new, progress, heard.told)
        most = max(most, new)
    kept.most[zone] = most


@helper
def _ask(
    rows: Rows,
    passing: Passing,
    what: tuple[int, int],
    ends: tuple[float, float],
    progress: NDArray[np.int64],
    heard: Heard,
) -> tuple[float, int, int]:
    """Ask for the rows from x outwards that are lower than all nearer ones; return the least at x, and how many stairs.

    Those on the left come first; of them, how many, is returned before that of all. The gateway knows the change itself,
    and so a row that rose is returned only if another one at x is lower.
    """
    p, e = what
    zone, i = passing.spread.zones[e], passing.passes.change[p]
    moves, x = passing.moves, passing.passes.x[p]
    asked, line = progress[ASKED], progress[LINES]
    heard.asked.change[asked], heard.asked.x[asked] = i, x
    heard.asked.gateway[asked], heard.asked.step[asked] = zone, passing.spread.depths[e]
    progress[ASKED] = asked + 1

    here = moves.old_place[i]
    first, last = rows.starts[here], rows.starts[here] + rows.counts[here]
    begin = first_from(rows.x, first, last, x)
    end = first_from(rows.x, begin, last, np.nextafter(x, np.inf))
    peak = rows.height[begin] if begin < end else np.inf
    returned = 0 if peak == np.inf or (moves.new_x[i] == x and moves.new_height[i] == peak) else 1
    count, lefts, is_last = np.int64(0), np.int64(0), False
    for direction in (-1, 1):
        bound = ends[0] if direction < 0 else ends[1]
        final = _place_of(passing.zones, bound)
        is_last = is_last or final == here
        rim = np.nextafter(bound, direction * np.inf)
        place, hop, lowest = here, np.int64(0), peak
        row = begin - 1 if direction < 0 else end
        while True:
            before = count
            count, lowest, _ = look(
                rows, (place, row, direction, i), rim, -np.inf, lowest, heard.stairs, count
            )
            if hop == 0:
                returned += count - before
            elif count > before or place == final:
                fields = max(_ROW * (count - before), _NOTHING)
                line = _send(heard.lines, line, passing.zones, (asked, place, zone, fields, hop), True)
            if place == final:
                break
            receiver = passing.zones.diagonal[place + direction]
            line = _send(
                heard.lines, line, passing.zones, (asked, place, receiver, np.int64(_FIELDS), hop), False
            )
            place += direction
            hop += 1
            row = rows.starts[place] + (rows.counts[place] - 1 if direction < 0 else 0)
        if direction < 0:
            lefts = count
    if returned > 0 or is_last:
        fields = max(_ROW * returned, _NOTHING)
        line = _send(heard.lines, line, passing.zones, (asked, here, zone, fields, np.int64(0)), True)
    progress[LINES] = line
    return peak, lefts, count


@helper
def _place_of(zones: Zones, x: float) -> int:
    """Return the place on the diagonal whose owner holds (x, x)."""
    return (
        first_from(zones.diagonal_from, np.int64(0), zones.diagonal_from.shape[0], np.nextafter(x, np.inf))
        - 1
    )


@helper
def _send(
    lines: AskLines, line: int, zones: Zones, message: tuple[int, int, int, int, int], is_reply: bool
) -> int:
    """Write a message of a queries: from a place on the diagonal, to a zone, of so many fields, at a step."""
    asked, place, receiver, fields, step = message
    lines.asked[line], lines.sender[line], lines.receiver[line] = asked, zones.diagonal[place], receiver
    lines.fields[line], lines.step[line], lines.is_reply[line] = fields, step, is_reply
    return line + 1


@helper
def _tell(
    kept: Kept,
    who: tuple[int, int, int],
    x: float,
    height: float,
    progress: NDArray[np.int64],
    told: ToldLines,
) -> None:
    """Give a subscription another minimum row; if that is another answer, write so."""
    change, zone, s = who
    old = kept.height[s]
    if old < np.inf:
        kept.counts[zone, _bucket_of(kept.x[s])] -= 1
    if height < np.inf:
        kept.counts[zone, _bucket_of(x)] += 1
    kept.x[s], kept.height[s] = x, height
    if height != old:
        line = progress[TOLD]
        told.change[line], told.place[line], told.old[line], told.new[line] = change, s, old, height
        progress[TOLD] = line + 1
