"""The base of Le Subscribe's matchers: a registry of predicates, and conjunctions in clusters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tocsin.matching.base import SLICE, IndexedMatcher, longer
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe import state as arrays
from tocsin.matching.le_subscribe._kernels.access import place, recall_slots, take_out
from tocsin.matching.le_subscribe._kernels.adaptation import sample_all
from tocsin.matching.le_subscribe._kernels.greedy import Sample
from tocsin.matching.le_subscribe._kernels.matching import match, match_event
from tocsin.matching.le_subscribe._kernels.predicates import decay, post, register_predicates, unpost
from tocsin.matching.le_subscribe._kernels.probability import expect
from tocsin.matching.le_subscribe.expectations import joint_probabilities, known_correlations
from tocsin.matching.le_subscribe.state import ClusterStateAddress, ClusterTotal, State, new_state
from tocsin.matching.le_subscribe.tables import Correlations, new_sample, set_correlations
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.matching.statistics.encoded import equality_probabilities
from tocsin.structures import hash_index
from tocsin.structures.addresses import Addressed
from tocsin.structures.chunked_lists import LARGEST, ListRow

_MEMORY: Final = 50_000  # events after which a count weighs half
ONE_EVENT: Final = 0.5 ** (1 / _MEMORY)
_FEW: Final = 64  # predicates
# As plain integers: an array is compared with a member of an enum in four times the time.
_EQ, _NE, _GE, _IN, _NOT_IN = (int(op) for op in (Op.EQ, Op.NE, Op.GE, Op.IN, Op.NOT_IN))
_SAMPLE: Final = 4096  # conjunctions by which the correlation of tables is estimated


class ClusteredMatcher(IndexedMatcher):
    """Keeps each conjunction in one cluster, under an access predicate that an event must satisfy to reach it."""

    prefetching = True
    evaluates_wide_runs = True  # instead of marking all their satisfied predicates for each event

    def __init__(self, *, vocabulary: Vocabulary | None = None, statistics: Statistics | None = None) -> None:
        super().__init__(vocabulary)
        self._state: State = new_state()
        self._widest = 0  # predicates of the longest conjunction so far
        self._addressed = Addressed[State](ClusterStateAddress)
        if statistics is not None:
            self.use_statistics(statistics)

    # changes

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            slots = self._register(batch)
            if len(batch.ids) == 1:  # most often there is room: the kernel tells, for less than making sure
                self._widest = max(self._widest, len(slots))
                if self._place(batch, slots, 0, 1) == 1:
                    return
            sizes = np.diff(batch.offsets)
            self._widest = max(self._widest, int(sizes.max(initial=0)))
            for begin in range(0, len(batch.ids), SLICE):
                end = min(begin + SLICE, len(batch.ids))
                widest = int(sizes[begin:end].max())
                done = begin
                while done < end:
                    self._state = arrays.with_room(self._state, end - done, 1, widest)
                    done = self._place(batch, slots, done, end)

    def _take_out(self, numbers: Keys) -> None:
        """Remove conjunctions, and release the vocabulary of predicates that no conjunction uses any more."""
        gone = np.empty((max(256, 8 * min(len(numbers), SLICE)), 3), dtype=np.int64)
        done = 0
        while done < len(numbers):
            reached, found = self._detach(numbers, done, gone)
            if reached == done:
                gone = np.empty((2 * len(gone), 3), dtype=np.int64)
            self._release(gone[:found])
            done = reached

    def _register(self, batch: EncodedConjunctions) -> Keys:
        """Return the slot of each predicate; post the lists of new ones, and hold their words."""
        self._state = arrays.with_fields(self._state, self.vocabulary.names.top)
        slots = np.empty(len(batch.tags), dtype=np.int64)
        ops = batch.tags >> FIELD_BITS
        # A few predicates have room most often: the kernel tells, for less than making sure.
        done = self._find_slots(batch, 0, slots) if len(slots) <= _FEW else 0
        while done < len(slots):
            left = len(slots) - done
            indexed = int(np.count_nonzero((ops >= _NE) & (ops <= _GE)))
            held = hash_index.top_entry(self._state.predicates.entries)
            self._state = arrays.with_room(self._state, 0, min(left, 1024 + held // 4), 1)
            self._state = arrays.with_runs(self._state, min(left, indexed, 1024 + held // 4))
            done = self._find_slots(batch, done, slots)
        new = slots < 0
        if new.any():
            self.vocabulary.retain(batch.tags[new], batch.lows[new])
            if self._statistics is not None:
                fresh = new & (ops == _EQ)
                self._expect(-1 - slots[fresh], self._state.totals[ClusterTotal.EVENTS])
            lists = new & ((ops == _IN) | (ops == _NOT_IN))
            for slot, code in zip((-1 - slots[lists]).tolist(), batch.lows[lists].tolist(), strict=True):
                fields, keys = self.vocabulary.members(code)
                done = 0
                while done < len(fields):
                    self._state = arrays.with_runs(self._state, len(fields) - done)
                    done = post(self._state.fields.posted, self._state.postings, slot, fields, keys, done)
        return slots

    def _find_slots(self, batch: EncodedConjunctions, begin: int, slots: Keys) -> int:
        return register_predicates(
            self._addressed.address(self._state), batch, begin, self.evaluates_wide_runs, slots
        )

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Count events with these statistics as if they had just been matched: `weight` of them, if it is given.

        Else as many as the statistics have, up to the number after which a count weighs half. They weigh less and less
        as events are matched. Predicates that are added later start with their probability by the statistics, too.
        """
        with self._lock:
            self._statistics = statistics
            state = self._state
            number = min(statistics.events, _MEMORY) if weight is None else weight
            events = number * state.totals[ClusterTotal.WEIGHT]
            held = state.predicates.uses[: hash_index.top_entry(state.predicates.entries)] > 0
            tags = state.predicates.entries.keys[: len(held), 0]
            self._expect(np.flatnonzero(held & (tags >> FIELD_BITS == Op.EQ)), events)
            state.totals[ClusterTotal.EVENTS] += events
            set_correlations(state, self._correlations(self._sample()))
            expect(state, events, joint_probabilities(statistics, self.vocabulary, state))

    def _expect(self, slots: Keys, events: float) -> None:
        """Add, to the hits of equalities, their share of so many events by the statistics."""
        if self._statistics is not None and len(slots):
            keys = self._state.predicates.entries.keys[slots]
            probable = equality_probabilities(self._statistics, self.vocabulary, keys[:, 0], keys[:, 1])
            self._state.predicates.hits[slots] += events * probable

    def _correlations(self, sample: Sample) -> Correlations:
        """Return the correlations that the statistics know, of the equalities of a sample of conjunctions."""
        if self._statistics is None or not self._statistics.groups:
            return {}
        return known_correlations(self._statistics, self.vocabulary, self._state, sample)

    def _sample(self) -> Sample:
        sample = new_sample(_SAMPLE)
        sample_all(self._state, max(1, int(self._state.store.counters[StoreCounter.LIVE]) // _SAMPLE), sample)
        return sample

    def _place(self, batch: EncodedConjunctions, slots: Keys, begin: int, end: int) -> int:
        return place(self._addressed.address(self._state), batch.ids[:end], batch.offsets, slots, begin)

    def _detach(self, numbers: Keys, begin: int, gone: Keys) -> tuple[int, int]:
        return take_out(self._state, numbers, begin, gone)

    def _release(self, gone: Keys) -> None:
        """Remove the postings of freed slots, and release their words."""
        if not len(gone):
            return
        ops = gone[:, 1] >> FIELD_BITS
        for slot, code in gone[(ops == _IN) | (ops == _NOT_IN)][:, (0, 2)].tolist():
            unpost(self._state.fields.posted, self._state.postings, slot, *self.vocabulary.members(code))
        self.vocabulary.release(gone[:, 1], gone[:, 2])

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin."""
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(8 * LARGEST, 2 * count), dtype=np.int64)
        self._prepare(int(np.diff(events.offsets).max()) if count > 1 else len(events.fields))
        done = 0
        while done < count:
            reached = self._match(events, done, found, offsets)
            if reached < count:
                found = longer(found, int(offsets[reached]))
            done = reached
        decay(
            self._state.totals, self._state.predicates.hits, self._state.access.hits, 0.5 ** (count / _MEMORY)
        )
        return found[: offsets[-1]], offsets

    def _match_event(self, event: Any, pairs: int) -> int:
        self._prepare(pairs)
        known = self._addressed
        address = known.current if known.state is self._state else known.address(self._state)
        return match_event(address, event, self.prefetching, ONE_EVENT)

    def _prepare(self, pairs: int) -> None:
        """Make room for all access predicates of an event of so many pairs, and for all attributes there are by now."""
        state, names = self._state, self.vocabulary.names.values
        if FIELDS * len(names) > len(state.fields.stamp):  # another matcher may have added some
            self._state = state = arrays.with_fields(state, len(names))
        needed = pairs + 4 * int(state.tables.used[0]) + 8 + LARGEST
        if needed > len(state.scratch):
            self._state = state._replace(scratch=np.zeros(2 * needed, dtype=np.int64))

    def _match(self, events: EncodedEvents, begin: int, found: Keys, offsets: Keys) -> int:
        return match(self._state, events, begin, self.prefetching, found, offsets)

    def _recall(self, numbers: Keys, begin: int, into: Expressions) -> int:
        return recall_slots(self._state, numbers, begin, into)

    def _details(self) -> dict[str, int | float]:
        """Return the sizes of the index and its work per event."""
        state = self._state
        seen = max(float(state.totals[ClusterTotal.SEEN]), 1.0)
        return {
            "distinct predicates": hash_index.live_entries(state.predicates.entries),
            "access predicates": hash_index.live_entries(state.access.entries) - 1,
            "clusters": int(state.clusters.counters[5]),
            "tables": int(np.count_nonzero(state.tables.width)),
            "checks per event": float(state.totals[ClusterTotal.CHECKS]) / seen,
            "clusters per event": float(state.totals[ClusterTotal.VISITS]) / seen,
        }

    # saving

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return each distinct predicate once: the vocabulary holds a slot, not its uses."""
        held = self._state.predicates
        top = hash_index.top_entry(held.entries)
        keys = held.entries.keys[:top][held.uses[:top] > 0]
        return keys[:, 0], keys[:, 1]

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        super().restore(parts)
        self._widest = int(self._state.clusters.rows[:, ListRow.WIDTH].max()) + arrays.WIDEST

    def _use(self, events: list[dict[str, object]]) -> None:
        super()._use(events)
        self.use_statistics(Statistics.of(events, groups=[("a", "b")]))


@register("propagation")
class Propagation(ClusteredMatcher):
    """One equality as access predicate, and no prefetching."""

    prefetching = False


@register("propagation-wp")
class PropagationWithPrefetch(ClusteredMatcher):
    """One equality as access predicate; the next cache lines are prefetched while the current ones are checked."""
