"""`min` and `max`: the least or the greatest value. `max` is `min` of the negated values.

Numbers are preferred to strings, these to timestamps, and those to booleans (`kind_order`). Here numbers have the fast way: by
range `tocsin.views.other_values` keeps the others beside them, by row an `OtherValue` is ordered after all numbers.

By range: Mar, hull and EMar of the paper (§2.3 and §3), on an A2B-tree (§3.3). By row: a heap for each subscription.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from functools import partial
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from tocsin.language.semantics import known_value_of
from tocsin.matching import IdArray, Matches
from tocsin.model.values import Value
from tocsin.structures import a2b_tree
from tocsin.structures.growth import bytes_of, roomier
from tocsin.structures.order_labels import Relabelling
from tocsin.views._kernels.influence import (
    ChangedValues,
    Ended,
    MinimumMessages,
    Progress,
    apply_values,
    reformulate,
)
from tocsin.views._kernels.message_room import MessageRoom
from tocsin.views.aggregates import base
from tocsin.views.answer_changes import AnswerChanges, ChangeLog, number_answer
from tocsin.views.changes import Floats, PointChanges, Row
from tocsin.views.compiled import CompiledRowView
from tocsin.views.kind_order import OtherValue
from tocsin.views.messages import Messages
from tocsin.views.numbers import Number, finite

_PROGRESS: Final = len(Progress)
_SLACK: Final = 16  # entries that a heap may have before stale ones are looked for

# by range


class Extremes(base.Reformulator):
    """Points in an A2B-tree. The `value` of a message is the new least or, if `greatest`, the new greatest y; NaN for none.

    The messages of one change come from the highest new minimum down (of maxima: from the lowest up), for the ranges with
    its old x alone, then for those with its new x alone, then for those with both.
    """

    def __init__(self, *, greatest: bool = False) -> None:
        self._sign = -1.0 if greatest else 1.0
        self._tree = a2b_tree.new_a2b_tree()
        self._columns, self._room = _new_room(64)

    def load(self, x: Floats, y: Floats) -> None:
        """Replace all points; none is NaN."""
        heights = self._heights(y)
        order = np.lexsort((heights, x))
        x, heights = _plain(x)[order], heights[order]
        distinct = int(np.count_nonzero(x[1:] != x[:-1])) + 1
        self._tree = a2b_tree.with_room(a2b_tree.new_a2b_tree(), distinct)
        done = 0
        while (done := a2b_tree.add_points(self._tree, x, heights, done)) < len(x):
            self._tree = a2b_tree.with_room(self._tree)

    def reformulate(self, changes: PointChanges, influence: NDArray[np.int8] | None = None) -> Messages:
        """Make the changes one after another, and return their messages; also write the `influence` of each change."""
        points = np.array(astuple(changes), dtype=np.float64)
        if influence is None:
            influence = np.empty(points.shape[1], dtype=np.int8)
        progress = np.zeros(_PROGRESS, dtype=np.int64)
        while ended := reformulate(self._tree, points, self._sign, progress, influence, self._room):
            if ended == Ended.NO_ROOM:
                self._tree = a2b_tree.with_room(self._tree)
            elif ended == Ended.NO_ROOM_FOR_MESSAGES:
                self._make_room()
            elif ended == Ended.ABSENT:
                raise base.missing_point_error(changes, int(progress[Progress.CHANGES]))
        count = progress.item(Progress.MESSAGES)
        # Copies, since the room is written again.
        inner_l, inner_r, outer_l, outer_r, value = self._columns[:, :count].copy()
        change = self._room.room.change[:count].copy()
        return Messages(change, inner_l, inner_r, outer_l, outer_r, {"value": value})

    def _make_room(self) -> None:
        """Make twice the room for messages; those written so far stay."""
        columns, change = self._columns, self._room.room.change
        self._columns, self._room = _new_room(2 * len(change))
        self._columns[:, : len(change)], self._room.room.change[: len(change)] = columns, change

    def present(self, lows: Floats, highs: Floats) -> base.Present:
        """Return the `value` of each range, both ends included; NaN where it has no point."""
        least = np.empty(len(lows), dtype=np.float64)
        a2b_tree.least_in_ranges(self._tree, _plain(lows), _plain(highs), least)
        least[np.isinf(least)] = np.nan
        return {"value": self._heights(least)}

    @property
    def nbytes(self) -> int:
        """Return the bytes of the tree and of the room for messages."""
        return bytes_of(self._tree) + bytes_of(self._room)

    def _heights(self, y: Floats) -> Floats:
        """Return y as the tree holds it, negated for `max`; the inverse is the same."""
        return _plain(y) if self._sign > 0 else 0.0 - _plain(y)


class LatestValues(base.Answers):
    """The last value of each subscription; the `value` of a message replaces it."""

    def __init__(self) -> None:
        self._values: Floats = np.full(64, np.nan)

    def begin(self, slots: IdArray, present: base.Present) -> None:
        """Add subscriptions with the `value` that the server computed."""
        needed = int(slots.max(initial=-1)) + 1
        if needed > len(self._values):
            longer = np.full(roomier(len(self._values), needed), np.nan)
            longer[: len(self._values)] = self._values
            self._values = longer
        self._values[slots] = present["value"]

    def end(self, slots: IdArray) -> None:
        """Remove subscriptions."""
        self._values[slots] = np.nan

    def values(self, slots: IdArray) -> Floats:
        """Return the values of subscriptions, NaN for null."""
        return self._values[slots]

    def relabel(self, relabelling: Relabelling) -> None:
        """Replace labels, for which the values stand, by new ones."""
        self._values = relabelling.apply(self._values)

    def apply(self, messages: Messages, matches: Matches) -> AnswerChanges:
        """Give each subscription the value of the message that it matches, and return the changes."""
        count = len(matches.ids)
        changed = ChangedValues(np.empty(count, dtype=np.int64), np.empty(count), np.empty(count))
        values = messages.payload["value"]
        apply_values(self._values, values, messages.change, matches.offsets, matches.ids, changed)
        return AnswerChanges(changed.change, matches.ids, changed.old, changed.new)

    def answer(self, slot: int) -> float | None:
        """Return a subscription's value, None for null."""
        value = float(self._values[slot])
        return None if np.isnan(value) else value

    @property
    def nbytes(self) -> int:
        """Return the bytes of all values."""
        return self._values.nbytes


def _plain(numbers: Floats) -> Floats:
    """Return numbers as a contiguous array, with 0.0 instead of -0.0."""
    return np.ascontiguousarray(numbers, dtype=np.float64) + 0.0


def _new_room(size: int) -> tuple[Floats, MinimumMessages]:
    """Return room for messages, and the array that has their ends and values as its rows."""
    columns = np.empty((5, size))
    return columns, MinimumMessages(MessageRoom(np.empty(size, dtype=np.int64), columns[:4]), columns[4])


# by row

_Comparable: TypeAlias = Number | OtherValue
"""A finite number, or a value that comes after all numbers."""


class _Entered(Struct):
    """A row that some subscriptions have: its value now, and how many subscriptions; 0 once it has left all of them."""

    row_key: base.RowKey
    order: int
    value: _Comparable
    holders: int = 0


_Entry: TypeAlias = tuple[_Comparable, int, _Entered]
"""A lower bound of the row's value, and the order that decides between equal ones."""


class _Heap(Struct):
    """The entries of one subscription, some of rows that have left it, and its last answer."""

    entries: list[_Entry] = []
    best: _Comparable = math.inf  # no row
    limit: int = _SLACK


class Least(base.RowAggregate[_Comparable, _Heap]):
    """The least value.

    Deletion is lazy: a row that leaves is marked once for all heaps, and dropped when its entry comes to the top of one. So
    is a row whose number grows while it stays, whose entry then sinks. Only subscriptions whose least number it was, or is
    now, are looked at again.
    """

    new_state = _Heap
    sign = 1

    def __init__(self, compiled: CompiledRowView) -> None:
        super().__init__(compiled)
        self._entered: dict[base.RowKey, _Entered] = {}
        self._order = count()

    def read(self, row: Row) -> _Comparable | None:
        """Return the aggregated value, negated for the greatest; None if it is absent or infinite."""
        assert self.compiled.y is not None  # noqa: S101 - the language has no other
        value = known_value_of(self.compiled.y, row)
        number = finite(value)
        if number is not None:
            return self.sign * number
        return None if value is None or type(value) is float else OtherValue(value, self.sign)

    def end(self, number: int) -> None:
        """Remove a subscription, and the rows that no other has."""
        for _, _, row in self.states[number].entries:
            if row.holders:
                row.holders -= 1
                if not row.holders:
                    del self._entered[row.row_key]
        super().end(number)

    def change_row(
        self,
        row_key: base.RowKey,
        old: _Comparable | None,
        new: _Comparable | None,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Take a row's numbers before and after a change."""
        if old is not None and new is not None and new >= old and before and before == after:
            if new > old:
                self._entered[row_key].value = new
                self._touch(before, old)
            return
        if old is not None and before:
            self.apply_row(row_key, old, before, -1)
        if new is not None and after:
            self.apply_row(row_key, new, after, 1)

    def _touch(self, numbers: Collection[int], value: _Comparable) -> None:
        """Note the subscriptions whose least number was this."""
        heaps = self.states
        self.touched.update(dict.fromkeys([number for number in numbers if heaps[number].best == value]))

    def apply_row(
        self, row_key: base.RowKey, value: _Comparable, numbers: Collection[int], step: int
    ) -> None:
        """Add a row to subscriptions, or remove it: then `numbers` are all that have it, as `change_row` sees to."""
        if step < 0:
            self._entered.pop(row_key).holders = 0
            self._touch(numbers, value)
            return
        row = self._entered.get(row_key)  # it is there if only further subscriptions begin
        if row is None:
            row = self._entered[row_key] = _Entered(row_key, next(self._order), value)
        row.holders += len(numbers)
        entry = (value, row.order, row)
        for number in numbers:
            heap = self.states[number]
            heappush(heap.entries, entry)
            if value < heap.best:
                self.touched[number] = None
            if len(heap.entries) > heap.limit:
                heap.entries = [one for one in heap.entries if one[2].holders]
                heapify(heap.entries)
                heap.limit = 2 * len(heap.entries) + _SLACK

    def log_changes(self, row: int, log: ChangeLog) -> None:
        """Log the least values that changed."""
        for number in sorted(self.touched):
            heap = self.states[number]
            best = _least(heap.entries)
            if best != heap.best:
                old, heap.best = self.answer(number), best
                log.add(row, number, old, self.answer(number))
        self.touched.clear()

    def answer(self, number: int) -> Value | None:
        """Return the least value; None if there is none."""
        best = self.states[number].best
        if isinstance(best, OtherValue):
            return best.value
        found: Value | None = None if best == math.inf else number_answer(self.sign * best)
        return found

    @property
    def nbytes(self) -> int:
        """Return the bytes of the heaps, and of the rows' entries that they share."""
        heaps = sum(sys.getsizeof(heap) + sys.getsizeof(heap.entries) for heap in self.states.values())
        each = sum(map(sys.getsizeof, ((0,), (0, 0, 0), _Entered((), 0, 0))))
        shared = sys.getsizeof(self._entered) + len(self._entered) * each
        return sys.getsizeof(self.states) + heaps + shared


class Greatest(Least):
    """The greatest value: the least of the negated ones."""

    sign = -1


def _least(entries: list[_Entry]) -> _Comparable:
    """Return the least value of the rows that are still there, infinite if there are none."""
    while entries:
        value, order, row = entries[0]
        if not row.holders:
            heappop(entries)
        elif row.value != value:
            heapreplace(entries, (row.value, order, row))
        else:
            return value
    return math.inf


AGGREGATES: Final = {
    "min": base.AggregateStrategies(Least, base.ByRange(base.Reads.NUMBER, Extremes, LatestValues, others=1)),
    "max": base.AggregateStrategies(
        Greatest,
        base.ByRange(base.Reads.NUMBER, partial(Extremes, greatest=True), LatestValues, others=-1),
    ),
}
