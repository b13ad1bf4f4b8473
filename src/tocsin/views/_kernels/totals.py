"""Counts, sums and means: the messages of changes, the tallies of ranges, and the answers that messages change (§5)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import helper, kernel, prefetch
from tocsin.structures.sorted_blocks import BLOCK, PairChanges, SortedBlocks, lower_bound
from tocsin.structures.tallies import COUNT, add_number, add_tally, rounded
from tocsin.views._kernels.message_room import MessageRoom, write_message

MOST: Final = 3  # messages of one change
_AHEAD: Final = 8  # tallies that are prefetched


class Total(IntEnum):
    """The answer that a tally gives."""

    COUNT = 0
    SUM = 1
    MEAN = 2


class TotalMessages(NamedTuple):
    """Messages: the ranges they concern, the number that leaves these and the one that enters, NaN for none."""

    room: MessageRoom
    old_y: Float64s
    new_y: Float64s


class MatchedMessages(NamedTuple):
    """The numbers of each message, and the subscriptions that match it, by the slots of their tallies."""

    change: Int64s
    old_y: Float64s
    new_y: Float64s
    offsets: Int64s
    slots: Int64s


class ChangedTotals(NamedTuple):
    """Answers that changed."""

    change: Int64s
    slots: Int64s
    old: Float64s
    new: Float64s


@kernel
def reformulate_totals(changes: PairChanges, total: int, out: TotalMessages) -> int:
    """Write the messages of changes of points, at most MOST of each, and return how many there are.

    Ranges with the old x alone, the new x alone, and both are three rectangles. Those with both are concerned only if y
    changes, which counts do not look at.
    """
    count = np.int64(0)
    for i in range(changes.shape[1]):
        old, gone, new, come = changes[0, i], changes[1, i], changes[2, i], changes[3, i]
        if old == new:
            if gone != come and total != Total.COUNT:
                count = _append_message(out, count, i, (old, old, -np.inf, np.inf), gone, come)
            continue
        if not np.isnan(old):
            left = new if new < old else -np.inf
            right = new if new > old else np.inf
            count = _append_message(out, count, i, (old, old, left, right), gone, np.nan)
        if not np.isnan(new):
            left = old if old < new else -np.inf
            right = old if old > new else np.inf
            count = _append_message(out, count, i, (new, new, left, right), np.nan, come)
            if not np.isnan(old) and gone != come and total != Total.COUNT:
                both = (min(old, new), max(old, new), -np.inf, np.inf)
                count = _append_message(out, count, i, both, gone, come)
    return count


@helper
def _append_message(
    out: TotalMessages,
    at: int,
    change: int,
    ends: tuple[float, float, float, float],
    gone: float,
    come: float,
) -> int:
    """Write one message at `at` and return the number of messages written."""
    write_message(out.room, at, change, ends)
    out.old_y[at], out.new_y[at] = gone, come
    return at + 1


@helper
def _value(rows: Int64s, row: int, bottom: int, total: int) -> float:
    """Return the answer of a tally: the count, or the sum or mean of at least one number, else NaN."""
    count = rows[row, COUNT]
    if total == Total.COUNT:
        return np.float64(count)
    if count == 0:
        return np.nan
    sum_ = rounded(rows, row, bottom)
    return sum_ if total == Total.SUM else sum_ / np.float64(count)


@kernel
def values_of(rows: Int64s, bottom: int, total: int, values: Float64s) -> None:
    """Write the answer of each tally."""
    for i in range(rows.shape[0]):
        values[i] = _value(rows, i, bottom, total)


@kernel
def apply_totals(
    rows: Int64s, bottom: int, total: int, matched: MatchedMessages, difference: Int64s, out: ChangedTotals
) -> int:
    """Apply messages to the tallies of the subscriptions that match them, and return how many answers changed.

    `difference` is one tally, which is overwritten. There must be room for every match.
    """
    count = np.int64(0)
    for i in range(matched.change.shape[0]):
        begin, end = matched.offsets[i], matched.offsets[i + 1]
        if begin == end:
            continue
        for j in range(difference.shape[1]):
            difference[0, j] = 0
        for sign, number in ((-1, matched.old_y[i]), (1, matched.new_y[i])):
            if not np.isnan(number):
                add_number(difference, 0, bottom, number, sign)
        for j in range(begin, end):
            if j + _AHEAD < end:
                prefetch(rows, matched.slots[j + _AHEAD] * rows.shape[1])
            slot = matched.slots[j]
            old = _value(rows, slot, bottom, total)
            add_tally(rows, slot, difference, 0, 1)
            new = _value(rows, slot, bottom, total)
            if old != new and not (np.isnan(old) and np.isnan(new)):
                out.change[count], out.slots[count] = matched.change[i], slot
                out.old[count], out.new[count] = old, new
                count += 1
    return count


@kernel
def refresh_tallies(points: SortedBlocks, tallies: Int64s, sums: Int64s, bottom: int) -> None:
    """Tally the blocks that changed, and write the tally of all blocks before each entry, and after the last.

    `tallies` are by block; the second of each pair is what is summed.
    """
    width = tallies.shape[1]
    for j in range(width):
        sums[0, j] = 0
    for entry in range(points.used[0]):
        block = points.block[entry]
        if points.stale[block]:
            for j in range(width):
                tallies[block, j] = 0
            for position in range(points.size[entry]):
                add_number(tallies, block, bottom, points.second[block, position], 1)
            points.stale[block] = False
        for j in range(width):
            sums[entry + 1, j] = sums[entry, j]
        add_tally(sums, entry + 1, tallies, block, 1)


@kernel
def tally_ranges(
    points: SortedBlocks, sums: Int64s, bottom: int, lows: Float64s, highs: Float64s, found: Int64s
) -> None:
    """Write the tally of the points whose first lies within each range, both ends included."""
    for i in range(lows.shape[0]):
        for j in range(found.shape[1]):
            found[i, j] = 0
        for sign, first, second in ((-1, lows[i], -np.inf), (1, highs[i], np.inf)):
            _add_below(points, sums, bottom, lower_bound(points, first, second), found, i, sign)


@helper
def _add_below(
    points: SortedBlocks, sums: Int64s, bottom: int, end: int, found: Int64s, row: int, sign: int
) -> None:
    """Add the tally of all points before a position to a row, or if `sign` is -1 take it away."""
    entry, positions = end // BLOCK, end % BLOCK
    add_tally(found, row, sums, entry, sign)
    block = points.block[entry]
    for position in range(positions):
        add_number(found, row, bottom, points.second[block, position], sign)
