"""The events that a page shows: a few of each kind, in their order."""

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


class EventKind(StrEnum):
    """The kind of change that an event is."""

    IGNORABLE = "ignorable"  # no range can be affected
    GOOD = "good"  # one message suffices
    BAD = "bad"  # it takes several messages
    UNHEARD = "unheard"  # ranges would be affected, but no subscription has one
    SPIKE = "spike"  # a value below all others, or above them for max
    RETURN = "return"  # after a spike
    MOVE = "move"  # to another x
    COMES = "comes"
    GOES = "goes"


_ORDER: Final = "good ignorable bad unheard good spike return move bad comes good goes move ignorable bad"
_SCRIPT: Final = tuple(map(EventKind, _ORDER.split()))
_FEWEST: Final = 8  # events to show; with fewer kinds the script is repeated
_UP: Final = {"min": -1, "max": 1}  # which way a spike goes
_ROW_KINDS: Final = frozenset(
    {EventKind.SPIKE, EventKind.RETURN, EventKind.MOVE, EventKind.COMES, EventKind.GOES}
)
_VISIBLE: Final = 0.06  # of all heights: a smaller change is hard to see
_AFFECTED: Final = 0.02  # of all subscriptions: a change should affect as many


class ShownEvent(Struct, frozen=True):
    """A change of one row; rows are numbered from the initial ones on, in the order in which they came."""

    row: int
    old: Point | None
    new: Point | None
    kind: EventKind
    messages: Messages  # that a server makes of it


def choose_events(queries: RangeQueries, changes: PointChanges) -> list[ShownEvent]:
    """Return a dozen or so of the changes, in their order, with every kind that occurs.

    The others are not applied: a row that changes again starts from where it was. Changes that are large enough to see
    and affect some subscriptions are preferred, unless that leaves kinds out.
    """
    candidates = list(_row_changes(list(zip(queries.x.tolist(), queries.y.tolist(), strict=True)), changes))
    least = _VISIBLE * float(np.ptp(queries.y)) if queries.rows else 0.0
    few = int(_AFFECTED * len(queries))
    best: list[ShownEvent] = []
    for limits in ((least, few), (least, 1), (0.0, 1)):
        events = _Selection(queries, candidates, *limits).events
        if len({one.kind for one in events}) > len({one.kind for one in best}):
            best = events
    return best


class _Selection:
    """Walks through the candidates, and takes the next one of each kind in the script; kinds that do not occur are skipped."""

    def __init__(
        self,
        queries: RangeQueries,
        candidates: Sequence[tuple[int, Point | None]],
        least: float,
        affected: int,
    ) -> None:
        self.events: list[ShownEvent] = []
        self._queries = queries
        self._server = queries.new_server()
        self._rows: list[Point | None] = list(zip(queries.x.tolist(), queries.y.tolist(), strict=True))
        self._rows += [None] * (max((row for row, _ in candidates), default=-1) + 1 - len(self._rows))
        self._least, self._affected = least, affected
        position, before = 0, -1
        absent: set[EventKind] = set()
        while before < len(self.events) < _FEWEST:
            before = len(self.events)
            for kind in _SCRIPT:
                if kind in absent:
                    continue
                # A spike is followed by its return only.
                end = min(position + 1, len(candidates)) if kind == EventKind.RETURN else len(candidates)
                found = next((at for at in range(position, end) if self._take(*candidates[at], kind)), None)
                if found is None:
                    absent.add(kind)
                else:
                    position = found + 1

    def _take(self, row: int, new: Point | None, wanted: EventKind) -> bool:
        """Apply a change if it is of the wanted kind, and return whether it was."""
        old = self._rows[row]
        if old == new or (old is not None and new is not None and self._is_small(old, new)):
            return False
        row_kind = self._row_kind(row, new)
        if row_kind != (wanted if wanted in _ROW_KINDS else None):
            return False
        messages = self._server.reformulate(one_change(old, new))
        affected = _count_affected(self._queries, messages)
        kind = row_kind or _message_kind(len(messages), affected)
        if kind != wanted or (kind in (EventKind.GOOD, EventKind.BAD) and affected < self._affected):
            self._server.reformulate(one_change(new, old))
            return False
        self._rows[row] = new
        self.events.append(ShownEvent(row, old, new, kind, messages))
        return True

    def _row_kind(self, row: int, new: Point | None) -> EventKind | None:
        """Return the kind of a change that the rows alone determine, or None."""
        old = self._rows[row]
        if old is None:
            return EventKind.COMES
        if new is None:
            return EventKind.GOES
        if old[0] != new[0]:
            return EventKind.MOVE
        if [one.row for one in self.events[-1:] if one.kind == EventKind.SPIKE] == [row]:
            return EventKind.RETURN
        up = _UP.get(self._queries.kind)
        if up is None:
            return None
        others = [up * other[1] for at, other in enumerate(self._rows) if other is not None and at != row]
        is_spike = bool(others) and up * old[1] < max(others) < up * new[1]
        return EventKind.SPIKE if is_spike else None

    def _is_small(self, old: Point, new: Point) -> bool:
        return old[0] == new[0] and abs(new[1] - old[1]) < self._least


def one_change(old: Point | None, new: Point | None) -> PointChanges:
    """Return a batch of one change."""
    ends = (*(old or (math.nan, math.nan)), *(new or (math.nan, math.nan)))
    return PointChanges(*(np.array([end]) for end in ends))


def _row_changes(rows: list[Point | None], changes: PointChanges) -> Iterator[tuple[int, Point | None]]:
    """Yield the row of each change, and its new point."""
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


def _message_kind(messages: int, affected: int) -> EventKind:
    """Return the kind of an update with so many messages and affected subscriptions."""
    if not messages:
        return EventKind.IGNORABLE
    if not affected:
        return EventKind.UNHEARD
    return EventKind.GOOD if messages == 1 else EventKind.BAD


def _count_affected(queries: RangeQueries, messages: Messages) -> int:
    """Return how many subscriptions are in some message's rectangle."""
    lows, highs = queries.lows[:, None], queries.highs[:, None]
    within = (messages.outer_l < lows) & (lows <= messages.inner_l)
    within &= (messages.inner_r <= highs) & (highs < messages.outer_r)
    return int(np.count_nonzero(within.any(axis=1)))
