"""Ranges as plain subscriptions to messages, in any matcher: reformulated, a view needs no more than that."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from tocsin.matching import ConjunctionBatch, ConjunctionGroup, IdArray, Matches, create_matcher
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Attribute, Parameter, literal
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

TYPE: Final = "$type"  # the attribute that tells which views a message is for
_ENDS: Final = (
    ("outer_l", Operator.LT, "x1"),
    ("inner_l", Operator.GE, "x1"),
    ("inner_r", Operator.LE, "x2"),
    ("outer_r", Operator.GT, "x2"),
)


class MatcherListeners:
    """Listeners to messages of one type, in a new matcher of a registered name.

    A range [x1, x2] is `$type = … and outer_l < x1 and inner_l >= x1 and inner_r <= x2 and outer_r > x2`.
    """

    def __init__(self, name: str, type: str) -> None:  # noqa: A002 - the paper's word
        self.matcher = create_matcher(name)
        self._type = type
        self._shape: Conjunction = (
            Predicate(Attribute(TYPE), Operator.EQ, (literal(type),)),
            *(Predicate(Attribute(path), operator, (Parameter(end),)) for path, operator, end in _ENDS),
        )

    def add(self, places: IdArray, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, finite, low <= high; no place is held already."""
        group = ConjunctionGroup(self._shape, places, {"x1": lows, "x2": highs})
        self.matcher.add(ConjunctionBatch((group,)))

    def remove(self, places: IdArray) -> None:
        """Remove ranges; places that are not held are passed over."""
        self.matcher.remove(places)

    def hear(self, messages: Messages) -> Matches:
        """Return, per message, the places of those that hear it, ascending."""
        types = pa.DictionaryArray.from_arrays(np.zeros(len(messages), dtype=np.int8), [self._type])
        ends = {path: pa.array(getattr(messages, path)) for path, _, _ in _ENDS}
        return self.matcher.match(arrow_events(pa.table({TYPE: types, **ends})))

    @property
    def nbytes(self) -> int:
        """Return the bytes of all that is held."""
        return self.matcher.stats().bytes
