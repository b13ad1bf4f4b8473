"""The brute-force matcher: no index, every conjunction tried on every event. It defines the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import numpy as np

from tocsin.language.json_form import predicate_from_json, predicate_to_json
from tocsin.language.semantics import truth, value_of
from tocsin.matching.batches import ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.matching.matcher import Explanation, MatcherStats, PredicateTruth
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import FormError, MatcherError, SavedMatcherError
from tocsin.model.event import Event

__all__ = ["Oracle", "explain_conjunctions"]


@register("oracle")
class Oracle:
    """Tries every conjunction on every event.

    >>> from tocsin.language import parse_condition, to_dnf
    >>> from tocsin.model import read_event
    >>> oracle = Oracle()
    >>> oracle.add(ConjunctionBatch.of([(7, to_dnf(parse_condition("symbol = 'IBM' and price > 100")))]))
    >>> oracle.match(EventBatch.of([read_event({"symbol": "IBM", "price": 101.5})])).to_lists()
    [[7]]
    """

    def __init__(self) -> None:
        self._conjunctions: dict[int, list[Conjunction]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Return every conjunction with its subscription's id, as an array of one."""
        for id_, held in self._conjunctions.items():
            ids = np.array([id_], dtype=np.int64)
            yield from ((ids, conjunction) for conjunction in held)

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions; any one of those that carry an id satisfies it."""
        for id_, conjunction in subscriptions:
            self._conjunctions.setdefault(id_, []).append(conjunction)
            self._size += 1

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        for id_ in ids.tolist():
            self._size -= len(self._conjunctions.pop(id_, ()))

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        return Matches.of(
            [
                id_
                for id_, conjunctions in self._conjunctions.items()
                if any(_satisfies(event, conjunction) for conjunction in conjunctions)
            ]
            if not events.is_refused(place)
            else ()
            for place, event in enumerate(events)
        )

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        if id not in self._conjunctions:
            raise MatcherError(f"no subscription has the id {id}")
        return explain_conjunctions(event, id, self._conjunctions[id])

    def stats(self) -> MatcherStats:
        """Return what is held; the bytes are those of the lists and predicates, without their constants."""
        conjunctions = [c for held in self._conjunctions.values() for c in held]
        size = sys.getsizeof(self._conjunctions) + sum(map(sys.getsizeof, self._conjunctions.values()))
        size += sum(sys.getsizeof(c) + sum(map(sys.getsizeof, c)) for c in conjunctions)
        return MatcherStats(len(self._conjunctions), len(conjunctions), sum(map(len, conjunctions)), size)

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return the conjunctions by id and size, and their predicates one after another."""
        held = [(id_, c) for id_, conjunctions in self._conjunctions.items() for c in conjunctions]
        yield MatcherParts(
            {},
            {
                "ids": np.array([id_ for id_, _ in held], dtype=np.int64),
                "sizes": np.array([len(c) for _, c in held], dtype=np.int64),
            },
            {"predicates": [predicate_to_json(p) for _, c in held for p in c]},
        )

    def restore(self, parts: MatcherParts) -> None:
        """Become the oracle that gave these parts."""
        try:
            predicates = map(predicate_from_json, parts.documents["predicates"])
            for id_, size in zip(parts.arrays["ids"].tolist(), parts.arrays["sizes"].tolist(), strict=True):
                self._conjunctions.setdefault(id_, []).append(tuple(islice(predicates, size)))
                self._size += 1
        except KeyError as fault:
            raise SavedMatcherError(f"it has no `{fault.args[0]}`; save the matcher anew") from None
        except FormError as fault:
            raise SavedMatcherError(f"a predicate cannot be read: {fault}; save the matcher anew") from None


def explain_conjunctions(event: Event, id_: int, conjunctions: list[Conjunction]) -> Explanation:
    """Return each conjunction with the truth of its predicates over `event`."""
    explained = tuple(
        tuple(
            PredicateTruth(p, value_of(p.subject, event.attributes), truth(p, event.attributes))
            for p in conjunction
        )
        for conjunction in conjunctions
    )
    matched = any(all(t.truth is True for t in conjunction) for conjunction in explained)
    return Explanation(id_, matched, explained)


def _satisfies(event: Event, conjunction: Conjunction) -> bool:
    return all(truth(predicate, event.attributes) is True for predicate in conjunction)
