"""The brute-force matcher: no index, every conjunction and clause form tried on every event. It defines the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
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
from tocsin.model.conditions import Conjunction, Predicate
from tocsin.model.errors import FormError, MatcherError, SavedMatcherError
from tocsin.model.event import Event

Item = TypeVar("Item")


class _Forms(Struct):
    """What satisfies a subscription: any of some conjunctions, or of some clause forms."""

    conjunctions: list[Conjunction] = []
    clauses: list[Clauses] = []


@register("oracle")
class Oracle:
    """Tries every conjunction and every clause form on every event.

    >>> from tocsin.language import parse_condition, to_dnf
    >>> from tocsin.model import read_event
    >>> oracle = Oracle()
    >>> oracle.add(ConjunctionBatch.of([(7, to_dnf(parse_condition("symbol = 'IBM' and price > 100")))]))
    >>> oracle.match(EventBatch.of([read_event({"symbol": "IBM", "price": 101.5})])).to_lists()
    [[7]]
    """

    takes_clauses: ClassVar[bool] = True

    def __init__(self) -> None:
        self._held: dict[int, _Forms] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Return every conjunction with its subscription's id, as an array of one."""
        for id_, held in self._held.items():
            ids = np.array([id_], dtype=np.int64)
            yield from ((ids, conjunction) for conjunction in held.conjunctions)

    def clauses(self) -> Iterator[tuple[IdArray, Clauses]]:
        """Return every clause form with its subscription's id, as an array of one."""
        for id_, held in self._held.items():
            ids = np.array([id_], dtype=np.int64)
            yield from ((ids, clauses) for clauses in held.clauses)

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and clause forms; any one of those that carry an id satisfies it."""
        for id_, conjunction in subscriptions:
            self._forms(id_).conjunctions.append(conjunction)
        for group in subscriptions.clauses:
            for id_, clauses in group:
                self._forms(id_).clauses.append(clauses)
        self._size += len(subscriptions)

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions and clause forms of these ids."""
        for id_ in ids.tolist():
            gone = self._held.pop(id_, _Forms())
            self._size -= len(gone.conjunctions) + len(gone.clauses)

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        return Matches.of(
            [id_ for id_, forms in self._held.items() if _satisfies(event, forms)]
            if not events.is_refused(place)
            else ()
            for place, event in enumerate(events)
        )

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        if id not in self._held:
            raise MatcherError(f"no subscription has the id {id}")
        return explain_conjunctions(event, id, self._held[id].conjunctions, self._held[id].clauses)

    def stats(self) -> MatcherStats:
        """Return what is held; the bytes are those of the lists and predicates, without their constants.

        A clause form counts as a conjunction with all its predicates.
        """
        held = list(self._held.values())
        parts = [c for forms in held for c in forms.conjunctions]
        parts += [c for forms in held for clauses in forms.clauses for c in clauses]
        lists = [
            each for forms in held for each in (forms, forms.conjunctions, forms.clauses, *forms.clauses)
        ]
        size = sys.getsizeof(self._held) + sum(map(sys.getsizeof, lists))
        size += sum(sys.getsizeof(part) + sum(map(sys.getsizeof, part)) for part in parts)
        return MatcherStats(len(held), len(self), sum(map(len, parts)), size)

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return conjunctions by id and size, clause forms by id and clauses, and their predicates in that order."""
        conjunctions = [(id_, c) for id_, forms in self._held.items() for c in forms.conjunctions]
        forms = [(id_, c) for id_, forms in self._held.items() for c in forms.clauses]
        clauses = [clause for _, form in forms for clause in form]
        yield MatcherParts(
            {},
            {
                "ids": np.array([id_ for id_, _ in conjunctions], dtype=np.int64),
                "sizes": np.array([len(c) for _, c in conjunctions], dtype=np.int64),
                "form_ids": np.array([id_ for id_, _ in forms], dtype=np.int64),
                "form_sizes": np.array([len(form) for _, form in forms], dtype=np.int64),
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
                self._forms(id_).conjunctions.append(conjunction)
            self._size = len(parts.arrays["ids"])
            if "form_ids" in parts.arrays:  # format 1 had no clause forms
                clauses = (tuple(islice(predicates, size)) for size in parts.arrays["clause_sizes"].tolist())
                for id_, form in _dealt(parts.arrays["form_ids"], parts.arrays["form_sizes"], clauses):
                    self._forms(id_).clauses.append(form)
                self._size += len(parts.arrays["form_ids"])
        except KeyError as fault:
            raise SavedMatcherError(f"it has no `{fault.args[0]}`; save the matcher anew") from None
        except FormError as fault:
            raise SavedMatcherError(f"a predicate cannot be read: {fault}; save the matcher anew") from None

    def _forms(self, id_: int) -> _Forms:
        return self._held.setdefault(id_, _Forms())


def explain_conjunctions(
    event: Event, id_: int, conjunctions: Iterable[Conjunction], clauses: Iterable[Clauses] = ()
) -> Explanation:
    """Return each conjunction and each clause form with the truth of its predicates over `event`."""

    def told(predicates: Conjunction) -> tuple[PredicateTruth, ...]:
        return tuple(
            PredicateTruth(p, value_of(p.subject, event.attributes), truth(p, event.attributes))
            for p in predicates
        )

    explained = tuple(map(told, conjunctions))
    forms = tuple(tuple(map(told, form)) for form in clauses)
    matched = any(all(t.truth is True for t in conjunction) for conjunction in explained)
    matched = matched or any(all(any(t.truth is True for t in c) for c in form) for form in forms)
    return Explanation(id_, matched, explained, forms)


def _satisfies(event: Event, forms: _Forms) -> bool:
    def holds(predicate: Predicate) -> bool:
        return truth(predicate, event.attributes) is True

    return any(all(map(holds, conjunction)) for conjunction in forms.conjunctions) or any(
        all(any(map(holds, clause)) for clause in form) for form in forms.clauses
    )


def _dealt(ids: IdArray, sizes: IdArray, items: Iterator[Item]) -> Iterator[tuple[int, tuple[Item, ...]]]:
    """Return the items in tuples of these sizes, each with its id."""
    for id_, size in zip(ids.tolist(), sizes.tolist(), strict=True):
        yield id_, tuple(islice(items, size))
