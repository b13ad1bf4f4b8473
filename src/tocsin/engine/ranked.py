"""The best of an engine's subscriptions for an event: how they are scored, and ordered by score and id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Final

from tocsin.engine.book import Book
from tocsin.engine.filters import smaller_form
from tocsin.language import Cnf, Dnf
from tocsin.language.normal.predicates import rewrite
from tocsin.language.template.binding import bind_predicate
from tocsin.matching import ConjunctionBatch, EventBatch
from tocsin.matching.ranking import (
    EventWeights,
    RankingMatcher,
    Weight,
    check_event_weights,
    check_top,
    event_weight,
    score,
)
from tocsin.model import Event, Filter
from tocsin.model.conditions import Conjunction, Predicate
from tocsin.model.errors import MatcherError
from tocsin.model.event import STREAM
from tocsin.model.values import Value

_FORMS: Final = 4096  # normal forms that are remembered

_EQUAL: Final = 64  # that may be as good as the last of the best before all are looked at

Scored = tuple[int, float]


class Wish:
    """How many are to be told of each event, and what its attributes weigh."""

    def __init__(self, top: int, weights: EventWeights | None = None) -> None:
        check_top(top)
        self.top = top
        self._weights: EventWeights = {} if weights is None else weights

    @classmethod
    def of(cls, top: int | None, weights: EventWeights | None) -> Wish | None:
        """Return the wish, or None if all are to be told; weights say nothing then, and are refused."""
        if top is not None:
            return cls(top, weights)
        if weights:
            raise MatcherError("`weights` rank the best of what an event satisfies: say with `top` how many")
        return None

    def checked(self, events: int) -> list[Mapping[str, float]]:
        """Return the weights of each of so many events; that an event is of a stream is worth nothing."""
        check_event_weights(self._weights, events)
        return [{**event_weight(self._weights, place), STREAM: 0.0} for place in range(events)]


def weighted(batch: ConjunctionBatch, weights: Mapping[int, Weight]) -> ConjunctionBatch:
    """Return a batch with the weights of those subscriptions that do not weigh 1."""
    kept = {number: weight for number, weight in weights.items() if weight != 1.0}
    return ConjunctionBatch(batch.groups, batch.clauses, kept) if kept else batch


def native_best(
    matcher: RankingMatcher, book: Book, events: EventBatch, top: int, weights: Sequence[Mapping[str, float]]
) -> list[list[Scored] | None]:
    """Return the best numbers of each event with their scores, found by a matcher that ranks by itself.

    It knows numbers, not ids, so where scores are equal some more are asked for. None for an event of which the ids
    cannot tell even then: all that it satisfies are to be looked at.
    """
    asked = top + _EQUAL
    found = matcher.rank(events, asked, weights).to_lists()
    return [
        None if len(row) == asked and row[top - 1][1] == row[-1][1] else _ordered(row, book, top)
        for row in found
    ]


def best_of(
    numbers: Iterable[int], event: Event, book: Book, top: int, weights: Mapping[str, float]
) -> list[Scored]:
    """Return the best of the numbers of subscriptions that an event satisfies, with their scores."""
    scored = (
        (number, score(_form(book, number), event.attributes, book.weights.get(number, 1.0), weights))
        for number in numbers
    )
    return _ordered(scored, book, top)


def _ordered(scored: Iterable[Scored], book: Book, top: int) -> list[Scored]:
    return nsmallest(top, scored, key=lambda pair: (-pair[1], book.id(pair[0])))


def _form(book: Book, number: int) -> Dnf | Cnf:
    """Return the normal form that a subscription is scored by: the smaller one, whatever its matcher holds.

    Rows of a template have that of the template, as matchers have it.
    """
    query, values = book.asked(number)
    normal = _normal(query)
    if values is None:
        return normal
    if isinstance(normal, Dnf):
        return Dnf(tuple(_bound(conjunction, values) for conjunction in normal.conjunctions))
    return Cnf(tuple(_bound(clause, values) for clause in normal.clauses))


@lru_cache(maxsize=_FORMS)
def _normal(query: Filter) -> Dnf | Cnf:
    return smaller_form(query, "it")


def _bound(predicates: Conjunction, values: Mapping[str, Value]) -> Conjunction:
    """Return predicates with a row's values, and what can be computed of these computed, as matchers have them."""
    bound = (bind_predicate(predicate, values) for predicate in predicates)
    return tuple(
        folded if isinstance(folded := rewrite(predicate), Predicate) else predicate for predicate in bound
    )
