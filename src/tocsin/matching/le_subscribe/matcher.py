"""What Le Subscribe's matchers have in common: a registry of predicates, and conjunctions in clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language import parse_condition, to_dnf
from tocsin.language.semantics import truth
from tocsin.matching.batches import ConjunctionBatch, EventBatch, IdArray, Matches
from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedConjunctions, encode_conjunctions
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe import state as arrays
from tocsin.matching.le_subscribe._kernels.access import place, residuals_of, slots_of, take_out
from tocsin.matching.le_subscribe._kernels.adaptation import sample_all
from tocsin.matching.le_subscribe._kernels.greedy import Sample
from tocsin.matching.le_subscribe._kernels.matching import UNSURE, gather_ids, match
from tocsin.matching.le_subscribe._kernels.predicates import decay, post, register, unpost
from tocsin.matching.le_subscribe._kernels.probability import expect
from tocsin.matching.le_subscribe.expectations import (
    equality_probabilities,
    joint_probabilities,
    known_correlations,
)
from tocsin.matching.le_subscribe.state import CHECKS, EVENTS, SEEN, VISITS, WEIGHT, State, new_state
from tocsin.matching.le_subscribe.tables import Correlations, new_sample, with_correlations
from tocsin.matching.matcher import Explanation, MatcherStats
from tocsin.matching.oracle import explain_conjunctions
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.model.conditions import Conjunction, Predicate
from tocsin.model.errors import MatcherError, SavedMatcherError, SavedStatisticsError
from tocsin.model.event import Event
from tocsin.structures import hash_index
from tocsin.structures.chunked_lists import LARGEST, WIDTH
from tocsin.structures.growth import bytes_of

__all__ = ["ClusteredMatcher"]

_SLICE: Final = 1 << 16  # conjunctions that are given room at a time
_MEMORY: Final = 50_000  # events after which a count weighs half
_SAMPLE: Final = 4096  # conjunctions by which tables are told how their attributes are correlated


class ClusteredMatcher:
    """Keeps each conjunction in one cluster, under an access predicate that an event must satisfy to reach it.

    Safe to use from several threads: one call at a time reads or writes. `vocabulary` may be shared by several
    matchers, which then read the same encoded events. `statistics` tell what events to expect.
    """

    prefetching = True
    asking = True  # whether a wide run of ordered predicates may be asked instead of told

    # A subclass that keeps more adds its names here, and is saved and opened with them.
    saved_options: ClassVar[tuple[str, ...]] = ()  # attributes that are keywords of the class too
    saved_states: ClassVar[tuple[str, ...]] = (
        "_state",
    )  # attributes that are an array, or a tuple of arrays

    def __init__(self, *, vocabulary: Vocabulary | None = None, statistics: Statistics | None = None) -> None:
        self.vocabulary = vocabulary or Vocabulary()
        self._state: State = new_state()
        self._widest = 0  # predicates of the longest conjunction so far
        self._lock = RLock()
        self._statistics: Statistics | None = None
        if statistics is not None:
            self.use_statistics(statistics)

    # changes

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions; any one of those that carry an id satisfies it."""
        with self._lock:
            self.add_encoded(encode_conjunctions(subscriptions.in_conjunctions(), self.vocabulary))

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            slots = self._register(batch)
            sizes = np.diff(batch.offsets)
            self._widest = max(self._widest, int(sizes.max(initial=0)))
            for begin in range(0, len(batch.ids), _SLICE):
                end = min(begin + _SLICE, len(batch.ids))
                widest = int(sizes[begin:end].max())
                done = begin
                while done < end:
                    self._state = arrays.with_room(self._state, end - done, 1, widest)
                    done = self._place(batch, slots, done, end)

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        # Kernels are compiled once more for an array that they may not write to.
        wanted = np.require(ids, dtype=np.int64, requirements=["C", "W"])
        with self._lock:
            gone = np.empty((max(256, 8 * min(len(wanted), _SLICE)), 3), dtype=np.int64)
            found = np.zeros(1, dtype=np.int64)
            done = 0
            while done < len(wanted):
                reached = self._take_out(wanted, done, gone, found)
                if reached == done and not found[0]:
                    gone = np.empty((2 * len(gone), 3), dtype=np.int64)
                self._release(gone[: found[0]])
                done = reached

    def _register(self, batch: EncodedConjunctions) -> Keys:
        """Return the slot of each predicate; see to the lists and to the vocabulary of new ones."""
        self._state = arrays.with_fields(self._state, self.vocabulary.names.top)
        slots = np.empty(len(batch.tags), dtype=np.int64)
        ops = batch.tags >> FIELD_BITS
        indexed = int(np.count_nonzero((ops >= Op.NE) & (ops <= Op.GE)))
        done = 0
        while done < len(slots):
            left = len(slots) - done
            held = hash_index.top_entry(self._state.predicates.entries)
            self._state = arrays.with_room(self._state, 0, min(left, 1024 + held // 4), 1)
            self._state = arrays.with_runs(self._state, min(left, indexed, 1024 + held // 4))
            done = register(self._state, batch, done, self.asking, slots)
        new = slots < 0
        if new.any():
            self.vocabulary.hold(batch.tags[new], batch.lows[new])
            if self._statistics is not None:
                fresh = new & (ops == Op.EQ)
                self._expect(-1 - slots[fresh], self._state.totals[EVENTS])
            lists = new & ((ops == Op.IN) | (ops == Op.NOT_IN))
            for slot, code in zip((-1 - slots[lists]).tolist(), batch.lows[lists].tolist(), strict=True):
                fields, keys = self.vocabulary.members(code)
                done = 0
                while done < len(fields):
                    self._state = arrays.with_runs(self._state, len(fields) - done)
                    done = post(self._state.fields.posted, self._state.postings, slot, fields, keys, done)
        return slots

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Take it that events like those of the statistics have just come: `weight` of them, if it is given.

        Else as many as the statistics tell of, up to the number after which a count weighs half. They weigh less
        and less as events come. What is added later is expected to hold as often as the statistics say, too.
        """
        with self._lock:
            self._statistics = statistics
            state = self._state
            number = min(statistics.events, _MEMORY) if weight is None else weight
            events = number * state.totals[WEIGHT]
            held = state.predicates.uses[: hash_index.top_entry(state.predicates.entries)] > 0
            tags = state.predicates.entries.keys[: len(held), 0]
            self._expect(np.flatnonzero(held & (tags >> FIELD_BITS == Op.EQ)), events)
            state.totals[EVENTS] += events
            with_correlations(state, self._correlations(self._sample()))
            expect(state, events, joint_probabilities(statistics, self.vocabulary, state))

    def _expect(self, slots: Keys, events: float) -> None:
        """Count so many events towards equalities, as many for each as the statistics say."""
        if self._statistics is not None and len(slots):
            keys = self._state.predicates.entries.keys[slots]
            probable = equality_probabilities(self._statistics, self.vocabulary, keys[:, 0], keys[:, 1])
            self._state.predicates.hits[slots] += events * probable

    def _correlations(self, sample: Sample) -> Correlations:
        """Return what the statistics say of the equalities of a sample of conjunctions."""
        if self._statistics is None or not self._statistics.groups:
            return {}
        return known_correlations(self._statistics, self.vocabulary, self._state, sample)

    def _sample(self) -> Sample:
        sample = new_sample(_SAMPLE)
        sample_all(self._state, max(1, int(self._state.conjunctions.counters[2]) // _SAMPLE), sample)
        return sample

    def _place(self, batch: EncodedConjunctions, slots: Keys, begin: int, end: int) -> int:
        return place(self._state, batch.ids[:end], batch.offsets, slots, begin)

    def _take_out(self, ids: IdArray, begin: int, gone: Keys, found: Keys) -> int:
        return take_out(self._state, ids, begin, gone, found)

    def _release(self, gone: Keys) -> None:
        """Take the lists of slots that are gone out of the index, and their words out of the vocabulary."""
        if not len(gone):
            return
        ops = gone[:, 1] >> FIELD_BITS
        for slot, code in gone[(ops == Op.IN) | (ops == Op.NOT_IN)][:, (0, 2)].tolist():
            unpost(self._state.fields.posted, self._state.postings, slot, *self.vocabulary.members(code))
        self.vocabulary.release(gone[:, 1], gone[:, 2])

    # questions

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        with self._lock:
            encoded = encode_events(events, self.vocabulary)
            found, offsets = self.match_encoded(encoded)
            self._verify(events, found, offsets)
            ids = np.empty(len(found), dtype=np.int64)
            ends = np.empty(len(offsets), dtype=np.int64)
            gather_ids(self._state.ids.keys, self._state.conjunctions.owner, found, offsets, ids, ends)
            return Matches(ends, ids[: ends[-1]])

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        One above `UNSURE` has predicates left that only Python can tell.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(8 * LARGEST, 2 * count), dtype=np.int64)
        self._prepare(events)
        done = 0
        while done < count:
            reached = self._match(events, done, found, offsets)
            if reached < count:
                more = np.empty(4 * len(found), dtype=np.int64)
                more[: offsets[reached]] = found[: offsets[reached]]
                found = more
            done = reached
        decay(
            self._state.totals, self._state.predicates.hits, self._state.access.hits, 0.5 ** (count / _MEMORY)
        )
        return found[: offsets[-1]], offsets

    def _prepare(self, events: EncodedEvents) -> None:
        """Make room for what an event may reach, and for attributes that another matcher has brought."""
        self._state = arrays.with_fields(self._state, self.vocabulary.names.top)
        spare = 4 * int(self._state.tables.used[0]) + 8 + LARGEST
        if len(events.fields) + spare > len(self._state.scratch):
            needed = int(np.diff(events.offsets).max(initial=0)) + spare
            if needed > len(self._state.scratch):
                self._state = self._state._replace(scratch=np.zeros(2 * needed, dtype=np.int64))

    def _match(self, events: EncodedEvents, begin: int, found: Keys, offsets: Keys) -> int:
        return match(self._state, events, begin, self.prefetching, found, offsets)

    def _verify(self, events: EventBatch, found: Keys, offsets: Keys) -> None:
        """Settle what only Python can tell: a conjunction that fails is written as -1."""
        for place_ in events.faults:
            found[offsets[place_] : offsets[place_ + 1]] = -1
        unsure = np.flatnonzero(found >= UNSURE) if len(found) else found
        if not len(unsure):
            return
        numbers = found[unsure] - UNSURE
        slots = np.empty(len(unsure) * (self._widest + 1), dtype=np.int64)
        ends = np.empty(len(unsure) + 1, dtype=np.int64)
        residuals_of(self._state, numbers, slots, ends)
        places = np.searchsorted(offsets, unsure, side="right") - 1
        wanted, bounds = slots[: ends[-1]].tolist(), ends.tolist()
        predicates = {slot: self._predicate(slot) for slot in set(wanted)}
        known: dict[tuple[int, int], bool] = {}
        for i, event in enumerate(places.tolist()):
            for slot in wanted[bounds[i] : bounds[i + 1]]:
                answer = known.get((event, slot))
                if answer is None:
                    answer = truth(predicates[slot], events.attributes(event)) is True
                    known[event, slot] = answer
                if not answer:
                    numbers[i] = -1
                    break
        found[unsure] = numbers

    def _slots(self, number: int) -> NDArray[np.int64]:
        size = slots_of(self._state, number)
        return self._state.scratch[:size].copy()

    def _predicate(self, slot: int) -> Predicate:
        tag, low, high = self._state.predicates.entries.keys[slot].tolist()
        return self.vocabulary.decode(tag, low, high)

    def _conjunction(self, number: int) -> Conjunction:
        """Return a conjunction as it was given, but for the order of its predicates."""
        keys = self._state.predicates.entries.keys
        mask = (1 << FIELD_BITS) - 1

        def order(slot: int) -> tuple[bool, int, int, int]:
            tag = int(keys[slot, 0])
            return tag >> FIELD_BITS == Op.RESIDUAL, tag & mask, tag >> FIELD_BITS, int(keys[slot, 1])

        return tuple(self._predicate(slot) for slot in sorted(self._slots(number).tolist(), key=order))

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Return every conjunction with its subscription's id, as an array of one."""
        with self._lock:
            for entry in range(hash_index.top_entry(self._state.ids)):
                ids = self._state.ids.keys[entry, :1].copy()
                if hash_index.find(self._state.ids, ids[0], 0, 0) == entry:  # others were removed
                    yield from ((ids, conjunction) for conjunction in self._held(entry))

    def _held(self, entry: int) -> list[Conjunction]:
        """Return the conjunctions of a subscription, in the order they came."""
        held = []
        number = int(self._state.first[entry])
        while number >= 0:
            held.append(self._conjunction(number))
            number = int(self._state.conjunctions.sibling[number])
        return held[::-1]

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        with self._lock:
            entry = hash_index.find(self._state.ids, id, 0, 0)
            if entry < 0:
                raise MatcherError(f"no subscription has the id {id}")
            held = self._held(entry)
        return explain_conjunctions(event, id, held)

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        with self._lock:
            state = self._state
            _, _, conjunctions, predicates = state.conjunctions.counters.tolist()
            return MatcherStats(
                hash_index.live_entries(state.ids), conjunctions, predicates, self._bytes(), self._details()
            )

    def _bytes(self) -> int:
        return bytes_of(self._state)

    def _details(self) -> dict[str, Any]:
        state = self._state
        seen = max(float(state.totals[SEEN]), 1.0)
        return {
            "distinct predicates": hash_index.live_entries(state.predicates.entries),
            "access predicates": hash_index.live_entries(state.access.entries) - 1,
            "clusters": int(state.clusters.counters[5]),
            "tables": int(np.count_nonzero(state.tables.width)),
            "checks per event": float(state.totals[CHECKS]) / seen,
            "clusters per event": float(state.totals[VISITS]) / seen,
        }

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, and the words of the predicates that this matcher holds."""
        with self._lock:
            held = self._state.predicates
            top = hash_index.top_entry(held.entries)
            keys = held.entries.keys[:top][held.uses[:top] > 0]
            yield MatcherParts(
                {name: getattr(self, name) for name in self.saved_options},
                {
                    array: values
                    for name in self.saved_states
                    for array, values in arrays.arrays_of(getattr(self, name), name.lstrip("_")).items()
                },
                {} if self._statistics is None else {"statistics": [self._statistics.to_document()]},
                vocabulary=self.vocabulary.part(keys[:, 0], keys[:, 1]),
            )

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        with self._lock:
            for name in self.saved_states:
                like = getattr(self, name)
                setattr(self, name, arrays.rebuilt(like, parts.arrays, name.lstrip("_")))
            self._widest = int(self._state.clusters.rows[:, WIDTH].max()) + arrays.WIDEST
            for document in parts.documents.get("statistics", ()):
                try:
                    self._statistics = Statistics.from_document(document)
                except SavedStatisticsError as fault:
                    raise SavedMatcherError(f"its statistics: {fault}") from None

    @classmethod
    def warm_up(cls) -> None:
        """Compile what is not compiled yet, by using a small matcher of this kind in every way."""
        matcher = cls._eager()
        texts = [f"a = {i % 4} and b = {i // 4 % 4} and c > {i % 3} and d != {i % 2}" for i in range(200)]
        texts += [
            "a in (1, 2) and e is present",
            "b between 1 and 2",
            "s like '%x'",
            "s like '%x_'",
            "s ~ 'x'",
        ]
        texts += ["s contains 'x'", "s starts with 'x' and e is missing"]
        matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
        events: list[dict[str, object]] = [{"a": 1, "b": 1, "c": 2, "d": 3, "s": "x"}]
        matcher.match(EventBatch.of_dicts(events))
        matcher.use_statistics(Statistics.of(events, groups=[("a", "b")]))
        matcher.remove(np.arange(1, len(texts)))
        matcher.match(EventBatch.of_dicts([{"a": 0}]))

    @classmethod
    def _eager(cls) -> ClusteredMatcher:
        """Return a matcher that does at once whatever it may ever do."""
        return cls()
