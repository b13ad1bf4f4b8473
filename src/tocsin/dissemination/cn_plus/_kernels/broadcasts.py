"""Broadcasts through the zones to subscriptions that store their minimum row only (2.2.2).

A row that falls at its x is broadcast with a tag: the ranges that it may still affect begin above c1 and end below c2. A
subscription that contains x and whose minimum is no higher than the new height proves that no range is affected which
contains both x and that minimum's x'; so c1 rises to x', or c2 falls to it. The zone forwards the change to those of its
children that meet (c1, x] x [x, c2). No affected subscription is missed: a range that a tag excludes contains such an x',
and a zone that meets the remaining rectangle has only ancestors that meet it. For the parent holds a point right of or below
the corner in which the zone and the quadrant meet nearest to (x, x), and that is no further from (x, x) in either dimension.

Where a row goes or rises, gateways whose subscriptions lose their minimum cannot know the next one: rows whose broadcast
was cut off, or which were higher when they came, were never stored. Such a gateway asks the owners on the diagonal, once
for all of its subscriptions.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import NO_PARENT, Zones
from tocsin.dissemination.cn_plus.state import (
    BUCKETS,
    BroadcastKind,
    BroadcastPlan,
    MinimumRows,
    ReachedZones,
)
from tocsin.dissemination.ds_cn._kernels.rows import (
    DiagonalMessages,
    ReturnedRows,
    apply_change,
    find_change,
    first_from,
    scan_rows,
    send,
)
from tocsin.dissemination.ds_cn.state import DiagonalRows, Ended
from tocsin.structures.jit import helper, kernel


class Progress(IntEnum):
    """Columns of the progress array."""

    BROADCASTS = 0  # done
    ENTRY = 1  # of the trees, the next one of the present broadcast, or NOT_BEGUN
    ANSWERS = 2  # lines written
    REQUESTS = 3
    MESSAGES = 4


NOT_BEGUN: Final = -1
_REQUEST_FIELDS: Final = 4  # from x, how far, the gateway, the lowest so far; the first request has both ends
_ROW_FIELDS: Final = 3
_EMPTY_FIELDS: Final = 1  # of a reply without rows


class AnswerLines(NamedTuple):
    """Minima that changed."""

    change: NDArray[np.int64]  # [room]
    position: NDArray[np.int64]  # of the subscription in `MinimumRows`
    old: NDArray[np.float64]  # heights; inf for none
    new: NDArray[np.float64]


class RowRequests(NamedTuple):
    """Requests of gateways for the rows next to one that they lost."""

    change: NDArray[np.int64]  # [room]
    gateway: NDArray[np.int64]
    step: NDArray[np.int64]
    x: NDArray[np.float64]  # its owner is asked first


class Output(NamedTuple):
    """Output buffers. `messages` are caused by requests; their steps count from the arrival at the owner of x.

    `stairs` has room for all rows, and holds the replies to one request at a time.
    """

    answers: AnswerLines
    requests: RowRequests
    messages: DiagonalMessages
    stairs: ReturnedRows


@kernel
def broadcast_changes(
    rows: DiagonalRows,
    minima: MinimumRows,
    plan: BroadcastPlan,
    progress: NDArray[np.int64],
    reached: ReachedZones,
    out: Output,
) -> int:
    """Apply changes, broadcast after broadcast and zone after zone; return an `Ended`.

    Continues where `progress` says: a zone is processed once there is room for all of its output. A zone costs its
    subscriptions, if any of them may be affected.
    """
    broadcasts, trees = plan.broadcasts, plan.trees
    for b in range(progress[Progress.BROADCASTS], broadcasts.change.shape[0]):
        kind = broadcasts.kind[b]
        if progress[Progress.ENTRY] == NOT_BEGUN:
            if b == 0 or broadcasts.change[b] != broadcasts.change[b - 1]:
                ended, at = find_change(rows, plan.changes, broadcasts.change[b])
                if ended != Ended.DONE:
                    return ended
                apply_change(rows, plan.changes, broadcasts.change[b], at)
            progress[Progress.ENTRY] = trees.starts[b]
        bucket = _bucket_of(broadcasts.x[b])
        for e in range(progress[Progress.ENTRY], trees.starts[b + 1]):
            zone = trees.zones[e]
            reached.entry[zone] = e
            reached.is_reached[e] = kind != BroadcastKind.DECREASE or _is_within_cutoff(plan, e, reached)
            if not reached.is_reached[e]:
                continue
            if not _has_room(rows, minima, zone, progress, out):
                progress[Progress.ENTRY] = e
                return np.int64(Ended.NO_ROOM)
            if kind == BroadcastKind.DECREASE:
                _receive_decrease(minima, plan, (b, e), reached, progress, out.answers)
            elif kind == BroadcastKind.ARRIVAL:
                if broadcasts.height[b] < minima.highest[zone]:
                    _receive_arrival(minima, plan, (b, e), progress, out.answers)
            elif minima.counts[zone, bucket] > 0:
                _receive_loss(rows, minima, plan, (b, e), progress, out)
        progress[Progress.ENTRY] = NOT_BEGUN
        progress[Progress.BROADCASTS] = b + 1
    return np.int64(Ended.DONE)


@kernel
def count_minima(minima: MinimumRows) -> None:
    """Count the minimum rows of all subscriptions by zone and bucket, and find the highest of each zone."""
    for zone in range(minima.highest.shape[0]):
        minima.highest[zone] = -np.inf
        for s in range(minima.starts[zone], minima.starts[zone + 1]):
            minima.highest[zone] = max(minima.highest[zone], minima.height[s])
            if minima.height[s] < np.inf:
                minima.counts[zone, _bucket_of(minima.x[s])] += 1


@helper
def _bucket_of(x: float) -> int:
    """Return the bucket of an x: all bits of its mantissa mixed, since short numbers differ in the leading bits only."""
    digits = np.int64(math.frexp(x)[0] * 2.0**53)
    digits ^= digits >> 9
    digits ^= digits >> 18
    digits ^= digits >> 36
    return digits & (BUCKETS - 1)


@helper
def _has_room(
    rows: DiagonalRows, minima: MinimumRows, zone: int, progress: NDArray[np.int64], out: Output
) -> bool:
    """Return whether a zone's output for one broadcast fits: all its answers, one request, two walks to the ends."""
    answers = minima.starts[zone + 1] - minima.starts[zone]
    return (
        progress[Progress.ANSWERS] + answers <= out.answers.change.shape[0]
        and progress[Progress.REQUESTS] < out.requests.change.shape[0]
        and progress[Progress.MESSAGES] + 2 * rows.counts.shape[0] + 1 <= out.messages.cause.shape[0]
    )


@helper
def _is_within_cutoff(plan: BroadcastPlan, e: int, reached: ReachedZones) -> bool:
    """Return whether a tagged broadcast comes to an entry's zone; if so, the entry inherits its parent's tag."""
    zone, parent = plan.trees.zones[e], plan.trees.parents[e]
    reached.above[e], reached.below[e] = -np.inf, np.inf
    if parent == NO_PARENT:
        return True
    before = reached.entry[parent]
    if not reached.is_reached[before]:
        return False
    reached.above[e], reached.below[e] = reached.above[before], reached.below[before]
    return plan.zones.high1[zone] > reached.above[e] and plan.zones.low2[zone] < reached.below[e]


@helper
def _receive_decrease(
    minima: MinimumRows,
    plan: BroadcastPlan,
    which: tuple[int, int],
    reached: ReachedZones,
    progress: NDArray[np.int64],
    answers: AnswerLines,
) -> None:
    """Update a zone's subscriptions after a decrease, and narrow the tag by those that are not affected."""
    b, e = which
    zone = plan.trees.zones[e]
    x, height = plan.broadcasts.x[b], plan.broadcasts.height[b]
    above, below = reached.above[e], reached.below[e]
    for s in range(minima.starts[zone], minima.starts[zone + 1]):
        if not (above < minima.low[s] <= x <= minima.high[s] < below):
            continue
        if height < minima.height[s]:
            _set_minimum(minima, (plan.broadcasts.change[b], zone, s), x, height, progress, answers)
        elif minima.x[s] < x:
            above = max(above, minima.x[s])
        elif minima.x[s] > x:
            below = min(below, minima.x[s])
        else:  # another row at x is as low: no range is affected
            above, below = np.inf, -np.inf
    reached.above[e], reached.below[e] = above, below


@helper
def _receive_arrival(
    minima: MinimumRows,
    plan: BroadcastPlan,
    which: tuple[int, int],
    progress: NDArray[np.int64],
    answers: AnswerLines,
) -> None:
    """Update a zone's subscriptions after a row came."""
    b, e = which
    zone = plan.trees.zones[e]
    x, height = plan.broadcasts.x[b], plan.broadcasts.height[b]
    highest = -np.inf
    for s in range(minima.starts[zone], minima.starts[zone + 1]):
        if minima.low[s] <= x <= minima.high[s] and height < minima.height[s]:
            _set_minimum(minima, (plan.broadcasts.change[b], zone, s), x, height, progress, answers)
        highest = max(highest, minima.height[s])
    minima.highest[zone] = highest


@helper
def _receive_loss(
    rows: DiagonalRows,
    minima: MinimumRows,
    plan: BroadcastPlan,
    which: tuple[int, int],
    progress: NDArray[np.int64],
    out: Output,
) -> None:
    """Request the next rows for a zone's subscriptions that lose their minimum."""
    b, e = which
    zone, i = plan.trees.zones[e], plan.broadcasts.change[b]
    x, lost = plan.broadcasts.x[b], plan.broadcasts.height[b]
    low, high = np.inf, -np.inf
    for s in range(minima.starts[zone], minima.starts[zone + 1]):
        if minima.x[s] == x and minima.height[s] == lost:
            low, high = min(low, minima.low[s]), max(high, minima.high[s])
    if low > high:
        return
    peak, lefts, stairs = _request_rows(rows, plan, which, (low, high), progress, out)
    highest = minima.highest[zone]
    for s in range(minima.starts[zone], minima.starts[zone + 1]):
        if minima.x[s] != x or minima.height[s] != lost:
            continue
        # Stairs fall outwards: the last one within the range is the lowest.
        new_x, new = x if peak < np.inf else np.nan, peak
        for step in range(lefts - 1, -1, -1):
            if out.stairs.x[step] >= minima.low[s]:
                new_x, new = out.stairs.x[step], out.stairs.height[step]
                break
        for step in range(stairs - 1, lefts - 1, -1):
            if out.stairs.x[step] <= minima.high[s]:
                if out.stairs.height[step] < new:
                    new_x, new = out.stairs.x[step], out.stairs.height[step]
                break
        _set_minimum(minima, (i, zone, s), new_x, new, progress, out.answers)
        highest = max(highest, new)
    minima.highest[zone] = highest


@helper
def _request_rows(
    rows: DiagonalRows,
    plan: BroadcastPlan,
    which: tuple[int, int],
    ends: tuple[float, float],
    progress: NDArray[np.int64],
    out: Output,
) -> tuple[float, int, int]:
    """Request the rows from x outwards that are lower than all nearer ones: the stairs, those on the left first.

    Return the lowest height at x, the number of stairs on the left, and that of all. The gateway knows the change
    itself, so a row that rose is returned only if another one at x is lower.
    """
    b, e = which
    zone, i = plan.trees.zones[e], plan.broadcasts.change[b]
    changes, x = plan.changes, plan.broadcasts.x[b]
    owners = plan.zones.diagonal
    request, line = progress[Progress.REQUESTS], progress[Progress.MESSAGES]
    out.requests.change[request], out.requests.x[request] = i, x
    out.requests.gateway[request], out.requests.step[request] = zone, plan.trees.depths[e]
    progress[Progress.REQUESTS] = request + 1

    here = changes.old_position[i]
    first, last = rows.starts[here], rows.starts[here] + rows.counts[here]
    begin = first_from(rows.x, first, last, x)
    end = first_from(rows.x, begin, last, np.nextafter(x, np.inf))
    peak = rows.height[begin] if begin < end else np.inf
    returned = 0 if peak == np.inf or (changes.new_x[i] == x and changes.new_height[i] == peak) else 1
    count, lefts, is_last = np.int64(0), np.int64(0), False
    for direction in (-1, 1):
        bound = ends[0] if direction < 0 else ends[1]
        final = _place_of(plan.zones, bound)
        is_last = is_last or final == here
        rim = np.nextafter(bound, direction * np.inf)
        position, hop, lowest = here, np.int64(0), peak
        row = begin - 1 if direction < 0 else end
        while True:
            before = count
            count, lowest, _ = scan_rows(
                rows, (position, row, direction, i), rim, -np.inf, lowest, out.stairs, count
            )
            if hop == 0:
                returned += count - before
            elif count > before or position == final:
                fields = max(_ROW_FIELDS * (count - before), _EMPTY_FIELDS)
                line = send(out.messages, line, (request, owners[position], zone, fields, hop), True)
            if position == final:
                break
            forwarded = (
                request,
                owners[position],
                owners[position + direction],
                np.int64(_REQUEST_FIELDS),
                hop,
            )
            line = send(out.messages, line, forwarded, False)
            position += direction
            hop += 1
            row = rows.starts[position] + (rows.counts[position] - 1 if direction < 0 else 0)
        if direction < 0:
            lefts = count
    if returned > 0 or is_last:
        fields = max(_ROW_FIELDS * returned, _EMPTY_FIELDS)
        line = send(out.messages, line, (request, owners[here], zone, fields, np.int64(0)), True)
    progress[Progress.MESSAGES] = line
    return peak, lefts, count


@helper
def _place_of(zones: Zones, x: float) -> int:
    """Return the position on the diagonal whose owner holds (x, x)."""
    above = np.nextafter(x, np.inf)
    return first_from(zones.diagonal_from, np.int64(0), zones.diagonal_from.shape[0], above) - 1


@helper
def _set_minimum(
    minima: MinimumRows,
    which: tuple[int, int, int],
    x: float,
    height: float,
    progress: NDArray[np.int64],
    answers: AnswerLines,
) -> None:
    """Give a subscription another minimum row, and write a line if its height differs."""
    change, zone, s = which
    old = minima.height[s]
    if old < np.inf:
        minima.counts[zone, _bucket_of(minima.x[s])] -= 1
    if height < np.inf:
        minima.counts[zone, _bucket_of(x)] += 1
    minima.x[s], minima.height[s] = x, height
    if height != old:
        line = progress[Progress.ANSWERS]
        answers.change[line], answers.position[line] = change, s
        answers.old[line], answers.new[line] = old, height
        progress[Progress.ANSWERS] = line + 1
