"""The interface where the indexes meet: which of these conjunctions does this event satisfy?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from msgspec import Struct

from tocsin.matching.batches import ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.model.conditions import Predicate
from tocsin.model.event import Event
from tocsin.model.values import Value

__all__ = ["Explanation", "Matcher", "MatcherStats", "PredicateTruth"]


class PredicateTruth(Struct, frozen=True):
    """A predicate, the value it looked at, and whether it holds; None means unknown, or no value."""

    predicate: Predicate
    value: Value | None
    truth: bool | None


class Explanation(Struct, frozen=True):
    """Why a subscription matches an event or does not: each conjunction, predicate by predicate."""

    id: int
    matched: bool
    conjunctions: tuple[tuple[PredicateTruth, ...], ...]

    @property
    def failed(self) -> tuple[PredicateTruth, ...]:
        """Return the predicates of the conjunction nearest to a match that do not hold; none if it matched."""
        missed = [tuple(t for t in conjunction if t.truth is not True) for conjunction in self.conjunctions]
        return min(missed, key=len, default=())


class MatcherStats(Struct, frozen=True):
    """What a matcher holds and what that costs; `details` are its own figures."""

    subscriptions: int
    conjunctions: int
    predicates: int
    bytes: int
    details: Mapping[str, int | float] = {}


@runtime_checkable
class Matcher(Protocol):
    """An index of conjunctions.

    Updates are cheap, and a running match never sees half of one.
    """

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions. An id may be added again, with further conjunctions that satisfy it."""

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids; an id that is not held is passed over."""

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not; raise `MatcherError` if it is not held."""

    def stats(self) -> MatcherStats:
        """Return what the matcher holds and what that costs."""
