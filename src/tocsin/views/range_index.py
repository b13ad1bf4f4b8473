"""The index of subscriptions by their range, in which messages find the ranges they concern.

A range [x1, x2] is a point in the plane, and a message asks for the points in a rectangle (database/network interface, §4).
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from tocsin.matching import ConjunctionBatch, ConjunctionGroup, IdArray, Matches, create_matcher
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Attribute, Parameter, literal
from tocsin.structures.array_types import Bools
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Rectangles
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

TYPE: Final = "$type"  # the attribute that names the views a message is for
_ENDS: Final = (
    ("outer_l", Operator.LT, "x1"),
    ("inner_l", Operator.GE, "x1"),
    ("inner_r", Operator.LE, "x2"),
    ("outer_r", Operator.GT, "x2"),
)


class RangeIndex(Protocol):
    """Ranges by slot, and for each message the slots of the ranges it concerns."""

    def add(self, slots: IdArray, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, finite, low <= high; no slot is in use already."""

    def remove(self, slots: IdArray) -> None:
        """Remove ranges; slots that are not in use are passed over."""

    def match(self, messages: Messages) -> Matches:
        """Return, per message, the slots of the ranges it concerns, in any order and without repeats."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index."""


def new_range_index(matcher: str | None, type: str) -> RangeIndex:  # noqa: A002 - the paper's word
    """Return an empty index for messages of one type: in the registered matcher of that name, or in a point index.

    Raises `MatcherError` if there is no such matcher.
    """
    return PointRangeIndex() if matcher is None else MatcherRangeIndex(matcher, type)


class PointRangeIndex:
    """Ranges in one tree of a point index."""

    def __init__(self) -> None:
        self._index = PointIndex()
        self._roots = self._index.plant(1)  # the root of its tree, once for each message of the largest batch

    def __len__(self) -> int:
        return len(self._index)

    def add(self, slots: IdArray, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, finite, low <= high; no slot is in use already."""
        self._index.add(int(self._roots[0]), slots, lows, highs)

    def remove(self, slots: IdArray) -> None:
        """Remove ranges; slots that are not in use are passed over."""
        self._index.remove(slots)

    def match(self, messages: Messages) -> Matches:
        """Return, per message, the slots of the ranges it concerns, in any order and without repeats."""
        slots, offsets = self._index.find(self._rectangles(messages))
        return Matches(offsets, slots)

    def any(self, messages: Messages) -> Bools:
        """Tell which messages concern a range."""
        return self._index.any(self._rectangles(messages))

    def _rectangles(self, messages: Messages) -> Rectangles:
        count = len(messages.change)
        if count > len(self._roots):
            self._roots = np.full(count, self._roots[0])
        return Rectangles(
            self._roots[:count], messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r
        )

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index."""
        return self._index.nbytes


class MatcherRangeIndex:
    """Ranges as plain subscriptions to messages of one type, in a new matcher of a registered name.

    A range [x1, x2] is `$type = … and outer_l < x1 and inner_l >= x1 and inner_r <= x2 and outer_r > x2`.
    """

    def __init__(self, name: str, type: str) -> None:  # noqa: A002 - the paper's word
        self.matcher = create_matcher(name)
        self._type = type
        self._shape: Conjunction = (
            Predicate(Attribute(TYPE), Operator.EQ, (literal(type),)),
            *(Predicate(Attribute(path), operator, (Parameter(end),)) for path, operator, end in _ENDS),
        )

    def add(self, slots: IdArray, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, finite, low <= high; no slot is in use already."""
        group = ConjunctionGroup(self._shape, slots, {"x1": lows, "x2": highs})
        self.matcher.add(ConjunctionBatch((group,)))

    def remove(self, slots: IdArray) -> None:
        """Remove ranges; slots that are not in use are passed over."""
        self.matcher.remove(slots)

    def match(self, messages: Messages) -> Matches:
        """Return, per message, the slots of the ranges it concerns, ascending."""
        types = pa.DictionaryArray.from_arrays(np.zeros(len(messages), dtype=np.int8), [self._type])
        ends = {path: pa.array(getattr(messages, path)) for path, _, _ in _ENDS}
        return self.matcher.match(arrow_events(pa.table({TYPE: types, **ends})))

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index."""
        return self.matcher.stats().bytes
