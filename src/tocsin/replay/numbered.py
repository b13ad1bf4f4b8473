"""Subscriptions and events over numbered attributes and whole numbers, as arrays.

Attribute 7 is called `a7`. Millions of subscriptions are a few arrays; Python objects are made only for a
matcher that takes predicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import (
    ClauseGroup,
    ConjunctionBatch,
    ConjunctionGroup,
    EventBatch,
    IdArray,
    Matcher,
    takes_clauses,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, OPERATORS, Field, Keys, Op, keys_of_numbers
from tocsin.matching.encoding.conjunctions import EncodedClauses, EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.conditions import Conjunction, Predicate
from tocsin.model.terms import Attribute, literal
from tocsin.model.values import Value


@runtime_checkable
class EncodingMatcher(Protocol):
    """A matcher that takes subscriptions and events as arrays."""

    vocabulary: Vocabulary

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already."""

    def add_encoded_clauses(self, batch: EncodedClauses) -> None:
        """Add encoded CNFs, if the matcher stores CNFs."""

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin."""


class Subscriptions(Protocol):
    """A batch of subscriptions that can be given to any matcher."""

    @property
    def ids(self) -> IdArray:
        """Return their ids."""

    def encode(self, vocabulary: Vocabulary) -> EncodedConjunctions | EncodedClauses:
        """Return them in a vocabulary's codes."""

    def to_batch(self) -> ConjunctionBatch:
        """Return them as predicates."""


class Events(Protocol):
    """Events that can be given to any matcher."""

    def as_batch(self) -> EventBatch:
        """Return them as they are encoded best."""

    def to_dicts(self) -> Sequence[Mapping[str, Value]]:
        """Return each as a dict."""


class NumberedSubscriptions(NamedTuple):
    """The predicates of subscription i are those from `offsets[i]` to `offsets[i + 1]`.

    Each asks for a value from `lows` to `highs`; of `<=` only `highs` counts, and of `>=` only `lows`. Of `<` and
    `>` both are the constant.
    """

    ids: IdArray  # int64[subscriptions]
    offsets: Keys  # int64[subscriptions + 1]
    attributes: NDArray[np.int32]  # [predicates]
    ops: NDArray[np.int8]  # [predicates] EQ, LT, LE, GT, GE or BETWEEN
    lows: NDArray[np.int32]  # [predicates]
    highs: NDArray[np.int32]  # [predicates]

    def encode(self, vocabulary: Vocabulary) -> EncodedConjunctions:
        """Return the subscriptions in a vocabulary's codes; names that are new are given one."""
        used = np.unique(self.attributes)
        codes = np.zeros(int(used[-1]) + 1 if len(used) else 1, dtype=np.int64)
        names = names_of(len(codes))
        codes[used] = [vocabulary.names.code(names[attribute]) for attribute in used.tolist()]
        ops = self.ops.astype(np.int64)
        tags = (ops << FIELD_BITS) | (codes[self.attributes] * FIELDS + Field.NUMBER)
        bounds = np.where(ops == Op.LE, self.highs, self.lows), np.where(ops == Op.GE, self.lows, self.highs)
        lows, highs = (keys_of_numbers(bound.astype(np.float64)) for bound in bounds)
        ids, offsets = (np.ascontiguousarray(part, dtype=np.int64) for part in (self.ids, self.offsets))
        return EncodedConjunctions(ids, offsets, tags, lows, highs)

    def to_batch(self) -> ConjunctionBatch:
        """Return the subscriptions as predicates, a Python object each."""
        return ConjunctionBatch(
            tuple(
                ConjunctionGroup(_predicates(self, begin, end), self.ids[i : i + 1], {})
                for i, (begin, end) in enumerate(pairwise(self.offsets.tolist()))
            )
        )


class NumberedClauses(NamedTuple):
    """Subscriptions of clauses: those of subscription i are the rows from `offsets[i]` to `offsets[i + 1]` of `clauses`."""

    ids: IdArray  # int64[subscriptions]
    offsets: Keys  # int64[subscriptions + 1]
    clauses: NumberedSubscriptions  # the predicates of each clause; its ids do not count

    def encode(self, vocabulary: Vocabulary) -> EncodedClauses:
        """Return the conjunctive form, all clauses of which must hold, in a vocabulary's codes."""
        ids, offsets = (np.ascontiguousarray(part, dtype=np.int64) for part in (self.ids, self.offsets))
        clauses = self.clauses.encode(vocabulary)
        return EncodedClauses(ids, offsets, clauses.offsets, clauses.tags, clauses.lows, clauses.highs)

    def to_batch(self) -> ConjunctionBatch:
        """Return the conjunctive form as predicates; clauses of one predicate each are a conjunction."""
        clauses = [group.shape for group in self.clauses.to_batch().groups]
        groups, forms = [], []
        for i, (begin, end) in enumerate(pairwise(self.offsets.tolist())):
            shape, ids = tuple(clauses[begin:end]), self.ids[i : i + 1]
            if all(len(clause) == 1 for clause in shape):
                groups.append(ConjunctionGroup(tuple(clause[0] for clause in shape), ids, {}))
            else:
                forms.append(ClauseGroup(shape, ids, {}))
        return ConjunctionBatch(tuple(groups), tuple(forms))

    def any_of_all(self) -> NumberedSubscriptions:
        """Return the disjunctive form: each clause is a conjunction, and any of them satisfies the subscription."""
        return self.clauses._replace(ids=np.repeat(self.ids, np.diff(self.offsets)))


class NumberedEvents(NamedTuple):
    """The pairs of event i are those from `offsets[i]` to `offsets[i + 1]`."""

    offsets: Keys  # int64[events + 1]
    attributes: NDArray[np.int32]  # [pairs]
    values: NDArray[np.int32]  # [pairs]

    def slice(self, begin: int, end: int) -> NumberedEvents:
        """Return the events at the positions from `begin` to `end`."""
        offsets = self.offsets[begin : end + 1]
        cells = slice(int(offsets[0]), int(offsets[-1]))
        return NumberedEvents(offsets - offsets[0], self.attributes[cells], self.values[cells])

    def batches(self, size: int) -> Iterator[NumberedEvents]:
        """Return the events in batches of at most `size`."""
        count = len(self.offsets) - 1
        return (self.slice(begin, min(begin + size, count)) for begin in range(0, count, size))

    def encode(self, vocabulary: Vocabulary) -> EncodedEvents:
        """Return the events in a vocabulary's codes; an attribute that it does not know is left out."""
        used, positions = np.unique(self.attributes, return_inverse=True)
        names = names_of(int(self.attributes.max(initial=0)) + 1)
        known = vocabulary.names.codes
        found = (known.get(names[attribute], -1) for attribute in used.tolist())
        codes = np.fromiter(found, dtype=np.int64, count=len(used))[positions]
        kept = codes >= 0
        ends = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum(kept, out=ends[1:])
        fields = (codes[kept] * FIELDS + Field.NUMBER).astype(np.int32)
        keys = keys_of_numbers(self.values[kept].astype(np.float64))
        return EncodedEvents(ends[self.offsets], fields, keys, keys, keys)

    def as_batch(self) -> EventBatch:
        """Return the events as a batch that is encoded from arrays."""
        return NumberedEventBatch(self)

    def to_dicts(self) -> list[dict[str, Value]]:
        """Return each event as a dict."""
        return [_row(self, position) for position in range(len(self.offsets) - 1)]


class NumberedEventBatch(EventBatch):
    """Numbered events for any matcher: as arrays, or as dicts that are created on demand."""

    def __init__(self, events: NumberedEvents) -> None:
        super().__init__(_Rows(events))
        self._numbered = events

    def encode(self, vocabulary: Vocabulary) -> EncodedEvents:
        """Return the events in a vocabulary's codes."""
        return self._numbered.encode(vocabulary)


class _Rows(Sequence[Mapping[str, Value]]):
    def __init__(self, events: NumberedEvents) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events.offsets) - 1

    @overload
    def __getitem__(self, position: int) -> Mapping[str, Value]: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Mapping[str, Value]]: ...
    def __getitem__(self, position: int | slice) -> Mapping[str, Value] | Sequence[Mapping[str, Value]]:
        if isinstance(position, slice):
            return [_row(self._events, one) for one in range(*position.indices(len(self)))]
        return _row(self._events, position)


def add_to(matcher: Matcher, subscriptions: Subscriptions) -> None:
    """Add subscriptions, as arrays if the matcher takes them so."""
    add_encoded_to(matcher, subscriptions, encoded_for(matcher, subscriptions))


def encoded_for(
    matcher: Matcher, subscriptions: Subscriptions
) -> EncodedConjunctions | EncodedClauses | None:
    """Return subscriptions as the matcher takes them in arrays, or None if it does not."""
    if not isinstance(matcher, EncodingMatcher):
        return None
    if isinstance(subscriptions, NumberedClauses) and not takes_clauses(matcher):
        return None
    return subscriptions.encode(matcher.vocabulary)


def add_encoded_to(
    matcher: Matcher, subscriptions: Subscriptions, encoded: EncodedConjunctions | EncodedClauses | None
) -> None:
    """Add subscriptions in the form that `encoded_for` returned."""
    if encoded is None or not isinstance(matcher, EncodingMatcher):
        matcher.add(subscriptions.to_batch())
    elif isinstance(encoded, EncodedClauses):
        matcher.add_encoded_clauses(encoded)
    else:
        matcher.add_encoded(encoded)


def prepared_for(matcher: Matcher, events: Events) -> EventBatch:
    """Return events encoded for the matcher, so that `match` has nothing left to encode."""
    if isinstance(matcher, EncodingMatcher):
        batch = events.as_batch()
        encode_events(batch, matcher.vocabulary)
        return batch
    return EventBatch(events.to_dicts())


@lru_cache(maxsize=8)
def names_of(count: int) -> tuple[str, ...]:
    """Return the names of the first `count` attributes."""
    return tuple(f"a{number}" for number in range(count))


def _predicates(held: NumberedSubscriptions, begin: int, end: int) -> Conjunction:
    """Return the predicates from `begin` to `end` as Python objects."""
    found = []
    for j in range(begin, end):
        op, low, high = Op(int(held.ops[j])), int(held.lows[j]), int(held.highs[j])
        constants = (low, high) if op is Op.BETWEEN else (high,) if op is Op.LE else (low,)
        subject = Attribute(f"a{int(held.attributes[j])}")
        found.append(Predicate(subject, OPERATORS[op], tuple(literal(value) for value in constants)))
    return tuple(found)


def _row(events: NumberedEvents, position: int) -> dict[str, Value]:
    begin, end = int(events.offsets[position]), int(events.offsets[position + 1])
    attributes, values = events.attributes[begin:end].tolist(), events.values[begin:end].tolist()
    return {f"a{attribute}": value for attribute, value in zip(attributes, values, strict=True)}
