"""The base of matchers that do not share the conjunction store yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tocsin.language.semantics import truth
from tocsin.matching._kernels.gathering import DIGITS, NEEDS_RESIDUAL, gather_ids
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.conjunctions import (
    EncodedClauses,
    EncodedConjunctions,
    encode_conjunctions,
)
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.matcher import Explanation, MatcherStats
from tocsin.matching.oracle import explain_conjunctions
from tocsin.matching.saved import MatcherParts, arrays_of, rebuilt
from tocsin.matching.statistics import Statistics
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import MatcherError, SavedMatcherError, SavedStatisticsError
from tocsin.model.event import Event
from tocsin.structures import hash_index
from tocsin.structures.growth import bytes_of
from tocsin.structures.hash_index import HashIndex


class IndexedMatcher(ABC):
    """A matcher whose conjunctions and events are arrays, in the codes of its vocabulary.

    Safe to use from several threads: one call at a time reads or writes. `vocabulary` may be shared by several
    matchers, which then read the same encoded events. `statistics` tell what events to expect.
    """

    takes_clauses: ClassVar[bool] = False

    # A subclass that keeps more adds its names here, and is saved and opened with them.
    saved_options: ClassVar[tuple[str, ...]] = ()  # attributes that are keywords of the class too
    saved_states: ClassVar[tuple[str, ...]] = ("_state",)  # an array each, or a tuple of arrays

    _state: Any

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self.vocabulary = vocabulary or Vocabulary()
        self._lock = RLock()
        self._statistics: Statistics | None = None

    # changes

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions, and clause forms expanded; any one of those that carry an id satisfies it."""
        with self._lock:
            self.add_encoded(encode_conjunctions(subscriptions.in_conjunctions(), self.vocabulary))

    @abstractmethod
    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""

    def add_encoded_clauses(self, batch: EncodedClauses) -> None:
        """Add clause forms that are encoded already, with this matcher's vocabulary."""
        raise MatcherError(
            f"`{type(self).__name__}` takes no clause forms, but was given {len(batch.ids):,}; expand them first"
        )

    # questions

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        with self._lock:
            encoded = encode_events(events, self.vocabulary)
            found, offsets = self.match_encoded(encoded)
            self._verify(events, found, offsets)
            ids = np.empty(len(found), dtype=np.int64)
            ends = np.empty(len(offsets), dtype=np.int64)
            counts = np.empty(DIGITS, dtype=np.int64)
            gather_ids(self._ids().keys, self._owner(), found, offsets, ids, ends, counts)
            self._maintain(len(events))
            return Matches(ends, ids[: ends[-1]])

    @abstractmethod
    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        One above `NEEDS_RESIDUAL` has predicates left that only Python can tell.
        """

    @abstractmethod
    def _maintain(self, events: int) -> None:
        """Do, after so many events, what need not be done at once."""

    @abstractmethod
    def _ids(self) -> HashIndex:
        """Return the index of subscriptions' ids."""

    @abstractmethod
    def _owner(self) -> NDArray[np.int32]:
        """Return, by conjunction, the entry of its subscription's id."""

    @abstractmethod
    def _expressions_of(self, entry: int) -> list[Clauses]:
        """Return what an entry's subscription is satisfied by, in the order it came; clauses of one are plain."""

    @abstractmethod
    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of conjunctions that are unsure, the clauses that have yet to be told."""

    def _chain(self, number: int, links: NDArray[Any]) -> list[int]:
        """Return a conjunction and those of its subscription that came before it, by the links to them, in the order they came."""
        found = []
        while number >= 0:
            found.append(number)
            number = int(links[number])
        return found[::-1]

    def _verify(self, events: EventBatch, found: Keys, offsets: Keys) -> None:
        """Settle what only Python can tell: a conjunction that fails is written as -1."""
        for place in events.faults:
            found[offsets[place] : offsets[place + 1]] = -1
        unsure = np.flatnonzero(found >= NEEDS_RESIDUAL) if len(found) else found
        if not len(unsure):
            return
        numbers = found[unsure] - NEEDS_RESIDUAL
        places = np.searchsorted(offsets, unsure, side="right") - 1
        asked = self._residual_clauses(np.unique(numbers).tolist())
        known: dict[tuple[int, int], bool] = {}  # the same predicate is the same object
        for i, (event, number) in enumerate(zip(places.tolist(), numbers.tolist(), strict=True)):
            for clause in asked[number]:
                for predicate in clause:
                    answer = known.get((event, id(predicate)))
                    if answer is None:
                        answer = truth(predicate, events.attributes(event)) is True
                        known[event, id(predicate)] = answer
                    if answer:
                        break
                else:
                    numbers[i] = -1
                    break
        found[unsure] = numbers

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Return every conjunction with its subscription's id, as an array of one."""
        for ids, clauses in self._all():
            if _is_conjunction(clauses):
                yield ids, _conjunction(clauses)

    def clauses(self) -> Iterator[tuple[IdArray, Clauses]]:
        """Return every clause form with its subscription's id, as an array of one."""
        return ((ids, clauses) for ids, clauses in self._all() if not _is_conjunction(clauses))

    def _all(self) -> Iterator[tuple[IdArray, Clauses]]:
        with self._lock:
            index = self._ids()
            for entry in range(hash_index.top_entry(index)):
                ids = index.keys[entry, :1].copy()
                if hash_index.find(index, ids[0], 0, 0) == entry:  # others were removed
                    yield from ((ids, clauses) for clauses in self._expressions_of(entry))

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        with self._lock:
            entry = hash_index.find(self._ids(), id, 0, 0)
            if entry < 0:
                raise MatcherError(f"no subscription has the id {id}")
            held = self._expressions_of(entry)
        return explain_conjunctions(
            event,
            id,
            [_conjunction(clauses) for clauses in held if _is_conjunction(clauses)],
            [clauses for clauses in held if not _is_conjunction(clauses)],
        )

    @abstractmethod
    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""

    def _bytes(self) -> int:
        return sum(
            bytes_of(state) if isinstance(state, tuple) else state.nbytes
            for state in (getattr(self, name) for name in self.saved_states)
        )

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, and the words of the predicates that this matcher holds."""
        with self._lock:
            holding = self._vocabulary_use()  # first: what is under way arrives, and arrays may grow for it
            yield MatcherParts(
                {name: getattr(self, name) for name in self.saved_options},
                {
                    array: values
                    for name in self.saved_states
                    for array, values in arrays_of(getattr(self, name), name.lstrip("_")).items()
                },
                {} if self._statistics is None else {"statistics": [self._statistics.to_document()]},
                vocabulary=self.vocabulary.part(*holding),
            )

    @abstractmethod
    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the tags and keys of the predicates that this matcher has told its vocabulary to hold."""

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        with self._lock:
            for name in self.saved_states:
                like = getattr(self, name)
                setattr(self, name, rebuilt(like, parts.arrays, name.lstrip("_")))
            for document in parts.documents.get("statistics", ()):
                try:
                    self._statistics = Statistics.from_document(document)
                except SavedStatisticsError as fault:
                    raise SavedMatcherError(f"its statistics: {fault}") from None


def _is_conjunction(clauses: Clauses) -> bool:
    return all(len(clause) == 1 for clause in clauses)


def _conjunction(clauses: Clauses) -> Conjunction:
    return tuple(clause[0] for clause in clauses)
