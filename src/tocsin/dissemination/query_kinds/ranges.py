"""Aggregates over the points within a range: min, max, count, sum, avg, distinct."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.byte_model import ROW_FIELDS
from tocsin.dissemination.query_kinds.base import Queries, RangeEnds, Relaxed, check_ranges
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.aggregates.base import Answers, Reads, Reformulator
from tocsin.views.aggregates.registry import RANGE_AGGREGATES, range_aggregate
from tocsin.views.answer_changes import AnswerChanges, number_answer
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.messages import Messages

_RECTANGLE: Final = 4
_CODES: Final = 1 << 20  # codes of values are below: nodes have a slot for each up to their greatest


class RangeQueries(Queries):
    """A kind of view over a range of one attribute; rows are points (x, y), changes are `PointChanges`."""

    def __init__(self, kind: str, x: Floats, y: Floats, lows: Floats, highs: Floats) -> None:
        if kind not in RANGE_AGGREGATES:
            known = ", ".join(RANGE_AGGREGATES)
            raise TocsinError(f"there is no kind `{kind}` of ranges; there are: {known}")
        check_ranges(lows, highs)
        self.kind = kind
        self.x, self.y = x, y
        self.lows, self.highs = lows, highs
        self._kind = range_aggregate(kind)
        self._check_rows()
        self._order = np.argsort(x, kind="stable")
        self._sorted = x[self._order]

    @property
    def rows(self) -> int:
        """Return how many initial points there are."""
        return len(self.x)

    def check(self, changes: PointChanges) -> None:
        """Raise `TocsinError` at a change whose old or new point is neither a point nor NaN."""
        for when, x, y in (("old", changes.old_x, changes.old_y), ("new", changes.new_x, changes.new_y)):
            is_present = ~np.isnan(x) | ~np.isnan(y)
            if len(wrong := np.flatnonzero(is_present & ~self._is_point(x, y))):
                at = int(wrong[0])
                raise TocsinError(
                    f"change {at}: its {when} point ({x[at]}, {y[at]}) is not valid; {self._needs}, or both are NaN"
                )

    def _check_rows(self) -> None:
        """Raise `TocsinError` at a row that is no point: strategies would answer differently."""
        if len(self.x) != len(self.y):
            raise TocsinError(f"{len(self.x)} x and {len(self.y)} y; give one of each for every row")
        if len(wrong := np.flatnonzero(~self._is_point(self.x, self.y))):
            at = int(wrong[0])
            raise TocsinError(
                f"row {at}: ({self.x[at]}, {self.y[at]}) is no point; {self._needs}, or leave the row out"
            )

    def _is_point(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        is_point = np.isfinite(x) & np.isfinite(y)
        if self._kind.reads is Reads.VALUE:
            is_point &= (y >= 0) & (y == np.floor(y)) & (y < _CODES)
        return is_point

    @property
    def _needs(self) -> str:
        if self._kind.reads is Reads.VALUE:
            return f"x is finite, and y the code of a value, a whole number from 0 to {_CODES - 1:,}"
        return "both are finite"

    def new_server(self) -> Reformulator:
        """Return a server with all points."""
        server = self._kind.reformulator()
        server.load(self.x, self.y)
        return server

    def empty_answers(self) -> Answers:
        """Return the subscribers' side before any has begun."""
        return self._kind.answers()

    def answer(self, answers: Answers, number: int) -> Answer:
        """Return a subscription's answer; distinct values as sorted codes."""
        found = answers.answer(number)
        return number_answer(found) if isinstance(found, float) else found

    def relaxed(self, changes: PointChanges) -> Relaxed:
        """Return the quadrants of ranges that contain a change's old x, or its new x if that differs."""
        is_new = (changes.new_x != changes.old_x) & ~np.isnan(changes.new_x)
        was = ~np.isnan(changes.old_x)
        positions = np.arange(len(changes))
        change = np.concatenate([positions[was], positions[is_new]])
        x = np.concatenate([changes.old_x[was], changes.new_x[is_new]])
        order = np.argsort(change, kind="stable")
        change, x = change[order], x[order]
        infinite = np.full(len(x), np.inf)
        return Relaxed(Messages(change, x, x, -infinite, infinite), ROW_FIELDS)

    def new_replica(self, low: float, high: float) -> Reformulator:
        """Return a reformulator with the points within [low, high]."""
        begin, end = np.searchsorted(self._sorted, [low, np.nextafter(high, np.inf)])
        within = self._order[begin:end]
        replica = self._kind.reformulator()
        replica.load(self.x[within], self.y[within])
        return replica

    def replica_changes(
        self, changes: PointChanges, positions: IdArray, low: float, high: float
    ) -> tuple[PointChanges, IdArray]:
        """Return the changes that a replica of [low, high] sees, and their positions."""
        old_x, new_x = changes.old_x[positions], changes.new_x[positions]
        was, will = (old_x >= low) & (old_x <= high), (new_x >= low) & (new_x <= high)
        seen = was | will
        positions, was, will = positions[seen], was[seen], will[seen]
        return (
            PointChanges(
                np.where(was, old_x[seen], np.nan),
                np.where(was, changes.old_y[positions], np.nan),
                np.where(will, new_x[seen], np.nan),
                np.where(will, changes.new_y[positions], np.nan),
            ),
            positions,
        )

    def stored_rows(self, ends: RangeEnds) -> int:
        """Return the sum over ranges of the initial points in each."""
        return ends.count_containing(self.x)

    def gained_rows(self, changes: PointChanges, ends: RangeEnds) -> int:
        """Return how many more points ranges contain after changes."""
        return ends.count_containing(changes.new_x) - ends.count_containing(changes.old_x)

    def fields(self, messages: Messages) -> IdArray:
        """Return the fields of a rectangle and the new answer; of sums x, old and new y if the rectangle is x's quadrant.

        Distinct values have a sign, or are the one that goes and the one that comes.
        """
        if "value" in messages.payload:
            return np.full(len(messages), _RECTANGLE + 1, dtype=np.int64)
        if "removed" in messages.payload:
            both = (messages.payload["removed"] >= 0) & (messages.payload["added"] >= 0)
            return np.where(both, _RECTANGLE + 2, _RECTANGLE + 1)
        is_quadrant = np.isinf(messages.outer_l) & np.isinf(messages.outer_r)
        return np.where(is_quadrant & (messages.inner_l == messages.inner_r), 3, _RECTANGLE + 2)

    def notification_fields(self, changed: AnswerChanges) -> IdArray:
        """Return the fields of a subscription and its new answer; a distinct value has a sign, or goes as another comes."""
        return np.full(len(changed), 2 if changed.removed is None else 3, dtype=np.int64)

    def answer_fields(self, answers: Answers) -> int:
        """Return a field for each number, and for each distinct value."""
        if self._kind.reads is not Reads.VALUE:
            return len(self)
        found = (answers.answer(number) for number in range(len(self)))
        return sum(len(one) for one in found if isinstance(one, tuple))
