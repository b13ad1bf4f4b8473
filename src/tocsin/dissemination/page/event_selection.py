"""Which events a page tells: a few of each sort, in the order in which they were drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.views.changes import PointChanges
from tocsin.views.messages import Messages

Point = tuple[float, float]


class Sort(StrEnum):
    """What sort of change an event is."""

    IGNORABLE = "ignorable"  # no range can be concerned
    GOOD = "good"  # one message tells all whom it concerns
    BAD = "bad"  # it takes several
    UNHEARD = "unheard"  # some ranges would be concerned, but nobody has one
    SPIKE = "spike"  # a value that is below all others, or above them where maxima are asked for
    RETURN = "return"  # after a spike
    MOVE = "move"  # to another x
    COMES = "comes"
    GOES = "goes"


_SCRIPT: Final = (
    *(Sort.GOOD, Sort.IGNORABLE, Sort.BAD, Sort.UNHEARD, Sort.GOOD, Sort.SPIKE, Sort.RETURN, Sort.MOVE),
    *(Sort.BAD, Sort.COMES, Sort.GOOD, Sort.GOES, Sort.MOVE, Sort.IGNORABLE, Sort.BAD),
)
_FEW: Final = 8  # chapters, fewer than which are no story
_UP: Final = {"min": -1, "max": 1}  # which way a spike goes
_SHAPES: Final = frozenset({Sort.SPIKE, Sort.RETURN, Sort.MOVE, Sort.COMES, Sort.GOES})
_SEEN: Final = 0.06  # of all heights: a change of less is hard to see
_HEARD: Final = 0.02  # of all subscriptions: so many should hear of it


class ShownEvent(Struct, frozen=True):
    """A change of one row, whose number is its place among the rows, those that came later included."""

    row: int
    old: Point | None
    new: Point | None
    sort: Sort
    messages: Messages  # that a server makes of it


def choose(queries: RangeQueries, changes: PointChanges) -> list[ShownEvent]:
    """Return a dozen or so of the changes, in the order in which they come, so that each sort is there that occurs.

    Those that are left out are not made: a row that changes again begins where it was left. Changes that are large
    enough to be seen, and that some hear of, are taken, unless that leaves sorts out.
    """
    drawn = list(_drawn(list(zip(queries.x.tolist(), queries.y.tolist(), strict=True)), changes))
    least = _SEEN * float(np.ptp(queries.y)) if queries.rows else 0.0
    few = int(_HEARD * len(queries))
    best: list[ShownEvent] = []
    for limits in ((least, few), (least, 1), (0.0, 1)):
        chapters = _Story(queries, drawn, *limits).chapters
        if len({one.sort for one in chapters}) > len({one.sort for one in best}):
            best = chapters
    return best


class _Story:
    """Goes through what was drawn, and takes the next of each sort that is due; one that does not come is passed over."""

    def __init__(
        self, queries: RangeQueries, drawn: Sequence[tuple[int, Point | None]], least: float, heard: int
    ) -> None:
        self.chapters: list[ShownEvent] = []
        self._question = queries
        self._server = queries.new_server()
        self._rows: list[Point | None] = list(zip(queries.x.tolist(), queries.y.tolist(), strict=True))
        self._rows += [None] * (max((row for row, _ in drawn), default=-1) + 1 - len(self._rows))
        self._least, self._heard = least, heard
        place, before = 0, -1
        absent: set[Sort] = set()
        # Where there are few sorts, the script is told again.
        while before < len(self.chapters) < _FEW:
            before = len(self.chapters)
            for sort in _SCRIPT:
                if sort in absent:
                    continue
                # What follows a spike is its return, and nothing else.
                end = min(place + 1, len(drawn)) if sort == Sort.RETURN else len(drawn)
                found = next((at for at in range(place, end) if self._take(*drawn[at], sort)), None)
                if found is None:
                    absent.add(sort)
                else:
                    place = found + 1

    def _take(self, row: int, new: Point | None, wanted: Sort) -> bool:
        """Make a change, and tell whether it was of the wanted sort; if not, it is unmade."""
        old = self._rows[row]
        if old == new or (old is not None and new is not None and self._is_small(old, new)):
            return False
        shape = self._shape(row, new)
        if shape != (wanted if wanted in _SHAPES else None):
            return False
        messages = self._server.reformulate(one_change(old, new))
        heard = _heard(self._question, messages)
        sort = shape or _sort(len(messages), heard)
        if sort != wanted or (sort in (Sort.GOOD, Sort.BAD) and heard < self._heard):
            self._server.reformulate(one_change(new, old))
            return False
        self._rows[row] = new
        self.chapters.append(ShownEvent(row, old, new, sort, messages))
        return True

    def _shape(self, row: int, new: Point | None) -> Sort | None:
        """Return the sort of a change that shows in the rows alone, or None."""
        old = self._rows[row]
        if old is None:
            return Sort.COMES
        if new is None:
            return Sort.GOES
        if old[0] != new[0]:
            return Sort.MOVE
        if [one.row for one in self.chapters[-1:] if one.sort == Sort.SPIKE] == [row]:
            return Sort.RETURN
        up = _UP.get(self._question.kind)
        if up is None:
            return None
        others = [up * other[1] for at, other in enumerate(self._rows) if other is not None and at != row]
        is_spike = bool(others) and up * old[1] < max(others) < up * new[1]
        return Sort.SPIKE if is_spike else None

    def _is_small(self, old: Point, new: Point) -> bool:
        return old[0] == new[0] and abs(new[1] - old[1]) < self._least


def one_change(old: Point | None, new: Point | None) -> PointChanges:
    """Return a batch of one change."""
    ends = (*(old or (math.nan, math.nan)), *(new or (math.nan, math.nan)))
    return PointChanges(*(np.array([end]) for end in ends))


def _drawn(rows: list[Point | None], changes: PointChanges) -> Iterator[tuple[int, Point | None]]:
    """Return which row each change is of, and where it goes."""
    columns = (changes.old_x, changes.old_y, changes.new_x, changes.new_y)
    for old_x, old_y, new_x, new_y in zip(*(column.tolist() for column in columns), strict=True):
        new = None if math.isnan(new_x) else (new_x, new_y)
        if math.isnan(old_x):
            row = len(rows)
            rows.append(new)
        else:
            row = rows.index((old_x, old_y))
            rows[row] = new
        yield row, new


def _sort(messages: int, heard: int) -> Sort:
    """Return of what sort an update is: a server makes so many messages of it, and so many subscriptions hear them."""
    if not messages:
        return Sort.IGNORABLE
    if not heard:
        return Sort.UNHEARD
    return Sort.GOOD if messages == 1 else Sort.BAD


def _heard(queries: RangeQueries, messages: Messages) -> int:
    """Return how many subscriptions' ranges are within a message's rectangle."""
    lows, highs = queries.lows[:, None], queries.highs[:, None]
    within = (messages.outer_l < lows) & (lows <= messages.inner_l)
    within &= (messages.inner_r <= highs) & (highs < messages.outer_r)
    return int(np.count_nonzero(within.any(axis=1)))
