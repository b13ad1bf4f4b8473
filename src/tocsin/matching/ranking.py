"""Ranking: the best of the subscriptions that an event satisfies, by their weights and the event's.

A satisfied predicate scores its subscription's weight for the attribute times the event's. A conjunction scores the sum of
its predicates, a CNF the sum of the best predicate of each clause, and a subscription the most that any of its
conjunctions scores. Negations (`!=`, `not in`, `is missing` and the like) score nothing, nor does a predicate whose
subject is not an attribute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from msgspec import Struct

from tocsin.language.normal import Cnf, Dnf
from tocsin.language.semantics import truth
from tocsin.matching.batches import EventBatch, IdArray
from tocsin.matching.matcher import Matcher
from tocsin.model.conditions import NEGATIONS, Operator, Predicate
from tocsin.model.errors import MatcherError
from tocsin.model.terms import Attribute
from tocsin.model.values import Value
from tocsin.structures.array_types import Float64s

Weight: TypeAlias = float | Mapping[str, float]
"""A subscription's weight: one for all its predicates, or one for each attribute; those not named have 1."""

EventWeights: TypeAlias = Mapping[str, float] | Sequence[Mapping[str, float]]
"""The weights of an event's attributes, the same for all events or one mapping for each; those not named have 1."""

_LARGEST: Final = sys.float_info.max


class Rankings(Struct, frozen=True):
    """Per event, the best subscriptions, the highest score first and of equal ones the lowest id.

    Event i has `ids[offsets[i]:offsets[i + 1]]`, with their `scores`.
    """

    offsets: IdArray  # int64[events + 1]
    ids: IdArray  # int64[ranked]
    scores: Float64s  # [ranked]

    @classmethod
    def of(cls, per_event: Iterable[Iterable[tuple[int, float]]]) -> Rankings:
        """Return the rankings given as ids and scores per event, in order."""
        rows = [list(row) for row in per_event]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = np.array([id_ for row in rows for id_, _ in row], dtype=np.int64)
        return cls(offsets, ids, np.array([score for row in rows for _, score in row], dtype=np.float64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_lists(self) -> list[list[tuple[int, float]]]:
        """Return ids and scores per event as plain lists."""
        pairs = list(zip(self.ids.tolist(), self.scores.tolist(), strict=True))
        bounds = self.offsets.tolist()
        return [pairs[begin:end] for begin, end in pairwise(bounds)]


@runtime_checkable
class RankingMatcher(Protocol):
    """A matcher that ranks by itself: it stores weights, and finds the best without finding all matches."""

    def rank(self, events: EventBatch, top: int, weights: EventWeights) -> Rankings:
        """Return, per event, the best `top` of the subscriptions that it satisfies."""


def rank(
    matcher: Matcher,
    events: EventBatch,
    top: int,
    normal_forms: Callable[[int], Dnf | Cnf],
    *,
    weights: Mapping[int, Weight] | None = None,
    event_weights: EventWeights | None = None,
) -> Rankings:
    """Return, per event, the best `top` of the subscriptions that it satisfies, with any matcher.

    `normal_forms` gives a subscription's normal form by its id, and `weights` those that are not 1. Any matcher but a
    `RankingMatcher` finds all matches first; they are scored then.
    """
    check_top(top)
    attribute_weights = {} if event_weights is None else event_weights
    check_event_weights(attribute_weights, len(events))
    if isinstance(matcher, RankingMatcher):
        return matcher.rank(events, top, attribute_weights)
    known = {} if weights is None else weights
    found = matcher.match(events)
    return Rankings.of(
        best(
            (
                (
                    id_,
                    score(
                        normal_forms(id_),
                        events.attributes(position),
                        known.get(id_, 1.0),
                        event_weight(attribute_weights, position),
                    ),
                )
                for id_ in found[position].tolist()
            ),
            top,
        )
        for position in range(len(events))
    )


def best(scored: Iterable[tuple[int, float]], top: int) -> list[tuple[int, float]]:
    """Return the best ids with their scores, in order."""
    return nsmallest(top, scored, key=lambda pair: (-pair[1], pair[0]))


def score(
    normal: Dnf | Cnf, attributes: Mapping[str, Value], weight: Weight, event_weights: Mapping[str, float]
) -> float:
    """Return the score of a subscription that an event satisfies."""

    def score_of(predicate: Predicate) -> float:
        if not counts(predicate):
            return 0.0
        path = predicate.subject.path  # type: ignore[union-attr]
        return float(weight_of(weight, path)) * float(event_weights.get(path, 1.0))  # as a kernel multiplies

    def holds(predicate: Predicate) -> bool:
        return truth(predicate, attributes) is True

    if isinstance(normal, Dnf):
        satisfied = [c for c in normal.conjunctions if all(map(holds, c))]
        return max((_sum(map(score_of, conjunction)) for conjunction in satisfied), default=0.0)
    return _sum(max((score_of(p) for p in clause if holds(p)), default=0.0) for clause in normal.clauses)


def _sum(values: Iterable[float]) -> float:
    """Return the sum, added up one after another as a kernel does: `sum` may round otherwise."""
    total = 0.0
    for value in values:
        total += value
    return total


def counts(predicate: Predicate) -> bool:
    """Tell whether a satisfied predicate scores."""
    operator = predicate.operator
    negated = operator in NEGATIONS or operator is Operator.MISSING
    return type(predicate.subject) is Attribute and not negated


def weight_of(weight: Weight, path: str) -> float:
    """Return a subscription's weight for an attribute."""
    return weight.get(path, 1.0) if isinstance(weight, Mapping) else weight


def event_weight(weights: EventWeights, position: int) -> Mapping[str, float]:
    """Return the weights of one event."""
    return weights if isinstance(weights, Mapping) else weights[position]


def check_top(top: object) -> None:
    """Raise `MatcherError` unless `top` is a positive integer."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise MatcherError(f"`top` is the number of subscriptions to return, 1 or more, not {top!r}")


def check_weight(weight: object) -> None:
    """Raise `MatcherError` unless it can be a subscription's weight."""
    if isinstance(weight, Mapping):
        _check_mapping(weight)
    else:
        _check_number(weight)


def check_event_weights(weights: object, events: int) -> None:
    """Raise `MatcherError` unless these can be the weights of so many events."""
    if isinstance(weights, Mapping):
        rows: Sequence[object] = [weights]
    elif isinstance(weights, Sequence) and not isinstance(weights, str) and len(weights) == events:
        rows = weights
    else:
        raise MatcherError(f"the weights of {events:,} events are one mapping for all, or a list of as many")
    for row in rows:
        if not isinstance(row, Mapping):
            raise MatcherError(f"an event's weights map attributes to numbers, not {row!r}")
        _check_mapping(row)


def _check_mapping(weights: Mapping[object, object]) -> None:
    for name, one in weights.items():
        if not isinstance(name, str):
            raise MatcherError(f"weights are given by the names of attributes, not by {name!r}")
        _check_number(one)


def _check_number(weight: object) -> None:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= _LARGEST:
        raise MatcherError(f"a weight is a finite number, 0 or more, not {weight!r}")
