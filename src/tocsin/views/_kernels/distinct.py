"""Distinct values: the widest interval around a point without another of its value, and the messages of a change."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.structures.array_types import Bools, Float64s, Int64s
from tocsin.structures.jit import helper, kernel
from tocsin.structures.sorted_blocks import (
    BLOCK,
    PairChanges,
    SortedBlocks,
    delete,
    has_room,
    insert,
    lower_bound,
)
from tocsin.views._kernels.message_room import MessageRoom, write_message

MOST: Final = 5  # messages of one change
NO_CODE: Final = -1
_SEARCH: Final = 64  # points that can be read in the time of the searches for one code


class Differences(NamedTuple):
    """Messages: the ranges they concern, and the code that these lose and the one that they gain, NO_CODE for none."""

    room: MessageRoom
    removed: Int64s
    added: Int64s
    count: Int64s  # [1] messages written


class CodedPoints(NamedTuple):
    """The points in two orders: pairs of (code, x), and of (x, code)."""

    by_code: SortedBlocks
    by_x: SortedBlocks
    before: Int64s  # [entries] points by x in all entries before each
    seen: Bools  # [codes] whether the range being walked through has the code; else False


@kernel
def reformulate_distinct(points: SortedBlocks, changes: PairChanges, begin: int, out: Differences) -> int:
    """Make changes of (code, x) from `begin` on, and add at most MOST messages of each.

    Return how far it came for want of room among the points; -1 - i if change i removes a point that is not there.
    """
    for i in range(begin, changes.shape[1]):
        if not has_room(points):
            return i
        gone, old, come, new = changes[0, i], changes[1, i], changes[2, i], changes[3, i]
        if not np.isnan(gone) and not delete(points, gone, old):
            return -1 - i
        # Both are margins among the other points, so the old point does not limit the new one, nor the reverse.
        goes = comes = (np.nan, np.nan, np.nan)
        for code, x, is_old in ((gone, old, True), (come, new, False)):
            if not np.isnan(code):
                margin = _margin(points, code, x)
                if is_old:
                    goes = margin
                else:
                    comes = margin
        if not np.isnan(come):
            insert(points, come, new)
        _write_disjoint_messages(out, i, (goes, comes), gone, come)
    return changes.shape[1]


@helper
def _margin(points: SortedBlocks, code: float, x: float) -> tuple[float, float, float]:
    """Return the ends of the widest open interval around x without another point of the code, and x between them.

    All are NaN if a point of the code lies at x itself.
    """
    at = np.int64(lower_bound(points, code, x))
    entry, offset = at // BLOCK, at % BLOCK
    left, right = -np.inf, np.inf
    if offset < points.size[entry] and points.first[points.block[entry], offset] == code:
        right = points.second[points.block[entry], offset]
        if right == x:
            return np.nan, np.nan, np.nan
    if offset == 0 and entry > 0:
        entry -= 1
        offset = points.size[entry]
    if offset > 0 and points.first[points.block[entry], offset - 1] == code:
        left = points.second[points.block[entry], offset - 1]
    return left, x, right


@helper
def _write_disjoint_messages(
    out: Differences,
    change: int,
    margins: tuple[tuple[float, float, float], tuple[float, float, float]],
    gone: float,
    come: float,
) -> None:
    """Write disjoint messages for the ranges that lose a code, gain one, or both.

    A margin (l, x, r) stands for the ranges with l < x1 <= x <= x2 < r, a rectangle. Where two of them meet, the part that one
    has outside the other is three rectangles at most. NaN means no code, since codes are floats in pairs.
    """
    (l1, x1, r1), (l2, x2, r2) = margins
    low, high, left, right = min(x1, x2), max(x1, x2), max(l1, l2), min(r1, r2)
    is_shared = not np.isnan(x1) and not np.isnan(x2) and left < low and high < right
    if is_shared and gone != come:
        _append_message(out, change, (low, high, left, right), gone, come)
    for (l, x, r), removed, added in ((margins[0], gone, np.nan), (margins[1], np.nan, come)):  # noqa: E741
        if np.isnan(x):
            continue
        if not is_shared:
            _append_message(out, change, (x, x, l, r), removed, added)
            continue
        if l < left:
            _append_message(out, change, (left, x, l, r), removed, added)
        if x > low:
            _append_message(out, change, (x, x, low, r), removed, added)
        if x < high:
            _append_message(out, change, (low, x, left, high), removed, added)
        if r > right:
            _append_message(out, change, (low, right, left, r), removed, added)


@helper
def _append_message(
    out: Differences, change: int, ends: tuple[float, float, float, float], removed: float, added: float
) -> None:
    """Write one message: `removed` and `added` are codes, NaN for none."""
    at = out.count[0]
    write_message(out.room, at, change, ends)
    out.removed[at] = NO_CODE if np.isnan(removed) else np.int64(removed)
    out.added[at] = NO_CODE if np.isnan(added) else np.int64(added)
    out.count[0] = at + 1


@kernel
def codes_within(
    points: CodedPoints, lows: Float64s, highs: Float64s, begin: int, offsets: Int64s, codes: Int64s
) -> int:
    """Write the codes within each range from `begin` on, in any order, and return how far it came for want of room.

    A range of few points is walked through; in one of many, each code is searched for.
    """
    for i in range(begin, lows.shape[0]):
        at = np.int64(lower_bound(points.by_x, lows[i], -np.inf))
        end = np.int64(lower_bound(points.by_x, highs[i], np.inf))
        inside = points.before[end // BLOCK] + end % BLOCK - points.before[at // BLOCK] - at % BLOCK
        if inside > _SEARCH * points.seen.shape[0]:
            count = _search(points, lows[i], highs[i], offsets[i], codes)
        else:
            count = _walk(points, at, end, offsets[i], codes)
        if count < 0:
            return i
        offsets[i + 1] = count
    return lows.shape[0]


@helper
def _walk(points: CodedPoints, at: int, end: int, begin: int, codes: Int64s) -> int:
    """Write the codes of the points of a stretch from `begin` on; return where they end, or -1 if there is no room."""
    by_x = points.by_x
    count, has_room_left = begin, True
    while at < end and has_room_left:
        entry, offset = at // BLOCK, at % BLOCK
        if offset == by_x.size[entry]:
            at = (entry + 1) * BLOCK
            continue
        code = np.int64(by_x.second[by_x.block[entry], offset])
        if not points.seen[code]:
            has_room_left = count < codes.shape[0]
            if has_room_left:
                points.seen[code] = True
                codes[count] = code
                count += 1
        at += 1
    for i in range(begin, count):
        points.seen[codes[i]] = False
    return count if has_room_left else np.int64(-1)


@helper
def _search(points: CodedPoints, low: float, high: float, begin: int, codes: Int64s) -> int:
    """Write the codes that have a point in a range, as `_walk` does, at the cost of two searches for each code."""
    by_code = points.by_code
    count, code = begin, 0.0
    while True:
        at = np.int64(lower_bound(by_code, code, low))
        entry, offset = at // BLOCK, at % BLOCK
        if offset == by_code.size[entry]:
            return count
        block = by_code.block[entry]
        next_code, x = by_code.first[block, offset], by_code.second[block, offset]
        if next_code > code:  # `code` has no point from `low` on; the next code may have points before x
            code = next_code
            if x < low:
                continue
        if x <= high:
            if count == codes.shape[0]:
                return np.int64(-1)
            codes[count] = np.int64(code)
            count += 1
        code += 1
