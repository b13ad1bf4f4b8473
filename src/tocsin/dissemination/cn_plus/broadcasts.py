"""Changes on their way through the network, batch by batch, to subscriptions that keep their minimum alone."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.state import SpreadTrees
from tocsin.dissemination.cn_plus._kernels.broadcasts import (
    ABSENT,
    ASKED,
    DONE,
    ENTRY,
    LINES,
    NO_ROOM_FOR_ROWS,
    NOT_BEGUN,
    PASSES,
    TOLD,
    Asked,
    AskLines,
    Heard,
    ToldLines,
    pass_changes,
)
from tocsin.dissemination.cn_plus.minimum_rows import kept_by
from tocsin.dissemination.cn_plus.state import COMES, CUT, GOES, Passes, Passing, Reached
from tocsin.dissemination.ds_cn._kernels.scans import Tuples
from tocsin.dissemination.ds_cn.rows import filled, heights_of, moves_of, rows_of, with_room
from tocsin.dissemination.ds_cn.state import Moves
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.matching import IdArray
from tocsin.views.changes import PointChanges
from tocsin.views.kinds.kind import absent
from tocsin.views.messages import Messages


class Passed(Struct, frozen=True):
    """What came of some changes: how far each pass over a quadrant got, who asked, and whose minimum is another.

    Lines are in memory that the next changes are written to.
    """

    changes: IdArray  # of each pass
    is_cut: NDArray[np.bool_]  # by pass: a row that falls, and has a tag
    spread: SpreadTrees  # over the whole quadrant of each pass
    is_reached: NDArray[np.bool_]  # by entry of the spread
    told: ToldLines
    asked: Asked
    lines: AskLines


class Minima:
    """The minimum row of each subscription, and all rows, which the owners on the diagonal hold."""

    def __init__(self, can: Can, queries: RangeQueries, gateways: IdArray) -> None:
        self._can = can
        self._question = queries
        x, height = queries.x + 0.0, heights_of(queries.kind, queries.y)
        self._rows = rows_of(can, x, height)
        self.numbers = np.argsort(gateways, kind="stable")  # the subscriptions, by zone
        self._places = np.empty(len(gateways), dtype=np.int64)
        self._places[self.numbers] = np.arange(len(gateways))
        lows, highs = queries.lows[self.numbers], queries.highs[self.numbers]
        self._kept = kept_by(gateways[self.numbers], len(can), lows, highs, (x, height))
        self._heard = Heard(_told(1 << 16), _asked(1 << 12), _lines(1 << 14), _stairs(len(self._rows.x)))

    @property
    def rows(self) -> int:
        """Return how many rows there are."""
        return int(self._rows.counts.sum())

    def height(self, number: int) -> float:
        """Return the height of a subscription's minimum row, inf if there is none."""
        return float(self._kept.height[self._places[number]])

    def follow(self, changes: PointChanges) -> Passed:
        """Make changes one after another, and return what came of them.

        Raises `PointError` at one that begins at a row that is not held; those before it are made.
        """
        moves = moves_of(self._can, self._question.kind, changes)
        quadrants = self._question.relaxed(changes).messages
        spread = self._can.spread(quadrants)
        passing = Passing(moves, _passes(quadrants, moves), spread, self._can.zones)
        entries = len(spread.zones)
        reached = Reached(
            np.zeros(entries, dtype=np.bool_),
            np.empty(entries),
            np.empty(entries),
            np.zeros(len(self._can), dtype=np.int64),
        )
        progress = np.array([0, NOT_BEGUN, 0, 0, 0])
        while (
            ended := pass_changes(self._rows, self._kept, passing, progress, reached, self._heard)
        ) != DONE:
            if ended == ABSENT:
                raise absent(changes, int(quadrants.change[progress[PASSES]]))
            if ended == NO_ROOM_FOR_ROWS:
                self._rows = with_room(self._rows)
                self._heard = self._heard._replace(stairs=_stairs(len(self._rows.x)))
            else:
                self._grow(int(spread.zones[progress[ENTRY]]), progress)
        heard = self._heard
        return Passed(
            quadrants.change,
            passing.passes.sort == CUT,
            spread,
            reached.is_reached,
            ToldLines._make(column[: progress[TOLD]] for column in heard.told),
            Asked._make(column[: progress[ASKED]] for column in heard.asked),
            AskLines._make(column[: progress[LINES]] for column in heard.lines),
        )

    def _grow(self, zone: int, progress: IdArray) -> None:
        """Give room for all that one zone can make of a pass, and twice what there was."""
        heard, starts = self._heard, self._kept.starts
        answers = int(progress[TOLD] + starts[zone + 1] - starts[zone])
        walks = int(progress[LINES]) + 2 * len(self._rows.counts) + 1
        told, asked, lines = heard.told, heard.asked, heard.lines
        if len(told.change) < answers:
            told = filled(_told(2 * answers), told)
        if len(asked.change) <= progress[ASKED]:
            asked = filled(_asked(2 * len(asked.change)), asked)
        if len(lines.asked) < walks:
            lines = filled(_lines(2 * walks), lines)
        self._heard = Heard(told, asked, lines, heard.stairs)


def _passes(quadrants: Messages, moves: Moves) -> Passes:
    """Return what each quadrant hears of."""
    change, x = quadrants.change, quadrants.inner_l + 0.0
    old, new = moves.old_height[change], moves.new_height[change]
    was, will = x == moves.old_x[change], x == moves.new_x[change]
    goes = was & ~(will & (new <= old))
    sort = np.where(goes, GOES, np.where(was & (new < old), CUT, COMES))
    return Passes(change, x, np.where(goes, old, new), sort.astype(np.int64))


def _told(room: int) -> ToldLines:
    return ToldLines._make([*np.empty((2, room), dtype=np.int64), *np.empty((2, room))])


def _asked(room: int) -> Asked:
    numbers = np.empty((3, room), dtype=np.int64)
    return Asked(numbers[0], np.empty(room), numbers[1], numbers[2])


def _lines(room: int) -> AskLines:
    return AskLines._make([*np.empty((5, room), dtype=np.int64), np.empty(room, dtype=np.bool_)])


def _stairs(room: int) -> Tuples:
    return Tuples(np.empty(room, dtype=np.int64), np.empty(room), np.empty(room))
