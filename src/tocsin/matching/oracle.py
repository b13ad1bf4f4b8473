"""The brute-force matcher: no index, every expression is evaluated on every event. It defines the right answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar, TypeVar

import numpy as np
from msgspec import Struct

from tocsin.language.json_form import predicate_from_json, predicate_to_json
from tocsin.language.semantics import truth, value_of
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.matching.matcher import Explanation, MatcherStats, PredicateTruth
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.model.conditions import Conjunction, Predicate, alternatives_of
from tocsin.model.errors import FormError, MatcherError, SavedMatcherError
from tocsin.model.event import Event
from tocsin.model.values import Value

Item = TypeVar("Item")


class _Expressions(Struct):
    """The expressions of a subscription; any one of them satisfies it."""

    conjunctions: list[Conjunction] = []
    clauses: list[Clauses] = []


@register("oracle")
class Oracle:
    """Evaluates every conjunction and every CNF on every event.

    >>> from tocsin.language import parse_condition, to_dnf
    >>> from tocsin.model import read_event
    >>> oracle = Oracle()
    >>> oracle.add(ConjunctionBatch.of([(7, to_dnf(parse_condition("symbol = 'IBM' and price > 100")))]))
    >>> oracle.match(EventBatch.of([read_event({"symbol": "IBM", "price": 101.5})])).to_lists()
    [[7]]
    """

    takes_clauses: ClassVar[bool] = True

    def __init__(self) -> None:
        self._stored: dict[int, _Expressions] = {}
        self._size = 0
        self.version = 0  # changes with the stored expressions

    def __len__(self) -> int:
        return self._size

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Yield every conjunction with its subscription's id, as an array of one."""
        for id_, stored in self._stored.items():
            ids = np.array([id_], dtype=np.int64)
            yield from ((ids, conjunction) for conjunction in stored.conjunctions)

    def clauses(self) -> Iterator[tuple[IdArray, Clauses]]:
        """Yield every CNF with its subscription's id, as an array of one."""
        for id_, stored in self._stored.items():
            ids = np.array([id_], dtype=np.int64)
            yield from ((ids, clauses) for clauses in stored.clauses)

    def expressions(self) -> Iterator[tuple[int, list[Conjunction], list[Clauses]]]:
        """Yield the conjunctions and CNFs of each subscription with its id; an id is there once."""
        return ((id_, stored.conjunctions, stored.clauses) for id_, stored in self._stored.items())

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and CNFs; any one of the expressions that carry an id satisfies it."""
        for id_, conjunction in subscriptions:
            self._expressions(id_).conjunctions.append(conjunction)
        for group in subscriptions.clauses:
            for id_, clauses in group:
                self._expressions(id_).clauses.append(clauses)
        self._size += len(subscriptions)
        self.version += 1

    def remove(self, ids: IdArray) -> None:
        """Remove all expressions of these ids."""
        for id_ in ids.tolist():
            gone = self._stored.pop(id_, _Expressions())
            self._size -= len(gone.conjunctions) + len(gone.clauses)
        self.version += 1

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        return Matches.of(
            [id_ for id_, stored in self._stored.items() if _satisfies(events.attributes(place), stored)]
            if not events.is_refused(place)
            else ()
            for place in range(len(events))
        )

    def match_one(self, attributes: Mapping[str, Value]) -> IdArray:
        """Return the ids of the subscriptions that one event satisfies, ascending and without repeats."""
        found = [id_ for id_, stored in self._stored.items() if _satisfies(attributes, stored)]
        return np.array(sorted(found), dtype=np.int64)

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        if id not in self._stored:
            raise MatcherError(f"no subscription has the id {id}")
        return explain_conjunctions(event, id, self._stored[id].conjunctions, self._stored[id].clauses)

    def stats(self) -> MatcherStats:
        """Return how much is stored; the bytes are those of the lists and predicates, without their constants.

        A CNF counts as a conjunction with all its predicates.
        """
        stored = list(self._stored.values())
        parts = [c for one in stored for c in one.conjunctions]
        parts += [c for one in stored for clauses in one.clauses for c in clauses]
        lists = [each for one in stored for each in (one, one.conjunctions, one.clauses, *one.clauses)]
        size = sys.getsizeof(self._stored) + sum(map(sys.getsizeof, lists))
        size += sum(sys.getsizeof(part) + sum(map(sys.getsizeof, part)) for part in parts)
        return MatcherStats(len(stored), len(self), sum(map(len, parts)), size)

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return conjunctions by id and size, CNFs by id and clauses, and their predicates in that order."""
        conjunctions = [(id_, c) for id_, one in self._stored.items() for c in one.conjunctions]
        cnfs = [(id_, c) for id_, one in self._stored.items() for c in one.clauses]
        clauses = [clause for _, cnf in cnfs for clause in cnf]
        yield MatcherParts(
            {},
            {
                "ids": np.array([id_ for id_, _ in conjunctions], dtype=np.int64),
                "sizes": np.array([len(c) for _, c in conjunctions], dtype=np.int64),
                "cnf_ids": np.array([id_ for id_, _ in cnfs], dtype=np.int64),
                "cnf_sizes": np.array([len(cnf) for _, cnf in cnfs], dtype=np.int64),
                "clause_sizes": np.array([len(clause) for clause in clauses], dtype=np.int64),
            },
            {
                "predicates": [
                    predicate_to_json(p) for part in (*(c for _, c in conjunctions), *clauses) for p in part
                ]
            },
        )

    def restore(self, parts: MatcherParts) -> None:
        """Become the oracle that gave these parts."""
        try:
            predicates = map(predicate_from_json, parts.documents["predicates"])
            for id_, conjunction in _dealt(parts.arrays["ids"], parts.arrays["sizes"], predicates):
                self._expressions(id_).conjunctions.append(conjunction)
            clauses = (tuple(islice(predicates, size)) for size in parts.arrays["clause_sizes"].tolist())
            for id_, cnf in _dealt(parts.arrays["cnf_ids"], parts.arrays["cnf_sizes"], clauses):
                self._expressions(id_).clauses.append(cnf)
            self._size = len(parts.arrays["ids"]) + len(parts.arrays["cnf_ids"])
            self.version += 1
        except KeyError as fault:
            raise SavedMatcherError(f"it has no `{fault.args[0]}`; save the matcher again") from None
        except FormError as fault:
            raise SavedMatcherError(f"a predicate cannot be read: {fault}; save the matcher again") from None

    def _expressions(self, id_: int) -> _Expressions:
        return self._stored.setdefault(id_, _Expressions())


def explain_conjunctions(
    event: Event, id_: int, conjunctions: Iterable[Conjunction], clauses: Iterable[Clauses] = ()
) -> Explanation:
    """Return each conjunction and each CNF with the truth of its predicates over `event`."""

    def explained(predicates: Conjunction) -> tuple[PredicateTruth, ...]:
        return tuple(
            PredicateTruth(p, value_of(p.subject, event.attributes), truth(p, event.attributes))
            for p in predicates
        )

    whole = [tuple(map(alternatives_of, conjunction)) for conjunction in conjunctions]
    plain = tuple(explained(tuple(p for (p,) in one)) for one in whole if _is_conjunction(one))
    partial = (one for one in whole if not _is_conjunction(one))
    cnfs = tuple(tuple(map(explained, cnf)) for cnf in (*partial, *clauses))
    matched = any(all(t.truth is True for t in conjunction) for conjunction in plain)
    matched = matched or any(all(any(t.truth is True for t in c) for c in cnf) for cnf in cnfs)
    return Explanation(id_, matched, plain, cnfs)


def _is_conjunction(clauses: Clauses) -> bool:
    return all(len(clause) == 1 for clause in clauses)


def _satisfies(attributes: Mapping[str, Value], stored: _Expressions) -> bool:
    def holds(predicate: Predicate) -> bool:
        return truth(predicate, attributes) is True

    return any(all(map(holds, conjunction)) for conjunction in stored.conjunctions) or any(
        all(any(map(holds, clause)) for clause in cnf) for cnf in stored.clauses
    )


def _dealt(ids: IdArray, sizes: IdArray, items: Iterator[Item]) -> Iterator[tuple[int, tuple[Item, ...]]]:
    """Yield the items in tuples of these sizes, each with its id."""
    for id_, size in zip(ids.tolist(), sizes.tolist(), strict=True):
        yield id_, tuple(islice(items, size))
