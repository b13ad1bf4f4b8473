"""AMKH as a matcher (Wu and Yu 2002)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.coordinates import KNOWN
from tocsin.matching.amkh._kernels.placement import prepare
from tocsin.matching.amkh.base import MEMORY, HashedMatcher, fields_of
from tocsin.matching.amkh.choice import choose, cost_of, is_better
from tocsin.matching.amkh.diagnostics import Examined, Lookup
from tocsin.matching.amkh.figures import clauses_of, cuts_of, figures_of, recent
from tocsin.matching.amkh.scheme import ALL_CLASSES, Hashing, Scheme
from tocsin.matching.amkh.staleness import COUNTS
from tocsin.matching.amkh.state import (
    MOST_HASHED,
    PROBES,
    SIZE_BITS,
    BucketColumn,
    HashTotal,
    Index,
    IndexTop,
    StateTop,
)
from tocsin.matching.batches import EventBatch
from tocsin.matching.conjunction_store.state import (
    Expressions,
    StoreCounter,
    blank_expressions,
    numbers_in_use,
)
from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.registry import register
from tocsin.matching.statistics import Statistics
from tocsin.matching.stored_matcher import with_lists
from tocsin.model.errors import MatcherError
from tocsin.model.event import Event
from tocsin.structures import hash_index

_SAMPLE: Final = 256  # conjunctions by which schemes are compared
_CUT_SAMPLE: Final = 8192  # conjunctions by which classes are divided
_FEW: Final = 512  # conjunctions up to which there is nothing to choose
_GROWTH: Final = 4  # times as many conjunctions, and the scheme is considered again
_PAUSE: Final = 20_000  # events between two reviews
_FIRST_PAUSE: Final = 2_000
_PACE: Final = 20  # conjunctions that are moved to another index for each event
_OURS: Final = Scheme(None, 4, 2, equalities=True)  # while there is nothing to choose


@register("amkh")
class Amkh(HashedMatcher):
    """Keeps each conjunction in buckets of a hash table, by its clauses on some attributes.

    Which these are, and into how many classes clauses other than equalities are folded, it chooses itself, and anew
    as subscriptions and events change. `general` and `classes` are the paper's G and B: if G is given, it is
    hashed what the paper hashes. `classes` may be infinite. The table has `buckets` buckets, or as many as there are
    different coordinates. Without `split_weights` and `ranked_classes`, coordinates are computed as in the paper:
    classes by the ids of clauses, one weight for an attribute, of which `weights` gives some.
    """

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
        self._pause = _FIRST_PAUSE
        self._recent: EncodedEvents | None = None
        if statistics is not None:
            self.use_statistics(statistics)

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
        held = numbers_in_use(self._store)
        if len(held) > most:
            held = np.sort(np.random.default_rng(len(held)).choice(held, most, replace=False))
        return next(self._placeable(held), with_lists(self.vocabulary, blank_expressions(0, 0)))

    def _new_index(self, scheme: Scheme, sample: Expressions | None) -> Index:
        """Return an empty index for a scheme; a sample tells by which constants clauses are classed."""
        state = self._state
        only = Hashing.EQUALITIES if scheme.general is not None else Hashing.EVERYTHING
        settings = np.array(
            [
                scheme.classes,
                self.buckets or 0,
                self.split_weights,
                self.ranked_classes and scheme.classes != ALL_CLASSES,
                MOST_HASHED if scheme.width is None else scheme.width,
                only,
            ],
            dtype=np.int64,
        )
        rows = FIELDS * 3 * max(scheme.classes - 1, 1)
        cuts, own = np.zeros(rows, dtype=np.int64), dict[int, int]()
        if sample is not None and self.ranked_classes:
            cuts, own = cuts_of(clauses_of(sample), scheme.classes)
        index = arrays.with_hashing(arrays.new_index(settings, cuts), len(state.fields.uses) // FIELDS)
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
                index = arrays.with_hashing(index, attribute + 1)
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
        if self._next is not None or (live < _FEW and self.general is None):
            return
        best, better = self._choose()
        empty = self._index.tops[IndexTop.LIVE_POINTS] == 0
        if not (better or empty):
            return
        index = self._new_index(best, self._sample(_CUT_SAMPLE))
        self._scheme = best
        self._pause = _FIRST_PAUSE
        self._staleness.excess = (
            None if state.totals[HashTotal.EVENTS] >= KNOWN * state.totals[HashTotal.SHARE] else 1.0
        )
        if empty:
            self._index = index
            self._staleness.begin(state.totals, live)
        else:
            self._next, self._moved = index, 0

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
            fields = np.unique(fields_of(expressions))
            fields = fields[state.fields.seen[fields] == 0]
            state.fields.since[fields] = 0.0
            self._expect(fields, float(state.totals[HashTotal.EVENTS]))
        if self._store.counters[StoreCounter.LIVE] >= _GROWTH * self._considered:
            self._consider()
        if self.weights:
            self._apply_weights()

    def _apply_weights(self) -> None:
        if self._next is not None:
            self._next = self._with_weights(self._next)
        self._index = self._with_weights(self._index)

    # statistics of events

    def _note_events(self, events: EncodedEvents) -> None:
        """Keep some events if the scheme is soon to be considered."""
        if self._pause <= len(events.offsets) - 1:
            self._recent = recent(events)

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Count events with these statistics as if they had just been matched: `weight` of them, if it is given.

        Else as many as the statistics have, up to the number after which a count weighs half.
        """
        with self._lock:
            self._statistics = statistics
            self._state = arrays.with_fields(self._state, self.vocabulary.names.top)
            state = self._state
            events = min(statistics.events, MEMORY) if weight is None else weight
            events *= float(state.totals[HashTotal.SHARE])
            state.totals[HashTotal.EVENTS] += events
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
        if self._next is not None:
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
            before = int(state.totals[HashTotal.PROBED])
            self.match_encoded(encoded)
            probed = int(state.totals[HashTotal.PROBED]) - before
            opened = self._buckets()
            opened = opened[opened[:, BucketColumn.STAMP] == self._state.tops[StateTop.EPOCH]]
            is_complete = probed <= PROBES  # else the first probes are overwritten
            asked = self._state.scratch.probe[:probed] if is_complete else opened[:, 0].astype(np.uint64)
            buckets = asked % np.uint64(self.buckets) if self.buckets else asked
            ids = {id_ for bucket in opened for id_ in self._members(bucket)}
            return Lookup(tuple(sorted(set(buckets.tolist()))), tuple(sorted(ids)), is_complete)

    def contents(self) -> dict[int, list[int]]:
        """Return the ids of the subscriptions in each bucket that is not empty, by its number."""
        with self._lock:
            self._finish_move()
            return {int(bucket[0]) & (2**64 - 1): self._members(bucket) for bucket in self._buckets()}

    def _buckets(self) -> Keys:
        """Return the rows of all buckets that are not empty."""
        keys = self._index.buckets.keys[: hash_index.top_entry(self._index.buckets)]
        return np.asarray(keys[keys[:, BucketColumn.SIZE] >> SIZE_BITS > 0])

    def _members(self, bucket: Keys) -> list[int]:
        """Return the ids of the subscriptions in a bucket."""
        state, first = self._state, int(bucket[BucketColumn.MEMBERS])
        words = self._index.members.rows[first : first + int(bucket[BucketColumn.SIZE] >> SIZE_BITS), 1]
        numbers = state.records.rows[words >> 32, 0] % NEEDS_RESIDUAL
        return [int(id_) for id_ in state.store.ids.keys[state.store.owner[numbers], 0]]

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
        indexes = [self._index] if self._next is None else [self._index, self._next]
        cost, scheme = self.examined(), self._scheme
        events = max(cost.events, 1)
        buckets = sum(hash_index.live_entries(index.buckets) for index in indexes)
        points = sum(int(index.tops[IndexTop.LIVE_POINTS]) for index in indexes)
        return {
            "general attributes hashed": -1 if scheme.general is None else len(scheme.general),
            "classes": scheme.classes,
            "clauses hashed at most": MOST_HASHED if scheme.width is None else scheme.width,
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
        self._apply_weights()


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
