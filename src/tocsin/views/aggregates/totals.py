"""`sum` and `avg`, exact: an answer depends on the rows alone, not on the changes that led to them.

By range (§5): a change becomes up to three messages with the number that leaves and the one that enters, and subscriptions
add them to a tally of limbs. `count` is kept in the same way. By row: each subscription adds up whole numbers of 2**-1074.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from tocsin.language.semantics import value_of
from tocsin.matching import IdArray, Matches
from tocsin.structures.array_types import Int64s
from tocsin.structures.growth import bytes_of, roomier
from tocsin.structures.sorted_blocks import new_sorted_blocks, of_pairs, with_changes
from tocsin.structures.tallies import Window, widen_tallies, window_of
from tocsin.views._kernels.message_room import new_message_room
from tocsin.views._kernels.totals import (
    MOST,
    ChangedTotals,
    MatchedMessages,
    Total,
    TotalMessages,
    apply_totals,
    reformulate_totals,
    refresh_tallies,
    tally_ranges,
    values_of,
)
from tocsin.views.aggregates import base
from tocsin.views.answer_changes import AnswerChanges, ChangeLog, number_answer
from tocsin.views.changes import Floats, PointChanges, Row
from tocsin.views.messages import Messages
from tocsin.views.numbers import Number, finite, parts, rounded

_NO_WINDOW: Final = Window(0, 0)

# by range


class TotalReformulator(base.Reformulator):
    """Points in order of x, and the exact sum of each block of them, which is computed when subscriptions begin.

    A change becomes up to three messages, for ranges with its old x alone, its new x alone, and both. A first answer costs
    two searches, once the blocks that changed since the last time are summed.
    """

    def __init__(self, total: Total) -> None:
        self._total = int(total)  # kernels take plain integers
        self._forget()

    def _forget(self) -> None:
        self._points = new_sorted_blocks()
        self._window = _NO_WINDOW
        self._tallies: Int64s = np.zeros((0, 1), dtype=np.int64)  # by block
        self._sums: Int64s = np.zeros((1, 1), dtype=np.int64)  # of all blocks before an entry
        self._is_current = False

    def load(self, x: Floats, y: Floats) -> None:
        """Replace all points; none is NaN."""
        self._forget()
        order = np.lexsort((y, x))
        self._points = of_pairs(x[order], y[order])
        self._widen_window(y)

    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes, and return a message for each rectangle in which something goes or comes.

        Its payload is `old_y` and `new_y`, NaN for none.
        """
        pairs = np.array(astuple(changes), dtype=np.float64)
        self._is_current = False
        self._widen_window(pairs[3])
        reached = 0
        while reached < len(changes):
            self._points, reached = with_changes(self._points, pairs, reached)
            if reached < 0:
                raise base.missing_point_error(changes, -1 - reached)
        room = MOST * len(changes)
        out = TotalMessages(new_message_room(room), np.empty(room), np.empty(room))
        count = reformulate_totals(pairs, self._total, out)
        return Messages.of(out.room, count, old_y=out.old_y, new_y=out.new_y)

    def _widen_window(self, y: Floats) -> None:
        """Widen the window, so that the sums of these numbers fit."""
        if self._total != Total.COUNT:
            window = self._window.union(window_of(base.floats(y)))
            if window != self._window:
                self._window = window
                self._tallies = np.zeros((0, 1 + window.limbs), dtype=np.int64)
                self._points.stale[:] = True

    def present(self, lows: Floats, highs: Floats) -> base.Present:
        """Return the tally of each range; `bottom` is that of its limbs."""
        bottom, limbs = self._window
        if not self._is_current:
            self._refresh()
        found = np.empty((len(lows), 1 + limbs), dtype=np.int64)
        tally_ranges(self._points, self._sums, bottom, base.floats(lows), base.floats(highs), found)
        return {"tally": found, "bottom": np.full(len(lows), bottom)}

    def _refresh(self) -> None:
        """Tally the blocks that changed, and sum the tallies of all blocks before each."""
        blocks, width = len(self._points.block), 1 + self._window.limbs
        if len(self._tallies) < blocks:
            before, self._tallies = self._tallies, np.zeros((blocks, width), dtype=np.int64)
            self._tallies[: len(before)] = before
        if len(self._sums) <= blocks or self._sums.shape[1] != width:
            self._sums = np.zeros((blocks + 1, width), dtype=np.int64)
        refresh_tallies(self._points, self._tallies, self._sums, self._window.bottom)
        self._is_current = True

    @property
    def nbytes(self) -> int:
        """Return the bytes of the points and of the tallies of their blocks."""
        return bytes_of(self._points) + self._tallies.nbytes + self._sums.nbytes


class TotalAnswers(base.Answers):
    """A tally for each subscription, by slot: the number of rows within its range, and their exact sum.

    All have the same window, which grows with the numbers.
    """

    def __init__(self, total: Total) -> None:
        self._total = int(total)
        self._window = _NO_WINDOW
        self._rows: Int64s = np.zeros((0, 1), dtype=np.int64)

    def begin(self, slots: IdArray, present: base.Present) -> None:
        """Add subscriptions with the tallies of their ranges."""
        if not len(slots):
            return
        tally = present["tally"]
        window = Window(int(present["bottom"][0]), tally.shape[1] - 1)
        self._widen(window)
        needed = int(slots.max()) + 1
        if needed > len(self._rows):
            rows = np.zeros((roomier(len(self._rows), needed), 1 + self._window.limbs), dtype=np.int64)
            rows[: len(self._rows)] = self._rows
            self._rows = rows
        self._rows[slots] = widen_tallies(tally, window, self._window)

    def _widen(self, window: Window) -> None:
        window = self._window.union(window)
        self._rows = widen_tallies(self._rows, self._window, window)
        self._window = window

    def end(self, slots: IdArray) -> None:
        """Do nothing: the next subscription in a slot overwrites its tally."""

    def apply(self, messages: Messages, matches: Matches) -> AnswerChanges:
        """Add each message to the tallies that match it, and return the answers that change."""
        old_y, new_y = messages.payload["old_y"], messages.payload["new_y"]
        if self._total != Total.COUNT and len(matches.ids):
            self._widen(window_of(old_y, new_y))
        room = len(matches.ids)
        out = ChangedTotals(
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room)
        )
        matched = MatchedMessages(messages.change, old_y, new_y, matches.offsets, matches.ids)
        difference = np.zeros((1, self._rows.shape[1]), dtype=np.int64)
        count = apply_totals(self._rows, self._window.bottom, self._total, matched, difference, out)
        return AnswerChanges(out.change[:count], out.slots[:count], out.old[:count], out.new[:count])

    def answer(self, slot: int) -> float | None:
        """Return a subscription's count, sum or mean; null if it is of no row."""
        value = np.empty(1)
        values_of(self._rows[slot : slot + 1], self._window.bottom, self._total, value)
        return None if np.isnan(value[0]) else float(value[0])

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tallies."""
        return self._rows.nbytes


def totals_by_range(
    total: Total, reads: base.Reads = base.Reads.NUMBER, of_nothing: int | None = None
) -> base.ByRange:
    """Return how a count, sum or mean is kept by range."""
    return base.ByRange(reads, lambda: TotalReformulator(total), lambda: TotalAnswers(total), of_nothing)


# by row


class _Sum(Struct):
    """The sum of one subscription's numbers in parts, how many there are, and the last answer."""

    count: int = 0
    parts: int = 0
    answer: Number | None = None


class RowSum(base.RowAggregate[Number, _Sum]):
    """The sum, rounded once."""

    new_state = _Sum

    def read(self, row: Row) -> Number | None:
        """Return the aggregated number."""
        assert self.compiled.y is not None  # noqa: S101 - the language has no other
        return finite(value_of(self.compiled.y, row))

    def apply_row(self, row_key: base.RowKey, value: Number, numbers: Collection[int], step: int) -> None:  # noqa: ARG002 - any row
        """Add a row's number to sums, or subtract it."""
        amount = step * parts(value)
        for number in numbers:
            one = self.states[number]
            one.count += step
            one.parts += amount
        self.touched.update(dict.fromkeys(numbers))

    def log_changes(self, row: int, log: ChangeLog) -> None:
        """Log the sums that changed."""
        for number in sorted(self.touched):
            one = self.states[number]
            new = number_answer(self._of(rounded(one.parts), one.count)) if one.count else None
            if new != one.answer:
                old, one.answer = one.answer, new
                log.add(row, number, old, new)
        self.touched.clear()

    def _of(self, total: float, _count: int) -> float:
        """Return the answer of a sum over some rows."""
        return total

    def answer(self, number: int) -> Number | None:
        """Return the last answer; None if there is no number."""
        return self.states[number].answer

    @property
    def nbytes(self) -> int:
        """Return the bytes of the sums."""
        each = sum(sys.getsizeof(one) + sys.getsizeof(one.parts) for one in self.states.values())
        return sys.getsizeof(self.states) + each


class RowMean(RowSum):
    """The rounded sum, divided by the count."""

    def _of(self, total: float, count: int) -> float:
        return total / count


AGGREGATES: Final = {
    "sum": base.AggregateStrategies(RowSum, totals_by_range(Total.SUM)),
    "avg": base.AggregateStrategies(RowMean, totals_by_range(Total.MEAN)),
}
