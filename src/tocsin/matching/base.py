"""The base of matchers over encoded batches: ids, recall, removal, residual predicates, explanations and saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import RLock
from typing import Any, ClassVar, Final, Self

import numpy as np

from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.language.semantics import truth
from tocsin.matching._kernels.gathering import DIGITS, NEEDS_RESIDUAL, gather_ids
from tocsin.matching._kernels.single_event import NO_ROOM, NO_STATE_ROOM, NOT_EXACT
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.matching.column_scan import ROWS_A_COLUMN, satisfying
from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store._kernels.numbers import take_from
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.conjunctions import (
    EncodedClauses,
    EncodedConjunctions,
    encode_clauses,
    encode_conjunctions,
)
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.matcher import Explanation, MatcherStats
from tocsin.matching.oracle import explain_conjunctions
from tocsin.matching.saved import MatcherParts, arrays_of, rebuilt
from tocsin.matching.single_events import SingleEvents
from tocsin.matching.statistics import Statistics
from tocsin.model.conditions import Conjunction, alternatives_of
from tocsin.model.errors import MatcherError, SavedMatcherError, SavedStatisticsError
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.structures import hash_index
from tocsin.structures.growth import bytes_of

MAINTAINED: Final = 64  # events that are matched one by one between two rounds of maintenance
SLICE: Final = 1 << 16  # expressions that are removed or recalled at a time

# A small workload that reaches every kernel: see `warm_up`.
_EVENTS: Final[list[dict[str, object]]] = [{"a": 1, "b": 1, "c": 2, "d": 3, "s": "x"}, {"a": 0}]
_TEXTS: Final = (
    *(f"a = {i % 4} and b = {i // 4 % 4} and c > {i % 3} and d != {i % 2}" for i in range(200)),
    *(
        "a in (1, 2) and e is present",
        "b between 1 and 2",
        "(a = 1 or c = 2) and b > 1",
        "a > 3 and b < 5",
        "true",
    ),
    *("s like '%x'", "s like '%x_'", "s ~ 'x'", "s contains 'x'", "s starts with 'x' and e is missing"),
)


class IndexedMatcher(ABC):
    """A matcher whose expressions and events are arrays, in the codes of its vocabulary.

    Safe to use from several threads: one call at a time reads or writes. `vocabulary` may be shared by several
    matchers, which then read the same encoded events. `statistics` describe the events to expect.
    """

    takes_clauses: ClassVar[bool] = False

    # A subclass that keeps more adds its names here, and is saved and opened with them.
    saved_options: ClassVar[tuple[str, ...]] = ()  # attributes that are keywords of the class too
    saved_states: ClassVar[tuple[str, ...]] = ("_state",)  # an array each, or a tuple of arrays

    _state: Any

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary or Vocabulary()
        self._lock = RLock()
        self._statistics: Statistics | None = None
        self._removing: Keys | None = None  # numbers whose ids are gone already, then -1
        self._single_events = SingleEvents(self.vocabulary)
        self._unmaintained = 0  # events that were matched one by one since the last maintenance

    @property
    def _store(self) -> ConjunctionStore:
        """Return the store of this matcher's expressions."""
        store: ConjunctionStore = self._state.store
        return store

    # adding and removing

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and CNFs; any one of the expressions that carry an id satisfies it.

        All are added, or none. CNFs are expanded to conjunctions unless the matcher `takes_clauses`.
        """
        with self._lock:
            if not self.takes_clauses:
                subscriptions = subscriptions.in_conjunctions()
            encoded = encode_conjunctions(subscriptions, self.vocabulary)
            if subscriptions.clauses:
                self.add_encoded_clauses(_joined(encoded, encode_clauses(subscriptions, self.vocabulary)))
            else:
                self.add_encoded(encoded)

    @abstractmethod
    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""

    def add_encoded_clauses(self, batch: EncodedClauses) -> None:
        """Add CNFs that are encoded already, with this matcher's vocabulary."""
        raise MatcherError(
            f"`{type(self).__name__}` stores no CNFs, but was given {len(batch.ids):,}; expand them first"
        )

    def remove(self, ids: IdArray) -> None:
        """Remove all expressions of these ids."""
        # Kernels are compiled once more for an array that they may not write to.
        wanted = np.require(ids, dtype=np.int64, requirements=["C", "W"])
        with self._lock:
            self._finish_pending()
            size, done = max(64, min(len(wanted), SLICE)), 0
            while done < len(wanted):
                # Written by the kernel, so that an interrupt cannot come between taking the ids and knowing it.
                self._removing = np.full(size, -1, dtype=np.int64)
                done, found = take_from(self._store, wanted, done, self._removing)
                if not found:  # one id has more expressions than there is room for, or none has any
                    size *= 2
                self._finish_removal()

    def _finish_removal(self) -> None:
        """Take out the expressions whose ids are gone, however far an exception let an earlier call come."""
        if self._removing is not None:
            numbers = self._removing[self._removing >= 0]
            self._take_out(numbers[self._store.owner[numbers] >= 0])
            self._removing = None

    def _finish_pending(self) -> None:
        """Finish the work of an earlier call that an exception interrupted."""
        self._finish_removal()

    @abstractmethod
    def _take_out(self, numbers: Keys) -> None:
        """Take expressions that their ids no longer lead to out of the index, and free their numbers."""

    # recall

    @abstractmethod
    def _recall(self, numbers: Keys, begin: int, into: Expressions) -> int:
        """Write expressions from `begin` on, as many as there is room for; return where it stopped."""

    def _recalled(self, numbers: Keys) -> Iterator[Expressions]:
        """Yield stored expressions, a slice of them at a time, without the members of their lists."""
        done, room = 0, max(64, 8 * min(len(numbers), SLICE))
        while done < len(numbers):
            into = conjunction_store.blank_expressions(min(len(numbers) - done, SLICE), room)
            reached = self._recall(numbers, done, into)
            if reached == done:
                room *= 2
                continue
            yield conjunction_store.first_expressions(into, reached - done)
            done = reached

    def _decode(self, numbers: list[int]) -> list[Clauses]:
        """Return the clauses of expressions; a conjunction's have one predicate each."""
        decode = self.vocabulary.decode
        found: list[Clauses] = []
        for expressions in self._recalled(np.array(numbers, dtype=np.int64)):
            predicates = [decode(*row) for row in np.stack(expressions[3:6], axis=1).tolist()]
            bounds, offsets = expressions.bounds.tolist(), expressions.offsets.tolist()
            clauses = [tuple(predicates[a:b]) for a, b in pairwise(bounds)]
            found += (tuple(clauses[a:b]) for a, b in pairwise(offsets))
        return found

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, for each of these expressions, the clauses that have residual predicates."""
        decode = self.vocabulary.decode
        found: dict[int, list[Any]] = defaultdict(list)
        for expressions in self._recalled(np.array(numbers, dtype=np.int64)):
            residual = np.flatnonzero(expressions.tags >> FIELD_BITS == Op.RESIDUAL)
            clauses = np.unique(np.searchsorted(expressions.bounds, residual, side="right") - 1)
            places = np.searchsorted(expressions.offsets, clauses, side="right") - 1
            rows = np.stack(expressions[3:6], axis=1)
            for number, clause in zip(expressions.numbers[places].tolist(), clauses.tolist(), strict=True):
                begin, end = expressions.bounds[clause : clause + 2].tolist()
                clause_rows = rows[begin:end].tolist()
                found[number].append(
                    tuple(one for row in clause_rows for one in alternatives_of(decode(*row)))
                )
        return {number: tuple(found[number]) for number in numbers}

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Yield every conjunction with its subscription's id, as an array of one."""
        for ids, clauses in self._all():
            if _is_conjunction(clauses):
                yield ids, _conjunction(clauses)

    def clauses(self) -> Iterator[tuple[IdArray, Clauses]]:
        """Return every CNF with its subscription's id, as an array of one."""
        return ((ids, clauses) for ids, clauses in self._all() if not _is_conjunction(clauses))

    def _all(self) -> Iterator[tuple[IdArray, Clauses]]:
        """Yield every stored conjunction or CNF with its id."""
        with self._lock:
            self._finish_pending()
            index = self._store.ids
            for entry in range(hash_index.top_entry(index)):
                ids = index.keys[entry, :1].copy()
                if hash_index.find(index, ids[0], 0, 0) == entry:  # others were removed
                    yield from (
                        (ids, clauses)
                        for clauses in self._decode(conjunction_store.chain_of(self._store, entry))
                    )

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        with self._lock:
            self._finish_pending()
            held = self._decode(self._numbers_of(id))
        return explain_conjunctions(
            event,
            id,
            [_conjunction(clauses) for clauses in held if _is_conjunction(clauses)],
            [clauses for clauses in held if not _is_conjunction(clauses)],
        )

    def _numbers_of(self, id: int) -> list[int]:
        """Return the expressions of a subscription, in the order in which they were added."""
        entry = hash_index.find(self._store.ids, id, 0, 0)
        if entry < 0:
            raise MatcherError(f"no subscription has the id {id}")
        return conjunction_store.chain_of(self._store, entry)

    # matching

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        with self._lock:
            found, offsets = self.match_encoded(encode_events(events, self.vocabulary))
            matches = self._gather(events, found, offsets)
            self._maintain(len(events))
            return matches

    def match_one(self, attributes: Mapping[str, Value]) -> IdArray:
        """Return the ids of the subscriptions that one event satisfies, ascending and without repeats."""
        with self._lock:
            found = self._find_one(attributes)
            self._unmaintained += 1
            if self._unmaintained == MAINTAINED:
                self._unmaintained = 0
                self._maintain(MAINTAINED)
            return found

    def _find_one(self, attributes: Mapping[str, Value]) -> IdArray:
        """Encode one event, and find, count and gather in one call of a kernel."""
        return self._find_encoded(attributes, self._single_events.encode(attributes))

    def _find_encoded(self, attributes: Mapping[str, Value], pairs: int) -> IdArray:
        """Do so for an event that is encoded already, in up to so many pairs."""
        events = self._single_events
        while (count := self._match_event(events.address, pairs)) < 0:
            if count == NO_ROOM:
                events.make_room(self._wanted_room())
            elif count == NO_STATE_ROOM:
                self._make_state_room()
            elif count == NOT_EXACT:
                pairs = events.encode_exactly(attributes)
            else:
                return self._gather(EventBatch([attributes]), *events.found()).ids
        return events.ids(count)

    @abstractmethod
    def _match_event(self, event: Any, pairs: int) -> int:
        """Match the event at this address, of up to so many pairs, by a kernel that ends with `gather_single`."""

    def _wanted_room(self) -> int:
        """Return how many expressions the last event may satisfy, or 0 if the kernel did not say."""
        return 0

    def _make_state_room(self) -> None:
        """Make room in the state for the last event."""
        raise NotImplementedError  # by matchers whose kernel returns NO_STATE_ROOM

    @abstractmethod
    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the expressions that each event satisfies, and where each event's begin.

        A number above `NEEDS_RESIDUAL` is an expression whose residual predicates are still to be evaluated.
        """

    def _maintain(self, events: int) -> None:  # noqa: B027 - most matchers adapt, some have nothing to do
        """Do maintenance in proportion to the events that were matched."""

    def _gather(self, events: EventBatch, found: Keys, offsets: Keys) -> Matches:
        """Return the ids of expressions that events satisfy, once their residual predicates are evaluated."""
        self._verify(events, found, offsets)
        ids, ends = self._ids_of(found, offsets)
        return Matches(ends, ids)

    def _ids_of(self, found: Keys, offsets: Keys) -> tuple[Keys, Keys]:
        """Return the ids of each event's expressions, ascending and without repeats, and where each event's begin."""
        return ids_of(self._store, found, offsets)

    def _verify(self, events: EventBatch, found: Keys, offsets: Keys) -> None:
        """Evaluate residual predicates; an expression that fails is replaced by -1."""
        for place in events.faults:
            found[offsets[place] : offsets[place + 1]] = -1
        open_ = np.flatnonzero(found >= NEEDS_RESIDUAL) if len(found) else found
        if not len(open_):
            return
        numbers = found[open_] - NEEDS_RESIDUAL
        places = np.searchsorted(offsets, open_, side="right") - 1
        residual = self._residual_clauses(np.unique(numbers).tolist())
        pending: Sequence[int] = range(len(numbers))
        if events.has_columns:
            pending = _verify_columns(events, residual, places, numbers)
        known: dict[tuple[int, int], bool] = {}  # the same predicate is the same object
        for i in pending:
            event = int(places[i])
            for clause in residual[int(numbers[i])]:
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
        found[open_] = numbers

    @classmethod
    def warm_up(cls) -> None:
        """Compile all kernels that are not compiled yet, by using a small matcher of this kind in every way."""
        matcher, normal = cls._eager(), to_cnf if cls.takes_clauses else to_dnf
        matcher.add(ConjunctionBatch.of((i, normal(parse_condition(text))) for i, text in enumerate(_TEXTS)))
        matcher._use(_EVENTS)  # noqa: SLF001 - of this class
        matcher.remove(np.arange(1, len(_TEXTS)))
        matcher.match(EventBatch.of_dicts(_EVENTS))

    @classmethod
    def _eager(cls) -> Self:
        """Return a matcher that does at once whatever it may ever do."""
        return cls()

    def _use(self, events: list[dict[str, object]]) -> None:
        """Match events, and do whatever else compiles a kernel."""
        batch = EventBatch.of_dicts(events)
        self.match(batch)
        self.match_one(batch.attributes(0))

    # statistics of the matcher

    def stats(self) -> MatcherStats:
        """Return how much is stored and what that costs."""
        with self._lock:
            counters = self._store.counters
            return MatcherStats(
                hash_index.live_entries(self._store.ids),
                int(counters[StoreCounter.LIVE]),
                int(counters[StoreCounter.PREDICATES]),
                self._bytes(),
                self._details(),
            )

    @abstractmethod
    def _details(self) -> dict[str, int | float]:
        """Return the matcher's own figures by name."""

    def _bytes(self) -> int:
        return sum(
            bytes_of(state) if isinstance(state, tuple) else state.nbytes
            for state in (getattr(self, name) for name in self.saved_states)
        )

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, and the words of the predicates that this matcher stores."""
        with self._lock:
            self._finish_pending()
            used = self._vocabulary_use()  # before the arrays are read: it may make them grow
            yield MatcherParts(
                {name: getattr(self, name) for name in self.saved_options},
                {
                    array: values
                    for name in self.saved_states
                    for array, values in arrays_of(getattr(self, name), name.lstrip("_")).items()
                },
                {} if self._statistics is None else {"statistics": [self._statistics.to_document()]},
                vocabulary=self.vocabulary.part(*used),
            )

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the tags and keys of predicates, each as often as this matcher counted a use in its vocabulary."""
        none = np.empty(0, dtype=np.int64)
        stored = [(e.tags, e.lows) for e in self._recalled(conjunction_store.numbers_in_use(self._store))]
        tags, lows = zip((none, none), *stored, strict=True)
        return np.concatenate(tags), np.concatenate(lows)

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


def _verify_columns(
    events: EventBatch, residual: Mapping[int, Clauses], places: IdArray, numbers: Keys
) -> Sequence[int]:
    """Evaluate by the column the expressions that many events may satisfy; return what is left to be evaluated."""
    order = np.argsort(numbers, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(numbers[order])) + 1).tolist(), len(order)]
    pending: list[int] = []
    for begin, end in pairwise(bounds):
        asked = order[begin:end]
        if len(asked) * ROWS_A_COLUMN < len(events):
            pending += asked.tolist()
        else:
            rows = places[asked]
            left = satisfying(residual[int(numbers[asked[0]])], rows, events)
            numbers[asked[~np.isin(rows, left, assume_unique=True)]] = -1
    return pending


def ids_of(store: ConjunctionStore, found: Keys, offsets: Keys) -> tuple[Keys, Keys]:
    """Return the ids of events' expressions, ascending and without repeats, and where each event's begin; `found` is written over."""
    ids = np.empty(int(offsets[-1] - offsets[0]), dtype=np.int64)
    ends = np.empty(len(offsets), dtype=np.int64)
    gather_ids(store.ids.keys, store.owner, found, offsets, ids, ends, np.empty(DIGITS, dtype=np.int64))
    return ids[: ends[-1]], ends


def longer(found: Keys, used: int, least: int = 0) -> Keys:
    """Return an array with the first `used` values of `found`, four times as long, or as long as `least`."""
    more = np.empty(max(4 * len(found), least), dtype=np.int64)
    more[:used] = found[:used]
    return more


def _joined(one: EncodedConjunctions, many: EncodedClauses) -> EncodedClauses:
    """Return conjunctions and CNFs as CNFs."""
    count = len(one.tags)
    return EncodedClauses(
        np.concatenate([one.ids, many.ids]),
        np.concatenate([one.offsets, many.offsets[1:] + count]),
        np.concatenate([np.arange(count + 1, dtype=np.int64), many.bounds[1:] + count]),
        *(np.concatenate(pair) for pair in zip(one[2:], many[3:], strict=True)),
    )


def _is_conjunction(clauses: Clauses) -> bool:
    return all(len(clause) == 1 for clause in clauses)


def _conjunction(clauses: Clauses) -> Conjunction:
    return tuple(clause[0] for clause in clauses)
