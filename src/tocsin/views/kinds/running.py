"""What counts, sums and means share: each change tells what goes and what comes, and each subscriber adds it up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import IdArray, Matches
from tocsin.structures.growth import bytes_of, roomier
from tocsin.structures.sorted_blocks import PairChanges, new_sorted_blocks, of_pairs, with_changes
from tocsin.structures.tallies import Window, placed, window_of
from tocsin.views._kernels.range_tallies import refresh_tallies, tally_ranges
from tocsin.views._kernels.running import (
    MOST,
    NUMBER,
    Comings,
    Heard,
    Outcome,
    reformulate_running,
    tell_running,
    values_of,
)
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.kind import Answers, Present, Reformulator, absent
from tocsin.views.messages import Messages

_NO_WINDOW = Window(0, 0)


class RunningReformulator(Reformulator):
    """Points in order of x, and when it is asked for their exact sums, those of each block.

    A change becomes up to three messages, for ranges with its old x alone, its new x alone, and both. What subscribers
    begin with is found in the time of two searches, once the blocks that changed since the last time are summed.
    """

    def __init__(self, rule: int) -> None:
        self._rule = rule
        self._forget()

    def _forget(self) -> None:
        self._points = new_sorted_blocks()
        self._window = _NO_WINDOW
        self._tallies: NDArray[np.int64] = np.zeros((0, 1), dtype=np.int64)  # by block
        self._sums: NDArray[np.int64] = np.zeros((1, 1), dtype=np.int64)  # of all blocks before an entry
        self._is_current = False

    def load(self, x: Floats, y: Floats) -> None:
        """Take all points at once, in the place of those that were held; none is NaN."""
        self._forget()
        order = np.lexsort((y, x))
        self._points = of_pairs(_floats(x[order]), _floats(y[order]))
        self._know(y)

    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes, and return a message for each rectangle in which something goes or comes.

        Its payload is `old_y` and `new_y`, NaN for none.
        """
        pairs = PairChanges(*map(_floats, (changes.old_x, changes.old_y, changes.new_x, changes.new_y)))
        self._is_current = False
        self._know(pairs.new_second)
        reached = 0
        while reached < len(changes):
            self._points, reached = with_changes(self._points, pairs, reached)
            if reached < 0:
                raise absent(changes, -1 - reached)
        room = MOST * len(changes)
        out = Comings(np.empty(room, dtype=np.int64), *(np.empty(room) for _ in Comings._fields[1:]))
        count = reformulate_running(pairs, self._rule, out)
        return Messages(
            out.change[:count],
            out.inner_l[:count],
            out.inner_r[:count],
            out.outer_l[:count],
            out.outer_r[:count],
            {"old_y": out.old_y[:count], "new_y": out.new_y[:count]},
        )

    def _know(self, y: Floats) -> None:
        """Have limbs for the sums of these numbers, too."""
        if self._rule != NUMBER:
            window = self._window.union(window_of(_floats(y)))
            if window != self._window:
                self._window = window
                self._tallies = np.zeros((0, 1 + window.limbs), dtype=np.int64)
                self._points.stale[:] = True

    def present(self, lows: Floats, highs: Floats) -> Present:
        """Return the tally of each range; `bottom` is that of its limbs."""
        bottom, limbs = self._window
        if not self._is_current:
            self._refresh()
        found = np.empty((len(lows), 1 + limbs), dtype=np.int64)
        tally_ranges(self._points, self._sums, bottom, _floats(lows), _floats(highs), found)
        return {"tally": found, "bottom": np.full(len(lows), bottom)}

    def _refresh(self) -> None:
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


class RunningAnswers(Answers):
    """A tally for each subscription, by place: how many rows are within its range, and their exact sum.

    All have the same window, which grows with the numbers that come.
    """

    def __init__(self, rule: int) -> None:
        self._rule = rule
        self._window = _NO_WINDOW
        self._rows: NDArray[np.int64] = np.zeros((0, 1), dtype=np.int64)

    def begin(self, places: IdArray, present: Present) -> None:
        """Let subscriptions begin with the tallies of their ranges."""
        if not len(places):
            return
        tally = present["tally"]
        window = Window(int(present["bottom"][0]), tally.shape[1] - 1)
        self._widen(window)
        needed = int(places.max()) + 1
        if needed > len(self._rows):
            rows = np.zeros((roomier(len(self._rows), needed), 1 + self._window.limbs), dtype=np.int64)
            rows[: len(self._rows)] = self._rows
            self._rows = rows
        self._rows[places] = placed(tally, window, self._window)

    def _widen(self, window: Window) -> None:
        window = self._window.union(window)
        self._rows = placed(self._rows, self._window, window)
        self._window = window

    def end(self, places: IdArray) -> None:
        """Do nothing: a tally has its row until the place is given again."""

    def tell(self, messages: Messages, found: Matches) -> AnswerChanges:
        """Return the answers that change for those that hear each message."""
        old_y, new_y = messages.payload["old_y"], messages.payload["new_y"]
        if self._rule != NUMBER and len(found.ids):
            self._widen(window_of(old_y, new_y))
        room = len(found.ids)
        out = Outcome(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room))
        heard = Heard(messages.change, old_y, new_y, found.offsets, found.ids)
        difference = np.zeros((1, self._rows.shape[1]), dtype=np.int64)
        count = tell_running(self._rows, self._window.bottom, self._rule, heard, difference, out)
        return AnswerChanges(out.change[:count], out.places[:count], out.old[:count], out.new[:count])

    def answer(self, place: int) -> float | None:
        """Return a subscription's count, sum or mean; null if it is of no row."""
        value = np.empty(1)
        values_of(self._rows[place : place + 1], self._window.bottom, self._rule, value)
        return None if np.isnan(value[0]) else float(value[0])

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tallies."""
        return self._rows.nbytes


def _floats(column: Floats) -> Floats:
    return np.ascontiguousarray(column, dtype=np.float64)
