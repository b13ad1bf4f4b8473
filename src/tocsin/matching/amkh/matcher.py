"""AMKH as a matcher (Wu and Yu 2002)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.coordinates import KNOWN
from tocsin.matching.amkh._kernels.matching import decay, match, match_event
from tocsin.matching.amkh._kernels.placement import prepare
from tocsin.matching.amkh._kernels.uses import forget, keep
from tocsin.matching.amkh.choice import choose, cost_of, is_better
from tocsin.matching.amkh.diagnostics import Examined, Lookup, filled_buckets, members_of
from tocsin.matching.amkh.figures import clauses_of, cuts_of, figures_of, recent
from tocsin.matching.amkh.index_pair import IndexPair
from tocsin.matching.amkh.scheme import ALL_CLASSES, Hashing, Scheme
from tocsin.matching.amkh.staleness import COUNTS, Staleness
from tocsin.matching.amkh.state import (
    AmkhStateAddress,
    Bucket,
    Hashed,
    Index,
    IndexTop,
    Setting,
    State,
    StoredColumn,
    Top,
    Total,
)
from tocsin.matching.base import MAINTAINED, SLICE, longer
from tocsin.matching.batches import EventBatch, IdArray
from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Keys, Op
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.matching.stored_matcher import StoredMatcher, with_lists
from tocsin.model.errors import MatcherError, SavedMatcherError
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.structures import hash_index
from tocsin.structures.addresses import Addressed
from tocsin.structures.growth import bytes_of

_SAMPLE: Final = 256  # conjunctions by which schemes are compared
_CUT_SAMPLE: Final = 8192  # conjunctions by which classes are divided
_FEW: Final = 512  # conjunctions up to which there is nothing to choose
_GROWTH: Final = 4  # times as many conjunctions, and the scheme is considered again
_PAUSE: Final = 20_000  # events between two reviews
_FIRST_PAUSE: Final = 2_000
_PACE: Final = 20  # conjunctions that are moved to another index for each event, or each that is added
_MEMORY: Final = 50_000  # events after which a count weighs half
_ONE_EVENT: Final = 0.5 ** (1 / _MEMORY)
_OURS: Final = Scheme(None, 4, 2, equalities=True)  # while there is nothing to choose


@register("amkh")
class Amkh(StoredMatcher):
    """Keeps each conjunction in buckets of a hash table, by its clauses on some attributes.

    Which these are, and into how many classes clauses other than equalities are folded, it chooses itself, and anew
    as subscriptions and events change. `general` and `classes` are the paper's G and B: if G is given, it is
    hashed what the paper hashes. `classes` may be infinite. The table has `buckets` buckets, or as many as there are
    different coordinates. Without `split_weights` and `ranked_classes`, coordinates are computed as in the paper:
    classes by the ids of clauses, one weight for an attribute, of which `weights` gives some.
    """

    saved_states: ClassVar[tuple[str, ...]] = ("_state", "_index")
    saved_options: ClassVar[tuple[str, ...]] = (
        "general",
        "classes",
        "buckets",
        "split_weights",
        "ranked_classes",
        "weights",
    )

    def __init__(
        self,
        *,
        general: int | None = None,
        classes: float | None = None,
        buckets: int | None = None,
        split_weights: bool = True,
        ranked_classes: bool = True,
        weights: Mapping[str, int] | None = None,
        vocabulary: Vocabulary | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        if general is not None and general < 0:
            raise MatcherError(f"`general` is how many general attributes are hashed, not {general}")
        if buckets is not None and buckets < 2:
            raise MatcherError(f"a table has 2 buckets or more, not {buckets}")
        self.general = general
        self.classes = ALL_CLASSES if classes == math.inf else None if classes is None else int(classes)
        self.buckets = buckets
        self.split_weights = split_weights
        self.ranked_classes = ranked_classes
        self.weights = dict(weights or {})
        super().__init__(vocabulary)
        self._state: State = arrays.new_state()
        self._addressed = Addressed[Hashed](AmkhStateAddress)
        self._scheme = self._first_scheme()
        self._indexes = IndexPair(self._empty_index(self._scheme, None))
        self._moved = 0  # conjunctions that were considered for a move to another index,
        self._considered = 0  # conjunctions when the scheme was last considered
        self._staleness = Staleness()
        self._pause = _FIRST_PAUSE
        self._recent: EncodedEvents | None = None
        if statistics is not None:
            self.use_statistics(statistics)

    @property
    def _index(self) -> Index:
        return self._indexes.current

    @_index.setter
    def _index(self, index: Index) -> None:
        self._indexes.current = index

    # schemes

    @property
    def scheme(self) -> Scheme:
        """Return the present scheme; its attributes are field numbers."""
        return self._scheme

    def _first_scheme(self) -> Scheme:
        if self.general is not None:
            return Scheme((), 2 if self.classes is None else self.classes)
        return _OURS if self.classes is None else Scheme(None, self.classes, 2, equalities=True)

    def _choose(self) -> tuple[Scheme, bool]:
        """Return the best scheme by the present figures, and whether rehashing all subscriptions pays off.

        It does if the scheme is much better than this one, or if events cost far more than in a new index: the clauses
        of a subscription that are hashed were chosen by the figures at the time it was added.
        """
        expressions = self._sample(_SAMPLE)
        count = len(expressions.numbers)
        clauses = clauses_of(expressions)
        known, sample = figures_of(self._state, clauses, count, self._recent)
        live = int(self._store.counters[StoreCounter.LIVE])
        best = choose(known, sample, live, general=self.general, classes=self.classes)
        new, old = (cost_of(scheme, known, sample, live) for scheme in (best, self._scheme))
        stale = self._staleness.judge(self._state.totals, live, new)
        return best, stale or (best != self._scheme and is_better(new, old))

    def _sample(self, most: int) -> Expressions:
        """Return up to so many conjunctions, taken at random; fewer if they are very long."""
        held = conjunction_store.numbers_in_use(self._store)
        if len(held) > most:
            held = np.sort(np.random.default_rng(len(held)).choice(held, most, replace=False))
        return next(
            self._placeable(held), with_lists(self.vocabulary, conjunction_store.blank_expressions(0, 0))
        )

    def _empty_index(self, scheme: Scheme, sample: Expressions | None) -> Index:
        """Return an empty index that hashes by a scheme, to replace the present one; constants of a sample divide classes."""
        state = self._state
        settings = np.zeros(len(Setting), dtype=np.int64)
        settings[Setting.CLASS_COUNT] = scheme.classes
        settings[Setting.BUCKET_COUNT] = self.buckets or 0
        settings[Setting.SPLIT] = self.split_weights
        settings[Setting.RANKED] = self.ranked_classes and scheme.classes != ALL_CLASSES
        settings[Setting.WIDTH] = arrays.MOST_HASHED if scheme.width is None else scheme.width
        settings[Setting.DEFAULT] = Hashing.EQUALITIES if scheme.general is not None else Hashing.EVERYTHING
        cut_count = FIELDS * 3 * max(scheme.classes - 1, 1)
        cuts, own = np.zeros(cut_count, dtype=np.int64), dict[int, int]()
        if sample is not None and self.ranked_classes:
            cuts, own = cuts_of(clauses_of(sample), scheme.classes)
        index = arrays.with_index_fields(arrays.new_index(settings, cuts), len(state.fields.uses) // FIELDS)
        if scheme.general is not None:
            if not scheme.equalities:
                index.hashing[: len(state.fields.others)][state.fields.others > 0] = Hashing.NOTHING
            index.hashing[list(scheme.general)] = Hashing.EVERYTHING  # type: ignore[index]
        for field, row in own.items():
            index = arrays.with_points(index, 1, 1)
            prepare(index, field, 0, row)
        return self._with_weights(index)

    def _with_weights(self, index: Index) -> Index:
        """Return the index with the weights that were given, of attributes whose names are known."""
        for name, weight in self.weights.items():
            attribute = self.vocabulary.names.codes.get(name)
            if attribute is not None:
                index = arrays.with_index_fields(index, attribute + 1)
                for field in range(attribute * FIELDS, (attribute + 1) * FIELDS):
                    index = arrays.with_points(index, 1, 1)
                    prepare(index, field, weight, -1)
        return index

    def _consider(self) -> None:
        """Consider the scheme again; begin to rehash all subscriptions if that pays off."""
        state = self._state
        live = int(self._store.counters[StoreCounter.LIVE])
        self._considered = live
        self._pause = _PAUSE
        if self._indexes.following is not None or (live < _FEW and self.general is None):
            return
        best, better = self._choose()
        empty = self._index.tops[IndexTop.LIVE_POINTS] == 0
        if not (better or empty):
            return
        index = self._empty_index(best, self._sample(_CUT_SAMPLE))
        self._scheme = best
        self._pause = _FIRST_PAUSE
        self._staleness.excess = (
            None if state.totals[Total.EVENTS] >= KNOWN * state.totals[Total.SHARE] else 1.0
        )
        if empty:
            self._index = index
            self._staleness.begin(state.totals, live)
        else:
            self._indexes.following, self._moved = index, 0

    def review(self) -> None:
        """Choose a scheme by the present figures, and rehash all subscriptions at once if that pays off."""
        with self._lock:
            self._finish_move()
            self._consider()
            self._finish_move()

    def _after_adding(self, expressions: Expressions) -> None:
        """Consider the scheme if there are many more conjunctions than the last time."""
        state = self._state
        if self._statistics is not None:
            named = expressions.tags[expressions.tags >> FIELD_BITS != Op.RESIDUAL]
            fields = np.unique(named & FIELD_MASK)
            fields = fields[state.fields.seen[fields] == 0]
            state.fields.since[fields] = 0.0
            self._expect(fields, float(state.totals[Total.EVENTS]))
        if self._store.counters[StoreCounter.LIVE] >= _GROWTH * self._considered:
            self._consider()
        if self.weights:
            self._indexes.change(self._with_weights)

    # moving

    def _finish_move(self) -> None:
        """Move all that is still to be moved."""
        self._finish_pending()
        while self._indexes.following is not None:
            self._move(SLICE)

    def _move(self, count: int) -> None:
        """Move some conjunctions to the next index, which takes the place of this one when all are moved."""
        store, indexes = self._store, self._indexes
        if indexes.following is None:
            return
        end = min(self._moved + count, int(store.counters[StoreCounter.TOP]))
        numbers = np.arange(self._moved, end)
        here = (store.owner[numbers] >= 0) & (store.rows[numbers, StoredColumn.HOME] == indexes.home)
        self._relocate(self._placeable(numbers[here]))
        self._moved = end
        if self._moved >= store.counters[StoreCounter.TOP]:
            indexes.finish_move()
            self._staleness.begin(self._state.totals, int(store.counters[StoreCounter.LIVE]))

    # adding and removing

    def _add(self, ids: IdArray, expressions: Expressions) -> None:
        self._finish_pending()
        self._move(_PACE * len(ids))
        super()._add(ids, expressions)

    def _make_room(self, expressions: Expressions) -> None:
        """Grow the state for the fields of the vocabulary and for a batch of expressions."""
        state = arrays.with_fields(self._state, self.vocabulary.names.top)
        state = arrays.with_expressions(state, expressions)
        widest = min(int(np.diff(expressions.offsets).max(initial=0)), 256)
        if widest > len(state.scratch.draft):
            scratch = state.scratch._replace(draft=np.zeros((256, 8), dtype=np.int64))
            state = state._replace(scratch=scratch)
        self._state = state
        self._indexes.grow(self.vocabulary.names.top)

    def _keep(self, ids: IdArray, expressions: Expressions) -> None:
        keep(self._state, ids, expressions)
        self._after_adding(expressions)

    def _forget(self, expressions: Expressions) -> None:
        forget(self._state, with_lists(self.vocabulary, expressions))
        self._release(expressions)

    def _place(self, expressions: Expressions) -> None:
        self._store.rows[expressions.numbers, StoredColumn.HOME] = self._indexes.new_home
        self._indexes.grow(self.vocabulary.names.top)
        self._indexes.place(self._state, expressions)

    def _withdraw(self, expressions: Expressions) -> None:
        self._indexes.withdraw(self._state, expressions)

    def _take_out(self, numbers: Keys) -> None:
        super()._take_out(numbers)
        self._considered = min(self._considered, int(self._store.counters[StoreCounter.LIVE]) + 1)

    # matching

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin."""
        count = len(events.offsets) - 1
        self._prepare(int(np.diff(events.offsets).max(initial=0)))
        if self._pause <= count:  # the scheme is soon to be considered
            self._recent = recent(events)
        found, offsets = self._match(self._indexes.current, events)
        if self._indexes.following is not None:
            found, offsets = _merged((found, offsets), self._match(self._indexes.following, events))
            self._state.totals[Total.SEEN] -= count
        decay(self._state, 0.5 ** (count / _MEMORY))
        return found, offsets

    def _find_one(self, attributes: Mapping[str, Value]) -> IdArray:
        if self._indexes.following is None and self._pause > MAINTAINED:
            return super()._find_one(attributes)
        # While conjunctions move there are two indexes, and just before the scheme is considered events are kept.
        batch = EventBatch([attributes])
        return self._gather(batch, *self.match_encoded(encode_events(batch, self.vocabulary))).ids

    def _match_event(self, event: Any, pairs: int) -> int:
        self._prepare(pairs)
        known, index = self._addressed.state, self._indexes.current
        if known is None or known.state is not self._state or known.hashed is not index:
            known = Hashed(self._state, index)
        return match_event(self._addressed.address(known), event, _ONE_EVENT)

    def _wanted_room(self) -> int:
        return int(self._state.tops[Top.ROOM])

    def _make_state_room(self) -> None:
        sums = int(self._state.tops[Top.SUMS])
        self._state = self._state._replace(scratch=arrays.with_pairs(self._state.scratch, 0, sums))

    def _prepare(self, pairs: int) -> None:
        """Make room for an event of so many pairs, and for all attributes there are by now."""
        self._finish_pending()
        state = arrays.with_fields(self._state, self.vocabulary.names.top)
        scratch = arrays.with_pairs(state.scratch, 3 * pairs + 2, 0)
        self._state = state if scratch is state.scratch else state._replace(scratch=scratch)
        self._indexes.grow(self.vocabulary.names.top)

    def _match(self, index: Index, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions of one index that each event satisfies, and where each event's begin."""
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        tops = self._state.tops
        done = 0
        while done < count:
            done = match(self._state, index, events, done, found, offsets)
            if done < count:
                if tops[Top.ROOM] > 0:
                    found = longer(found, int(offsets[done]), int(tops[Top.ROOM]))
                self._make_state_room()
        return found[: offsets[-1]], offsets

    def _bytes(self) -> int:
        following = self._indexes.following
        return super()._bytes() + (0 if following is None else bytes_of(following))

    # statistics of events

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Count events with these statistics as if they had just been matched: `weight` of them, if it is given.

        Else as many as the statistics have, up to the number after which a count weighs half.
        """
        with self._lock:
            self._statistics = statistics
            self._state = arrays.with_fields(self._state, self.vocabulary.names.top)
            state = self._state
            events = min(statistics.events, _MEMORY) if weight is None else weight
            events *= float(state.totals[Total.SHARE])
            state.totals[Total.EVENTS] += events
            self._expect(np.flatnonzero(state.fields.uses), events)
            self._pause = 0

    def _expect(self, fields: Keys, events: float) -> None:
        """Add, to the events that had each field, its share of so many events by the statistics."""
        if self._statistics is None:
            return
        for field in fields.tolist():
            path = self.vocabulary.names.value(field // FIELDS)
            self._state.fields.seen[field] += events * self._statistics.presence(path)

    def _maintain(self, events: int) -> None:
        """Move some conjunctions to the next index, or consider the scheme when it is time."""
        if self._indexes.following is not None:
            self._move(_PACE * events)
            return
        self._pause -= events
        if self._pause <= 0:
            self._consider()

    # diagnostics

    def lookup(self, event: Event) -> Lookup:
        """Return the buckets that an event probes, and the subscriptions there.

        The numbers of buckets are those of the paper where there are a number of `buckets` and no `split_weights`.
        """
        with self._lock:
            self._finish_move()
            encoded = encode_events(EventBatch.of([event]), self.vocabulary)
            state = self._state
            before = int(state.totals[Total.PROBED])
            self.match_encoded(encoded)
            probed = int(state.totals[Total.PROBED]) - before
            opened = filled_buckets(self._index)
            opened = opened[opened[:, Bucket.STAMP] == self._state.tops[Top.EPOCH]]
            is_complete = probed <= arrays.PROBES  # else the first probes are overwritten
            asked = self._state.scratch.probe[:probed] if is_complete else opened[:, 0].astype(np.uint64)
            buckets = asked % np.uint64(self.buckets) if self.buckets else asked
            ids = {id_ for bucket in opened for id_ in members_of(state, self._index, bucket)}
            return Lookup(tuple(sorted(set(buckets.tolist()))), tuple(sorted(ids)), is_complete)

    def contents(self) -> dict[int, list[int]]:
        """Return the ids of the subscriptions in each bucket that is not empty, by its number."""
        with self._lock:
            self._finish_move()
            state, index = self._state, self._index
            return {
                int(bucket[0]) & (2**64 - 1): members_of(state, index, bucket)
                for bucket in filled_buckets(index)
            }

    def examined(self) -> Examined:
        """Return the cost of events since the counts were last reset."""
        with self._lock:
            totals = self._state.totals
            return Examined(*(int(totals[i]) for i in COUNTS))

    def forget_examined(self) -> None:
        """Reset the counts of what events cost."""
        with self._lock:
            self._staleness.forget(self._state.totals)

    def _details(self) -> dict[str, int | float]:
        """Return the sizes of the index and its work per event."""
        indexes, cost, scheme = self._indexes.indexes, self.examined(), self._scheme
        events = max(cost.events, 1)
        buckets = sum(hash_index.live_entries(index.buckets) for index in indexes)
        points = sum(int(index.tops[IndexTop.LIVE_POINTS]) for index in indexes)
        return {
            "general attributes hashed": -1 if scheme.general is None else len(scheme.general),
            "classes": scheme.classes,
            "clauses hashed at most": arrays.MOST_HASHED if scheme.width is None else scheme.width,
            "schemas": sum(hash_index.live_entries(index.schemas) for index in indexes),
            "points": points,
            "buckets": buckets,
            "load": points / max(self.buckets or buckets, 1),
            "schemas per event": cost.schemas / events,
            "buckets probed per event": cost.probed / events,
            "subscriptions examined per event": cost.examined / events,
            "of those unmatched per event": cost.unmatched / events,
        }

    def _use(self, events: list[dict[str, object]]) -> None:
        super()._use(events)
        self.weights = {"a": 1}
        self._indexes.change(self._with_weights)

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, the scheme, and the words of the predicates that this matcher holds."""
        with self._lock:
            self._finish_move()
            with super().parts() as parts:
                kept = [
                    msgspec.to_builtins(self._scheme),
                    self._indexes.home,
                    self._considered,
                    self._staleness.excess,
                ]
                scheme = {"scheme": kept}
                yield MatcherParts(
                    parts.options, parts.arrays, {**parts.documents, **scheme}, parts.vocabulary
                )

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        with self._lock:
            super().restore(parts)
            try:
                scheme, self._indexes.home, self._considered, self._staleness.excess = parts.documents[
                    "scheme"
                ]
                self._scheme = msgspec.convert(scheme, Scheme)
            except (KeyError, ValueError, msgspec.ValidationError) as fault:
                raise SavedMatcherError(f"its scheme: {fault}; save the matcher again") from None
            self._staleness.begin(self._state.totals, int(self._store.counters[StoreCounter.LIVE]))


@register("mkh")
class Mkh(Amkh):
    """MKH, AMKH's rival: all attributes are hashed and nothing is folded, so that an event has very many coordinates."""

    saved_options = ("buckets", "split_weights", "weights")

    def __init__(
        self,
        *,
        buckets: int | None = None,
        split_weights: bool = True,
        weights: Mapping[str, int] | None = None,
        vocabulary: Vocabulary | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        super().__init__(
            buckets=buckets,
            split_weights=split_weights,
            weights=weights,
            vocabulary=vocabulary,
            statistics=statistics,
        )

    def _first_scheme(self) -> Scheme:
        return Scheme(None, ALL_CLASSES)

    def _choose(self) -> tuple[Scheme, bool]:
        return self._scheme, False


def _merged(one: tuple[Keys, Keys], other: tuple[Keys, Keys]) -> tuple[Keys, Keys]:
    """Return two lists of matches merged by event."""
    found = np.empty(len(one[0]) + len(other[0]), dtype=np.int64)
    found[np.arange(len(one[0])) + np.repeat(other[1][:-1], np.diff(one[1]))] = one[0]
    found[np.arange(len(other[0])) + np.repeat(one[1][1:], np.diff(other[1]))] = other[0]
    return found, one[1] + other[1]
