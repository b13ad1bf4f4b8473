"""The static parts of edges or of filters, in a matcher: Cayuga's FR-index and AN-index."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tocsin.language.normal import Cnf, Dnf, to_dnf, to_normal
from tocsin.language.template.columns import Column
from tocsin.matching import ConjunctionBatch, EventBatch, IdArray, Matcher, create_matcher, takes_clauses
from tocsin.matching.starting_matcher import StartingMatcher
from tocsin.matching.statistics import Statistics
from tocsin.model.conditions import Condition, Operator, Predicate, all_of
from tocsin.model.event import STREAM
from tocsin.model.terms import Attribute, literal


class Predicates:
    """Conditions over single events, each under a number, in a matcher of any kind."""

    def __init__(self, matcher: str | None, statistics: Statistics | None) -> None:
        known = {} if statistics is None else {"statistics": statistics}
        self.matcher: Matcher = (
            StartingMatcher(statistics=statistics) if matcher is None else create_matcher(matcher, **known)
        )
        self._normal = to_normal if takes_clauses(self.matcher) else to_dnf
        self.held = 0

    def normal(self, stream: str, condition: Condition) -> Dnf | Cnf:
        """Return the normal form of a condition over the events of a stream, as the matcher takes it."""
        of_stream = Predicate(Attribute(STREAM), Operator.EQ, (literal(stream),))
        return self._normal(all_of([of_stream, condition]))

    def add(self, ids: IdArray, normal: Dnf | Cnf, columns: Mapping[str, Column]) -> None:
        """Add a condition under each number, with its own row of constants."""
        self.held += len(ids)  # first: whoever fails to add them removes them
        self.matcher.add(ConjunctionBatch.of_shapes(ids, normal, columns))

    def remove(self, ids: IdArray) -> None:
        """Remove conditions."""
        if len(ids):
            self.matcher.remove(ids)
            self.held -= len(ids)

    def matched(self, events: EventBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the conditions that each event satisfies, and where each event's begin."""
        if not self.held:
            return np.zeros(len(events) + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
        found = self.matcher.match(events)
        return found.offsets, found.ids
