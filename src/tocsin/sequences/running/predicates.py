"""The static parts of edges or of filters, in a matcher: Cayuga's FR-index and AN-index."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.language.normal import Cnf, Dnf, dnf_unless_too_large, to_normal
from tocsin.language.template.columns import Column
from tocsin.matching import ConjunctionBatch, IdArray, Matcher, create_matcher, takes_clauses
from tocsin.matching.starting_matcher import StartingMatcher
from tocsin.matching.statistics import Statistics
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.conditions import Condition, Operator, Predicate, all_of
from tocsin.model.event import STREAM
from tocsin.model.terms import Attribute, literal
from tocsin.structures.array_types import Int64s


class PredicateIndex:
    """Conditions over single events, each under a number, in a matcher."""

    def __init__(self, matcher: str | None, statistics: Statistics | None) -> None:
        known = {} if statistics is None else {"statistics": statistics}
        self.matcher: Matcher = (
            StartingMatcher(statistics=statistics) if matcher is None else create_matcher(matcher, **known)
        )
        self._normal = to_normal if takes_clauses(self.matcher) else dnf_unless_too_large
        self.count = 0

    def normal(self, stream: str, condition: Condition) -> Dnf | Cnf:
        """Return a normal form, of a kind that the matcher takes, of a condition over the events of a stream."""
        return self._normal(_of_stream(stream, condition))

    def canonical(self, stream: str, condition: Condition, normal: Dnf | Cnf) -> Dnf | Cnf:
        """Return the normal form that is the same for every kind of matcher; `normal` is that of this matcher."""
        return normal if self._normal is to_normal else to_normal(_of_stream(stream, condition))

    def add(self, ids: IdArray, normal: Dnf | Cnf, columns: Mapping[str, Column]) -> None:
        """Add a condition under each number, with its own row of constants."""
        self.count += len(ids)  # first, because a caller that fails to add them removes them
        self.matcher.add(ConjunctionBatch.of_shapes(ids, normal, columns))

    def remove(self, ids: IdArray) -> None:
        """Remove conditions."""
        if len(ids):
            self.matcher.remove(ids)
            self.count -= len(ids)

    def match(self, events: TimedBatch) -> tuple[Int64s, Int64s]:
        """Return the offsets of each event, and the numbers of the conditions that it satisfies."""
        found = self.matcher.match(events.batch)
        return found.offsets, found.ids


def _of_stream(stream: str, condition: Condition) -> Condition:
    return all_of([Predicate(Attribute(STREAM), Operator.EQ, (literal(stream),)), condition])
