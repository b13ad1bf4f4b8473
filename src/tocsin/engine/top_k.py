"""The top k filters of an event: by score, and by id where scores are equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Final

import numpy as np

from tocsin.engine.filter_runtime import FilterMatches
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.language import Cnf, Dnf
from tocsin.language.normal.predicates import rewrite
from tocsin.language.template.binding import bind_predicate
from tocsin.matching import EventBatch
from tocsin.matching.ranking import (
    EventWeights,
    RankingMatcher,
    check_event_weights,
    check_top,
    event_weight,
    score,
)
from tocsin.model import Filter
from tocsin.model.conditions import Conjunction, Predicate
from tocsin.model.errors import MatcherError
from tocsin.model.event import STREAM
from tocsin.model.values import Value
from tocsin.subscriptions.filters import smaller_form

_NORMAL_FORMS: Final = 4096  # that are cached
_TIES: Final = (
    64  # further filters to ask a ranking matcher for, since it breaks ties by number and not by id
)

Scored = tuple[int, float]


class TopK:
    """The number of filters to notify for each event, and the weights of the event's attributes."""

    def __init__(self, top: int, weights: EventWeights | None = None) -> None:
        check_top(top)
        self.top = top
        self._weights: EventWeights = {} if weights is None else weights

    @classmethod
    def of(cls, top: int | None, weights: EventWeights | None) -> TopK | None:
        """Return the top k to choose, or None for all; weights alone are refused."""
        if top is not None:
            return cls(top, weights)
        if weights:
            raise MatcherError("`weights` rank the best of what an event satisfies: say with `top` how many")
        return None

    def event_weights(self, events: int) -> list[Mapping[str, float]]:
        """Return the attribute weights of each of so many events. The stream adds no score."""
        check_event_weights(self._weights, events)
        return [{**event_weight(self._weights, row), STREAM: 0.0} for row in range(events)]

    def keep_best(
        self,
        matches: FilterMatches,
        events: EventBatch,
        weights: Sequence[Mapping[str, float]],
        store: SubscriptionStore,
    ) -> FilterMatches:
        """Return the best of the matches of each event, with their scores."""
        numbers: dict[int, list[int]] = {}
        for row, number in zip(matches.rows.tolist(), matches.numbers.tolist(), strict=True):
            numbers.setdefault(row, []).append(number)
        best = {row: self._best(some, events, row, weights[row], store) for row, some in numbers.items()}
        return _as_matches(best)

    def rank(
        self, events: EventBatch, weights: Sequence[Mapping[str, float]], store: SubscriptionStore
    ) -> FilterMatches | None:
        """Return the best filters of each event by the matcher's own ranking; None if it cannot rank by itself.

        A subscription with limited validity must be scored after it is checked, and a matcher knows no validity.
        """
        matcher = store.filters.matcher
        if not isinstance(matcher, RankingMatcher) or store.registry.has_validity:
            return None
        requested = self.top + _TIES
        best: dict[int, list[Scored]] = {}
        undecided: list[int] = []
        for row, found in enumerate(matcher.rank(events, requested, weights).to_lists()):
            if len(found) == requested and found[self.top - 1][1] == found[-1][1]:
                undecided.append(row)  # more are equally good than were asked for: the ids must decide
            else:
                best[row] = self._keep_best(found, store)
        if undecided:
            matches = matcher.match(events)
            for row in undecided:
                best[row] = self._best(matches[row].tolist(), events, row, weights[row], store)
        return _as_matches(dict(sorted(best.items())))

    def _best(
        self,
        numbers: Iterable[int],
        events: EventBatch,
        row: int,
        weights: Mapping[str, float],
        store: SubscriptionStore,
    ) -> list[Scored]:
        """Return the k best of these subscriptions for one event, with their scores."""
        attributes = events.attributes(row)
        own = store.queries.weights
        scored = (
            (number, score(_normal_form(store, number), attributes, own.get(number, 1.0), weights))
            for number in numbers
        )
        return self._keep_best(scored, store)

    def _keep_best(self, scored: Iterable[Scored], store: SubscriptionStore) -> list[Scored]:
        return nsmallest(self.top, scored, key=lambda pair: (-pair[1], store.registry.id(pair[0])))


def _as_matches(best: Mapping[int, list[Scored]]) -> FilterMatches:
    """Return the scored subscriptions of each row as filter matches."""
    rows = [row for row, scored in best.items() for _ in scored]
    pairs = [pair for scored in best.values() for pair in scored]
    return FilterMatches(
        np.array(rows, dtype=np.int64),
        np.array([number for number, _ in pairs], dtype=np.int64),
        np.array([points for _, points in pairs], dtype=np.float64),
    )


def _normal_form(store: SubscriptionStore, number: int) -> Dnf | Cnf:
    """Return the normal form that a filter is scored by: the smaller one, whatever its matcher stores.

    The row of a template has the form of its template, as in matchers.
    """
    query, values = store.queries.unbound(number)
    assert isinstance(query, Filter)  # noqa: S101 - a matcher stores filters only
    normal = _smaller_form(query)
    if values is None:
        return normal
    if isinstance(normal, Dnf):
        return Dnf(tuple(_bound(conjunction, values) for conjunction in normal.conjunctions))
    return Cnf(tuple(_bound(clause, values) for clause in normal.clauses))


@lru_cache(maxsize=_NORMAL_FORMS)
def _smaller_form(query: Filter) -> Dnf | Cnf:
    return smaller_form(query, "it")


def _bound(predicates: Conjunction, values: Mapping[str, Value]) -> Conjunction:
    """Return predicates with a row's values, their constants folded as matchers have them."""
    bound = (bind_predicate(predicate, values) for predicate in predicates)
    return tuple(
        folded if isinstance(folded := rewrite(predicate), Predicate) else predicate for predicate in bound
    )
