"""The ranges that a change of a point concerns: Mar, peak, hull and EMar, as messages (database/network interface, §2.3, §3).

A change becomes one, two or three *parts*: the ranges that have only its old x, only its new x, or both. A part is an
inner range that all its subscriptions contain, the greatest minimum they may have now (the peak), and a value `stop`: no
range that has a point of at most `stop` outside the inner one is concerned. From the inner range we walk outwards in both
directions, each time to the next x with a lower y, until `stop` is reached: that is the hull. Of the two stairs, the higher
next step is the new minimum of the ranges that reach it but no step that is lower: that is its message, and so the two
are merged without being written down. Of equal steps the right one is written first, for the ranges that do not reach the
left one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import a2b_tree
from tocsin.structures.a2b_tree import A2BTree
from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import helper, kernel
from tocsin.views._kernels.message_room import MessageRoom, write_message
from tocsin.views.state import Influence


class Progress(IntEnum):
    """The columns of the progress of `reformulate`."""

    CHANGES = 0  # changes made
    MESSAGES = 1  # messages written


class Ended(IntEnum):
    """Why `reformulate` ended."""

    DONE = 0
    NO_ROOM_FOR_MESSAGES = 1
    NO_ROOM = 2  # in the tree
    ABSENT = 3  # the next change's old point is not there


# Kernels return and store plain integers.
_IGNORABLE: Final = int(Influence.IGNORABLE)
_GOOD: Final = int(Influence.GOOD)
_BAD: Final = int(Influence.BAD)
_DONE: Final = int(Ended.DONE)
_NO_ROOM_FOR_MESSAGES: Final = int(Ended.NO_ROOM_FOR_MESSAGES)
_NO_ROOM: Final = int(Ended.NO_ROOM)
_ABSENT: Final = int(Ended.ABSENT)

Part: TypeAlias = tuple[float, float, float, float, float, float]
"""The peak (NaN if the part concerns no range), `stop`, the inner range, and the x that no concerned range reaches."""

_PEAK: Final = 0
_INNER_L: Final = 2
_INNER_R: Final = 3
_NO_PART: Final = (np.nan, 0.0, 0.0, 0.0, 0.0, 0.0)

_FULL: Final = -1


class MinimumMessages(NamedTuple):
    """Messages with the new minimum, NaN if there is none."""

    room: MessageRoom
    value: Float64s  # [room]


@kernel
def reformulate(
    tree: A2BTree,
    points: Float64s,
    sign: float,
    progress: Int64s,
    influence: NDArray[np.int8],
    out: MinimumMessages,
) -> int:
    """Make changes one after another, write their messages and classes, and return an `Ended`.

    `points` has a row each for old x, old y, new x and new y, NaN where there is no point. The tree holds y times `sign`.

    It continues at `progress`. A change is made once all its messages are written, so that the caller may give more room and
    call again. A change costs O(log n) for each message.
    """
    for i in range(progress[Progress.CHANGES], points.shape[1]):
        if not a2b_tree.has_room(tree):
            return _NO_ROOM
        # -0.0 becomes 0.0: they are one number, and must be one key.
        old_x, old_y = points[0, i] + 0.0, sign * points[1, i] + 0.0
        new_x, new_y = points[2, i] + 0.0, sign * points[3, i] + 0.0
        was = not np.isnan(old_x)
        if was and not (a2b_tree.seek(tree, old_x, tree.here) and a2b_tree.holds(tree, tree.here, old_y)):
            return _ABSENT
        end = _write_change(
            tree, (old_x, old_y, new_x, new_y), i, influence, out, progress[Progress.MESSAGES]
        )
        if end == _FULL:
            return _NO_ROOM_FOR_MESSAGES
        for message in range(progress[Progress.MESSAGES], end):
            out.value[message] = sign * out.value[message] + 0.0
        if not (old_x == new_x and a2b_tree.replace(tree, new_y)):
            if was:
                a2b_tree.take(tree, old_x, old_y)
            if not np.isnan(new_x):
                a2b_tree.add(tree, new_x, new_y)
        progress[Progress.CHANGES] = i + 1
        progress[Progress.MESSAGES] = end
    return _DONE


@helper
def _write_change(
    tree: A2BTree,
    point: tuple[float, float, float, float],
    change: int,
    influence: NDArray[np.int8],
    out: MinimumMessages,
    begin: int,
) -> int:
    """Write the messages and the class of a change that is not made yet; return how many there are then, or _FULL.

    `here` leads to the old x, if there is one. What is NaN is neither less nor greater, so it makes no part.
    """
    old_x, old_y, new_x, new_y = point
    old_others, new_others = np.inf, np.inf  # the least y that other points have at either x
    if not np.isnan(old_x):
        old_others = a2b_tree.least_without(tree, tree.here, old_y)
    moves, is_there = old_x != new_x, False
    if moves and not np.isnan(new_x):
        is_there = a2b_tree.seek(tree, new_x, tree.away)
        if is_there:
            new_others = a2b_tree.least_at(tree, tree.away)
    goes = moves and old_y < old_others
    comes = moves and new_y < new_others
    parts = (
        _part_with_one(old_x, new_x, old_others, old_y) if goes else _NO_PART,
        _part_with_one(new_x, old_x, new_y, new_y) if comes else _NO_PART,
        _part_with_both(tree, point, min(old_others, new_others), is_there),
    )
    end = begin
    for part in parts:
        if not np.isnan(part[_PEAK]):
            a2b_tree.start_left(tree, tree.here, True)
            if part[_INNER_L] != old_x:
                a2b_tree.start_left(tree, tree.away, is_there)
            a2b_tree.start_right(tree, tree.here if part[_INNER_R] == old_x else tree.away)
            end = _write_part(tree, out, part, change, end)
            if end == _FULL:
                return _FULL
    is_bad = goes
    if old_y < new_y and not np.isnan(parts[2][_PEAK]):
        is_bad = moves or end > begin + 1 or old_others <= new_y or not _is_as_wide(tree, old_y, new_y)
    influence[change] = _IGNORABLE if end == begin else _BAD if is_bad else _GOOD
    return end


@helper
def _part_with_one(x: float, other: float, peak: float, stop: float) -> Part:
    """Return the part of the ranges that have one x, but not the other, if there is one."""
    return peak, stop, x, x, other if other < x else -np.inf, other if other > x else np.inf


@helper
def _part_with_both(
    tree: A2BTree, point: tuple[float, float, float, float], others: float, is_there: bool
) -> Part:
    """Return the part of the ranges that have the old x and the new: there it is only the y that changes.

    `others` is the least y that other points have at either x, and `is_there` says whether there are any at the new one.
    """
    old_x, old_y, new_x, new_y = point
    stop = min(old_y, new_y)
    if not (old_y != new_y and stop < others) or np.isnan(old_x) or np.isnan(new_x):
        return _NO_PART
    if old_x < new_x:
        others = min(others, a2b_tree.least_strictly_between(tree, tree.here, tree.away, is_there))
    elif old_x > new_x:
        others = min(others, a2b_tree.least_strictly_between(tree, tree.away, tree.here, True))
    if others <= stop:
        return _NO_PART
    return min(new_y, others), stop, min(old_x, new_x), max(old_x, new_x), -np.inf, np.inf


@helper
def _write_part(tree: A2BTree, out: MinimumMessages, part: Part, change: int, end: int) -> int:
    """Write the messages of a part, from its peak down; return how many there are in all then, or _FULL.

    `left` and `right` begin at the inner range.
    """
    value, stop, inner_l, inner_r, clip_l, clip_r = part
    left_x, left_y, right_x, right_y = inner_l, value, inner_r, value  # the next step on either side
    go_left, go_right = True, True
    while True:
        # A step is lower than the one before it; what is no higher than `stop` ends the stairs.
        bound = max(np.nextafter(value, -np.inf), stop)
        if go_left:
            left_x, left_y = clip_l, -np.inf
            if a2b_tree.precede(tree, bound) and a2b_tree.x_at(tree, tree.left) > clip_l:
                left_x = a2b_tree.x_at(tree, tree.left)
                left_y = _above(a2b_tree.least_at(tree, tree.left), stop)
        if go_right:
            right_x, right_y = clip_r, -np.inf
            if a2b_tree.follow(tree, bound) and a2b_tree.x_at(tree, tree.right) < clip_r:
                right_x = a2b_tree.x_at(tree, tree.right)
                right_y = _above(a2b_tree.least_at(tree, tree.right), stop)
        if end == out.value.shape[0]:
            return _FULL
        write_message(out.room, end, change, (inner_l, inner_r, left_x, right_x))
        out.value[end] = np.nan if np.isinf(value) else value
        end += 1
        value = max(left_y, right_y)
        if value == -np.inf:
            return end
        go_left = left_y > right_y
        go_right = not go_left
        inner_l = left_x if go_left else part[_INNER_L]
        inner_r = right_x if go_right else part[_INNER_R]


@helper
def _above(y: float, stop: float) -> float:
    """Return the height of a step; of the end of the stairs, one below all."""
    return y if y > stop else -np.inf


@helper
def _is_as_wide(tree: A2BTree, old_y: float, new_y: float) -> bool:
    """Tell whether Mar for the greater `new_y` has the ends that it has for `old_y`, about the x that `here` leads to."""
    a2b_tree.start_left(tree, tree.here, True)
    if a2b_tree.precede(tree, new_y) and a2b_tree.least_at(tree, tree.left) > old_y:
        return False
    a2b_tree.start_right(tree, tree.here)
    return not (a2b_tree.follow(tree, new_y) and a2b_tree.least_at(tree, tree.right) > old_y)


class ChangedValues(NamedTuple):
    """The subscribers' side: old and new values of the subscriptions that match a message."""

    change: Int64s  # [matches]
    old: Float64s  # [matches]
    new: Float64s  # [matches]


@kernel
def apply_values(
    answers: Float64s,
    values: Float64s,
    changes: Int64s,
    offsets: Int64s,
    slots: Int64s,
    changed: ChangedValues,
) -> None:
    """Give the value of message m to the slots from offsets[m] to offsets[m + 1], and write the changes."""
    for m in range(values.shape[0]):
        for i in range(offsets[m], offsets[m + 1]):
            changed.change[i] = changes[m]
            changed.old[i] = answers[slots[i]]
            changed.new[i] = values[m]
            answers[slots[i]] = values[m]
