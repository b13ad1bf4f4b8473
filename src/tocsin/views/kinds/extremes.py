"""The least or the greatest y within a range: both sides of `min`, and of `max`, which is `min` of the negated y."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import IdArray, Matches
from tocsin.structures import a2b_tree
from tocsin.structures.growth import bytes_of, roomier
from tocsin.views._kernels.answers import ToldRoom, tell_values
from tocsin.views._kernels.influence import (
    ABSENT,
    CHANGES,
    DONE,
    IGNORABLE,
    MESSAGES,
    NO_ROOM,
    NO_ROOM_FOR_MESSAGES,
    MessageRoom,
    PointColumns,
    reformulate,
)
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.kind import Answers, Present, Reformulator, absent
from tocsin.views.messages import Messages


class Extremes(Reformulator):
    """Points in an A2B-tree; messages tell `value`, the new least or, if `greatest`, the new greatest y, NaN for none.

    The messages of one change come from the highest new minimum down (of maxima: from the lowest up), for the ranges with
    its old x alone, then for those with its new x alone, then for those with both.
    """

    def __init__(self, *, greatest: bool = False) -> None:
        self._sign = -1.0 if greatest else 1.0
        self._tree = a2b_tree.new_a2b_tree()
        self._room = _message_room(64)

    def load(self, x: Floats, y: Floats) -> None:
        """Take all points at once, in the place of those that were held; none is NaN."""
        heights = self._heights(y)
        order = np.lexsort((heights, x))
        x, heights = _plain(x)[order], heights[order]
        distinct = int(np.count_nonzero(x[1:] != x[:-1])) + 1
        self._tree = a2b_tree.with_room(a2b_tree.new_a2b_tree(), distinct)
        done = 0
        while (done := a2b_tree.add_points(self._tree, x, heights, done)) < len(x):
            self._tree = a2b_tree.with_room(self._tree)

    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes one after another, and return the messages that tell of them."""
        return self.follow(changes)[0]

    def follow(self, changes: PointChanges) -> tuple[Messages, NDArray[np.int8]]:
        """Make the changes, and return the messages and each change's class, a value of `Influence`."""
        columns = PointColumns(
            _plain(changes.old_x),
            self._heights(changes.old_y),
            _plain(changes.new_x),
            self._heights(changes.new_y),
        )
        progress = np.zeros(2, dtype=np.int64)
        influence = np.full(len(changes), IGNORABLE, dtype=np.int8)
        while (ended := reformulate(self._tree, columns, progress, influence, self._room)) != DONE:
            if ended == NO_ROOM:
                self._tree = a2b_tree.with_room(self._tree)
            elif ended == NO_ROOM_FOR_MESSAGES:
                self._room = _roomier(self._room)
            elif ended == ABSENT:
                raise absent(changes, int(progress[CHANGES]))
        room, count = self._room, int(progress[MESSAGES])
        inner_l, inner_r = room.inner_l[:count].copy(), room.inner_r[:count].copy()
        outer_l, outer_r = room.outer_l[:count].copy(), room.outer_r[:count].copy()
        payload = {"value": self._heights(room.value[:count])}
        return Messages(room.change[:count].copy(), inner_l, inner_r, outer_l, outer_r, payload), influence

    def present(self, lows: Floats, highs: Floats) -> Present:
        """Return the `value` of each range, both ends included; NaN where it has no point."""
        least = np.empty(len(lows), dtype=np.float64)
        a2b_tree.least_in_ranges(self._tree, _plain(lows), _plain(highs), least)
        least[np.isinf(least)] = np.nan
        return {"value": self._heights(least)}

    @property
    def nbytes(self) -> int:
        """Return the bytes of the tree and of the room for messages."""
        return bytes_of(self._tree) + sum(column.nbytes for column in self._room)

    def _heights(self, y: Floats) -> Floats:
        """Return y for the tree, which knows the least only, or what the tree says as y again."""
        return _plain(y) if self._sign > 0 else 0.0 - _plain(y)


class LatestValues(Answers):
    """By place, the value that was told last; a message's `value` takes its place."""

    def __init__(self) -> None:
        self._values: Floats = np.full(64, np.nan)

    def begin(self, places: IdArray, present: Present) -> None:
        """Let subscriptions begin with the `value` that the server told them."""
        self._hold(places)
        self._values[places] = present["value"]

    def end(self, places: IdArray) -> None:
        """Let go of what is kept for subscriptions."""
        self._values[places] = np.nan

    def tell(self, messages: Messages, found: Matches) -> AnswerChanges:
        """Return what changes for the subscriptions that hear each message; `found` are their places."""
        count = len(found.ids)
        told = ToldRoom(np.empty(count, dtype=np.int64), np.empty(count), np.empty(count))
        tell_values(self._values, messages.payload["value"], messages.change, found.offsets, found.ids, told)
        return AnswerChanges(told.change, found.ids, told.old, told.new)

    def answer(self, place: int) -> float | None:
        """Return a subscription's answer, None for null."""
        value = float(self._values[place])
        return None if np.isnan(value) else value

    @property
    def nbytes(self) -> int:
        """Return the bytes of all values."""
        return self._values.nbytes

    def _hold(self, places: IdArray) -> None:
        needed = int(places.max(initial=-1)) + 1
        if needed > len(self._values):
            longer = np.full(roomier(len(self._values), needed), np.nan)
            longer[: len(self._values)] = self._values
            self._values = longer


def _plain(numbers: Floats) -> Floats:
    """Return numbers as one array without gaps, and without the zero that has a sign."""
    return np.ascontiguousarray(numbers, dtype=np.float64) + 0.0


def _message_room(room: int) -> MessageRoom:
    return MessageRoom(np.empty(room, dtype=np.int64), *(np.empty(room) for _ in range(5)))


def _roomier(room: MessageRoom) -> MessageRoom:
    """Return twice the room, with what is written already."""
    larger = _message_room(2 * len(room.change))
    for old, new in zip(room, larger, strict=True):
        new[: len(old)] = old
    return larger
