"""The interface where the indexes meet: which of these conjunctions does this event satisfy?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from msgspec import Struct

from tocsin.matching.batches import ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.model.conditions import Predicate
from tocsin.model.event import Event
from tocsin.model.values import Value


class PredicateTruth(Struct, frozen=True):
    """A predicate, the value it was evaluated on, and its truth; None is unknown, or no value."""

    predicate: Predicate
    value: Value | None
    truth: bool | None


class Explanation(Struct, frozen=True):
    """Why a subscription matches an event or does not: each conjunction and CNF, predicate by predicate.

    It matches if any of them is satisfied: all predicates of a conjunction, or one predicate of each clause of a CNF.
    """

    id: int
    matched: bool
    conjunctions: tuple[tuple[PredicateTruth, ...], ...]
    clauses: tuple[tuple[tuple[PredicateTruth, ...], ...], ...] = ()

    @property
    def failed(self) -> tuple[PredicateTruth, ...]:
        """Return the predicates that failed in the expression nearest to a match; none if it matched.

        The nearest expression has the fewest failed predicates, or failed clauses: a clause fails if all its
        predicates do.
        """
        missed: list[list[tuple[PredicateTruth, ...]]]
        missed = [[(t,) for t in conjunction if t.truth is not True] for conjunction in self.conjunctions]
        missed += [[c for c in cnf if all(t.truth is not True for t in c)] for cnf in self.clauses]
        return tuple(t for clause in min(missed, key=len, default=[]) for t in clause)


class MatcherStats(Struct, frozen=True):
    """The size and the costs of a matcher; `details` are its own figures."""

    subscriptions: int
    conjunctions: int
    predicates: int
    bytes: int
    details: Mapping[str, int | float] = {}


@runtime_checkable
class Matcher(Protocol):
    """An index of conjunctions.

    A matcher that stores CNFs as they are has a class attribute `takes_clauses`; the others expand them by
    `in_conjunctions`. Updates are cheap, and a running match never sees half of one.
    """

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions. An id may be added again, with further conjunctions that satisfy it."""

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids; an id that is not stored is skipped."""

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""

    def match_one(self, attributes: Mapping[str, Value]) -> IdArray:
        """Return the ids of the subscriptions that one event satisfies, ascending and without repeats."""

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not; raise `MatcherError` if it is not stored."""

    def stats(self) -> MatcherStats:
        """Return how much is stored and what that costs."""


def takes_clauses(matcher: Matcher) -> bool:
    """Tell whether a matcher stores CNFs as they are, without expanding them."""
    return bool(getattr(matcher, "takes_clauses", False))
