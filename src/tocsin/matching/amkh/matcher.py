"""AMKH as a matcher (Wu and Yu 2002)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language import parse_condition, to_dnf
from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.matching import match
from tocsin.matching.amkh._kernels.placing import place, prepare, withdraw
from tocsin.matching.amkh._kernels.storing import leave, numbers_of, recall, store, unlink
from tocsin.matching.amkh.choice import choose, cost_of, is_better
from tocsin.matching.amkh.figures import clauses_of, cuts_of, figures_of, recent
from tocsin.matching.amkh.scheme import ALL_CLASSES, Hashing, Scheme
from tocsin.matching.amkh.state import (
    EPOCH,
    EVENTS,
    EXAMINED,
    HOME,
    LIVE_FORMS,
    LIVE_POINTS,
    LOOKED_AT,
    MATCHED,
    MEMBERS,
    MOST_HASHED,
    PREDICATES,
    PROBED,
    RESUME,
    ROOM,
    SEEN,
    SHARE,
    SIBLING,
    SIZE,
    SIZE_BITS,
    STAMP,
    SUMS,
    TOP_FORM,
    Forms,
    Index,
    State,
)
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.indexed import IndexedMatcher
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import MatcherError, SavedMatcherError
from tocsin.model.event import Event
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex

__all__ = ["Amkh", "Examined", "Lookup", "Mkh"]

_SLICE: Final = 1 << 16  # conjunctions that are handled at a time
_MEMORY: Final = 50_000  # events after which a count weighs half
_SAMPLE: Final = 256  # conjunctions by which schemes are compared
_CUT_SAMPLE: Final = 8192  # conjunctions by which classes are told apart
_FEW: Final = 512  # conjunctions up to which there is nothing to choose
_GROWTH: Final = 4  # times as many conjunctions, and the scheme is thought over
_PAUSE: Final = 20_000  # events between two reviews
_FIRST_PAUSE: Final = 2_000
_PACE: Final = 20  # conjunctions that are moved to another index for each event, or for each that is added
_OURS: Final = Scheme(None, 4, 2, equalities=True)  # while there is nothing to choose


class Examined(Struct, frozen=True):
    """What events have cost since it was last forgotten."""

    events: int
    schemas: int  # looked at
    probed: int  # buckets looked for
    examined: int  # subscriptions found there, whether they match or not
    matched: int

    @property
    def unmatched(self) -> int:
        """Return how many were examined in vain."""
        return self.examined - self.matched


class Lookup(Struct, frozen=True):
    """Where an event leads to."""

    buckets: tuple[int, ...]  # that it asks for, whether anything is there or not, ascending
    examined: tuple[int, ...]  # ids of the subscriptions there, ascending


@register("amkh")
class Amkh(IndexedMatcher):
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
    saved_states: ClassVar[tuple[str, ...]] = ("_state", "_index")

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
        super().__init__(vocabulary)
        self.general = general
        self.classes = ALL_CLASSES if classes == math.inf else None if classes is None else int(classes)
        self.buckets = buckets
        self.split_weights = split_weights
        self.ranked_classes = ranked_classes
        self.weights = dict(weights or {})
        self._state = State(arrays.new_store(), arrays.new_scratch())
        self._scheme = self._first_scheme()
        self._index = self._new_index(self._scheme, None)
        self._home = 0  # what a conjunction in this index says of where it is
        self._next: Index | None = None  # the index that all are being moved to,
        self._moved = 0  # up to this one,
        self._moving: Forms | None = None  # and these are under way
        self._considered = 0  # conjunctions when the scheme was last thought over
        self._pause = _FIRST_PAUSE
        self._recent: EncodedEvents | None = None
        if statistics is not None:
            self.use_statistics(statistics)

    # schemes

    @property
    def scheme(self) -> Scheme:
        """Return what is hashed now; attributes are given by the numbers of their fields."""
        return self._scheme

    def _first_scheme(self) -> Scheme:
        if self.general is not None:
            return Scheme((), 2 if self.classes is None else self.classes)
        return _OURS if self.classes is None else Scheme(None, self.classes, 2, equalities=True)

    def _choose(self) -> tuple[Scheme, bool]:
        """Return the best scheme for what is known now, and whether it is so much better than this one."""
        forms = self._sample(_SAMPLE)
        count = len(forms.numbers)
        clauses = clauses_of(forms)
        known, sample = figures_of(self._state.store, clauses, count, self._recent)
        live = int(self._state.store.tops[LIVE_FORMS])
        best = choose(known, sample, live, general=self.general, classes=self.classes)
        new, old = (cost_of(scheme, known, sample, live) for scheme in (best, self._scheme))
        return best, is_better(new, old)

    def _sample(self, most: int) -> Forms:
        """Return up to so many conjunctions, taken at random."""
        held = np.flatnonzero(self._state.store.owner[: self._state.store.tops[TOP_FORM]] >= 0)
        if len(held) > most:
            held = np.sort(np.random.default_rng(len(held)).choice(held, most, replace=False))
        parts = list(self._recalled(held))
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, dtype=np.int64)
        return self._forms(none, np.zeros(1, dtype=np.int64), none, none, none)

    def _new_index(self, scheme: Scheme, sample: Forms | None) -> Index:
        """Return an empty index for a scheme; a sample tells by which constants clauses are classed."""
        store_ = self._state.store
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
        index = arrays.with_hashing(arrays.new_index(settings, cuts), len(store_.uses) // FIELDS)
        if scheme.general is not None:
            if not scheme.equalities:
                index.hashing[: len(store_.others)][store_.others > 0] = Hashing.NOTHING
            index.hashing[list(scheme.general)] = Hashing.EVERYTHING  # type: ignore[index]
        for field, row in own.items():
            index = arrays.with_points(index, 1, 1)
            prepare(index, field, 0, row)
        return self._weighed(index)

    def _weighed(self, index: Index) -> Index:
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
        """Think the scheme over; begin to hash all subscriptions anew if another is much better."""
        live = int(self._state.store.tops[LIVE_FORMS])
        self._considered = live
        self._pause = _PAUSE
        if self._next is not None or (live < _FEW and self.general is None):
            return
        best, better = self._choose()
        empty = self._index.tops[LIVE_POINTS] == 0
        if not (better or empty) or (best == self._scheme and not empty):
            return
        self._scheme = best
        index = self._new_index(best, self._sample(_CUT_SAMPLE))
        if empty:
            self._index = index
        else:
            self._next, self._moved = index, 0

    def review(self) -> None:
        """Choose a scheme by what is known now, and hash all subscriptions anew at once if another is better."""
        with self._lock:
            self._settle()
            self._consider()
            self._settle()

    def _settle(self) -> None:
        """Move all that is still to be moved."""
        self._arrive()
        while self._next is not None:
            self._move(_SLICE)

    def _move(self, count: int) -> None:
        """Move some conjunctions to the next index, which takes the place of this one when all are moved."""
        store_ = self._state.store
        if self._next is None:
            return
        end = min(self._moved + count, int(store_.tops[TOP_FORM]))
        numbers = np.arange(self._moved, end)
        here = (store_.owner[self._moved : end] >= 0) & (store_.forms[self._moved : end, HOME] == self._home)
        for forms in self._recalled(numbers[here]):
            withdraw(self._state.store, self._index, forms.numbers)
            self._moving = forms
            store_.forms[forms.numbers, HOME] = 1 - self._home
            self._place(forms)
            self._moving = None
        self._moved = end
        if self._moved >= store_.tops[TOP_FORM]:
            self._index, self._next, self._home = self._next, None, 1 - self._home

    def _arrive(self) -> None:
        """Place what an exception kept from being placed."""
        if self._moving is not None and self._next is not None:
            withdraw(self._state.store, self._next, self._moving.numbers)
            self._next.tops[RESUME] = 0
            self._place(self._moving)
            self._moving = None

    # changes

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            self._arrive()
            forms = self._forms(
                np.empty(len(batch.ids), dtype=np.int64), batch.offsets, batch.tags, batch.lows, batch.highs
            )
            self._make_room(forms)
            self.vocabulary.hold(forms.tags, forms.lows)
            store(self._state.store, batch.ids, forms, self._home if self._next is None else 1 - self._home)
            try:
                if self._state.store.tops[LIVE_FORMS] >= _GROWTH * self._considered:
                    self._consider()
                    if self._next is not None:
                        self._state.store.forms[forms.numbers, HOME] = 1 - self._home
                if self.weights:
                    self._weigh()
                self._place(forms)
            except BaseException:
                self._withdraw(forms.numbers)
                unlink(self._state.store, batch.ids, forms)
                self._leave(forms)
                raise
            self._move(_PACE * len(batch.ids))

    def _weigh(self) -> None:
        if self._next is not None:
            self._next = self._weighed(self._next)
        self._index = self._weighed(self._index)

    def _make_room(self, forms: Forms) -> None:
        """Make room to store conjunctions."""
        ops = forms.tags >> FIELD_BITS
        ranges = np.zeros(len(ops) + 1, dtype=np.int64)
        np.cumsum((ops == Op.BETWEEN) | (ops == Op.NOT_BETWEEN), out=ranges[1:])
        records = np.diff(forms.offsets) + np.diff(ranges[forms.offsets]) + 1
        store_ = arrays.with_fields(self._state.store, self.vocabulary.names.top)
        store_ = arrays.with_forms(
            store_, len(forms.numbers), int((records + records // 2 + 1).sum()), len(forms.keys)
        )
        scratch = self._state.scratch
        widest = min(int(np.diff(forms.offsets).max(initial=0)), 256)
        if widest > len(scratch.draft):
            scratch = scratch._replace(draft=np.zeros((256, 8), dtype=np.int64))
        self._state = State(store_, scratch)
        self._index = arrays.with_hashing(self._index, self.vocabulary.names.top)
        if self._next is not None:
            self._next = arrays.with_hashing(self._next, self.vocabulary.names.top)

    def _place(self, forms: Forms) -> None:
        """Hash conjunctions into the index that new ones go to."""
        index = self._index if self._next is None else self._next
        index = arrays.with_hashing(index, self.vocabulary.names.top)
        widest = int(np.diff(forms.offsets).max(initial=0))
        done, count = 0, len(forms.numbers)
        while done < count:
            index = arrays.with_points(index, count - done, widest)
            if self._next is None:
                self._index = index
            else:
                self._next = index
            done = place(self._state, index, forms, done)

    def _withdraw(self, numbers: Keys) -> None:
        """Take conjunctions out of the index that each is in."""
        self._index.tops[RESUME] = 0
        if self._next is None:
            withdraw(self._state.store, self._index, numbers)
            return
        self._next.tops[RESUME] = 0
        here = self._state.store.forms[numbers, HOME] == self._home
        withdraw(self._state.store, self._index, numbers[here])
        withdraw(self._state.store, self._next, numbers[~here])

    def _leave(self, forms: Forms) -> None:
        """Give up conjunctions that are withdrawn, and what is known of attributes that no other speaks of."""
        leave(self._state.store, forms)
        self.vocabulary.release(forms.tags, forms.lows)
        fields = np.unique(forms.tags[forms.tags >> FIELD_BITS != Op.RESIDUAL] & ((1 << FIELD_BITS) - 1))
        for attribute in np.unique(fields // FIELDS).tolist():
            if not self.vocabulary.names.is_known(attribute):
                self._state.store.seen[attribute * FIELDS : (attribute + 1) * FIELDS] = 0.0

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        # Kernels are compiled once more for an array that they may not write to.
        wanted = np.require(ids, dtype=np.int64, requirements=["C", "W"])
        with self._lock:
            self._arrive()
            numbers = np.empty(max(64, min(len(wanted), _SLICE)), dtype=np.int64)
            done = 0
            while done < len(wanted):
                done, found = numbers_of(self._state.store, wanted, done, numbers)
                for forms in self._recalled(numbers[:found]):
                    self._withdraw(forms.numbers)
                    self._leave(forms)
                if not found and done < len(wanted):
                    numbers = np.empty(2 * len(numbers), dtype=np.int64)
            if self._state.store.tops[LIVE_FORMS] * _GROWTH < self._considered:
                self._considered = int(self._state.store.tops[LIVE_FORMS])

    def _forms(self, numbers: Keys, offsets: Keys, tags: Keys, lows: Keys, highs: Keys) -> Forms:
        """Return conjunctions with the members of their lists."""
        ops = tags >> FIELD_BITS
        lists = np.flatnonzero((ops == Op.IN) | (ops == Op.NOT_IN))
        which = np.full(len(tags), -1, dtype=np.int64)
        codes, which[lists] = np.unique(lows[lists], return_inverse=True)
        members = [self.vocabulary.members(code) for code in codes.tolist()]
        starts = np.zeros(len(codes) + 1, dtype=np.int64)
        np.cumsum([len(keys) for _, keys in members], out=starts[1:])
        none = np.empty(0, dtype=np.int64)
        fields = np.concatenate([fields for fields, _ in members]) if members else none
        keys = np.concatenate([keys for _, keys in members]) if members else none
        return Forms(numbers, offsets, tags, lows, highs, which, starts, fields, keys)

    def _recalled(self, numbers: Keys) -> Iterator[Forms]:
        """Return what conjunctions say, a part of them at a time."""
        done, room = 0, max(64, 16 * min(len(numbers), _SLICE))
        none = np.empty(0, dtype=np.int64)
        while done < len(numbers):
            count = min(len(numbers) - done, _SLICE)
            numbers_, offsets = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
            tags, lows, highs = np.empty((3, room), dtype=np.int64)
            into = Forms(numbers_, offsets, tags, lows, highs, none, none, none, none)
            reached = recall(self._state.store, numbers, done, into)
            if reached == done:
                room *= 2
                continue
            offsets = offsets[: reached - done + 1]
            said = slice(int(offsets[-1]))
            yield self._forms(numbers_[: reached - done], offsets, tags[said], lows[said], highs[said])
            done = reached

    # what events are like

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Take it that events like those of the statistics have just come: `weight` of them, if it is given.

        Else as many as the statistics tell of, up to the number after which a count weighs half.
        """
        with self._lock:
            self._statistics = statistics
            self._state = self._state._replace(
                store=arrays.with_fields(self._state.store, self.vocabulary.names.top)
            )
            store_ = self._state.store
            events = min(statistics.events, _MEMORY) if weight is None else weight
            events *= float(store_.totals[SHARE])
            store_.totals[EVENTS] += events
            for field in np.flatnonzero(store_.uses).tolist():
                path = self.vocabulary.names.symbol(field // FIELDS)
                store_.seen[field] += events * statistics.presence(path)
            self._pause = 0

    def _follow(self, events: int) -> None:
        """Move some conjunctions to the next index, or think the scheme over when it is time."""
        if self._next is not None:
            self._move(_PACE * events)
            return
        self._pause -= events
        if self._pause <= 0:
            self._consider()

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        One above `UNSURE` has predicates left that only Python can tell.
        """
        count = len(events.offsets) - 1
        self._arrive()
        store_ = arrays.with_fields(self._state.store, self.vocabulary.names.top)
        pairs = 3 * int(np.diff(events.offsets).max(initial=0)) + 2
        self._state = State(store_, arrays.with_pairs(self._state.scratch, pairs, 0))
        self._index = arrays.with_hashing(self._index, self.vocabulary.names.top)
        if self._pause <= count:
            self._recent = recent(events)
        found, offsets = self._match(self._index, events)
        if self._next is not None:
            self._next = arrays.with_hashing(self._next, self.vocabulary.names.top)
            found, offsets = _merged((found, offsets), self._match(self._next, events))
            store_.totals[SEEN] -= count
        totals = store_.totals
        totals[SHARE] /= 0.5 ** (count / _MEMORY)
        if totals[SHARE] > 1e100:
            store_.seen[:] /= totals[SHARE]
            totals[EVENTS] /= totals[SHARE]
            totals[SHARE] = 1.0
        return found, offsets

    def _match(self, index: Index, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions of one index that each event satisfies, and where each event's begin."""
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        tops = self._state.store.tops
        done = 0
        while done < count:
            done = match(self._state, index, events, done, found, offsets)
            if done < count:
                if tops[ROOM] > 0:
                    more = np.empty(max(2 * len(found), int(tops[ROOM])), dtype=np.int64)
                    more[: offsets[done]] = found[: offsets[done]]
                    found = more
                self._state = self._state._replace(
                    scratch=arrays.with_pairs(self._state.scratch, 0, int(tops[SUMS]))
                )
        return found[: offsets[-1]], offsets

    def lookup(self, event: Event) -> Lookup:
        """Return which buckets an event asks for, and who is there.

        The numbers of buckets are those of the paper where there are a number of `buckets` and no `split_weights`.
        """
        with self._lock:
            self._settle()
            encoded = encode_events(EventBatch.of([event]), self.vocabulary)
            store_ = self._state.store
            before = int(store_.totals[PROBED])
            self.match_encoded(encoded)
            keys = self._index.buckets.keys[: hash_index.top_entry(self._index.buckets)]
            opened = keys[keys[:, STAMP] == self._state.store.tops[EPOCH]]
            asked = self._state.scratch.probe[: int(store_.totals[PROBED]) - before]
            buckets = asked % np.uint64(self.buckets) if self.buckets else asked
            ids = set()
            for bucket in opened:
                for row in range(int(bucket[MEMBERS]), int(bucket[MEMBERS] + (bucket[SIZE] >> SIZE_BITS))):
                    number = store_.records.rows[self._index.members.rows[row, 1] >> 32, 0] & 0xFFFFFFFF
                    ids.add(int(store_.ids.keys[store_.owner[number], 0]))
            return Lookup(tuple(sorted(set(buckets.tolist()))), tuple(sorted(ids)))

    def _left_to_python(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of conjunctions that are unsure, the clauses that have yet to be told."""
        return {number: self._said(number, only_residual=True) for number in numbers}

    def _said(self, number: int, *, only_residual: bool = False) -> Clauses:
        """Return the predicates of a conjunction, in the order they were given."""
        (forms,) = self._recalled(np.array([number], dtype=np.int64))
        said = zip(forms.tags.tolist(), forms.lows.tolist(), forms.highs.tolist(), strict=True)
        return tuple(
            (self.vocabulary.decode(*predicate),)
            for predicate in said
            if not only_residual or predicate[0] >> FIELD_BITS == Op.RESIDUAL
        )

    def _ids(self) -> HashIndex:
        return self._state.store.ids

    def _owner(self) -> NDArray[np.int32]:
        return self._state.store.owner

    def _held(self, entry: int) -> list[Clauses]:
        """Return the conjunctions of a subscription, in the order they came."""
        held: list[Clauses] = []
        number = int(self._state.store.first[entry])
        while number >= 0:
            held.append(self._said(number))
            number = int(self._state.store.forms[number, SIBLING])
        return held[::-1]

    def examined(self) -> Examined:
        """Return what events have cost since that was last forgotten."""
        with self._lock:
            totals = self._state.store.totals
            return Examined(*(int(totals[i]) for i in (SEEN, LOOKED_AT, PROBED, EXAMINED, MATCHED)))

    def forget_examined(self) -> None:
        """Begin anew to count what events cost."""
        with self._lock:
            self._state.store.totals[[SEEN, LOOKED_AT, PROBED, EXAMINED, MATCHED]] = 0.0

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        with self._lock:
            store_, indexes = self._state.store, [self._index]
            if self._next is not None:
                indexes.append(self._next)
            cost = self.examined()
            events = max(cost.events, 1)
            buckets = sum(hash_index.live_entries(index.buckets) for index in indexes)
            points = sum(int(index.tops[LIVE_POINTS]) for index in indexes)
            scheme = self._scheme
            return MatcherStats(
                hash_index.live_entries(store_.ids),
                int(store_.tops[LIVE_FORMS]),
                int(store_.tops[PREDICATES]),
                self._bytes(),
                {
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
                },
            )

    def _holding(self) -> tuple[Keys, Keys]:
        """Return the predicates of all conjunctions, each as often as it occurs."""
        numbers = np.flatnonzero(self._state.store.owner[: self._state.store.tops[TOP_FORM]] >= 0)
        none = np.empty(0, dtype=np.int64)
        held = [(none, none), *((forms.tags, forms.lows) for forms in self._recalled(numbers))]
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, the scheme, and the words of the predicates that this matcher holds."""
        with self._lock:
            self._settle()
            with super().parts() as parts:
                scheme = {"scheme": [msgspec.to_builtins(self._scheme), self._home, self._considered]}
                yield MatcherParts(
                    parts.options, parts.arrays, {**parts.documents, **scheme}, parts.vocabulary
                )

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        with self._lock:
            super().restore(parts)
            try:
                scheme, self._home, self._considered = parts.documents["scheme"]
                self._scheme = msgspec.convert(scheme, Scheme)
            except (KeyError, ValueError, msgspec.ValidationError) as fault:
                raise SavedMatcherError(f"its scheme: {fault}; save the matcher anew") from None

    @classmethod
    def warm_up(cls) -> None:
        """Compile what is not compiled yet, by using a small matcher of this kind in every way."""
        matcher = cls()
        texts = ["a = 1 and b > 2", "a in (1, 2) and c is present", "s like '%x_'", "true"]
        conditions = [parse_condition(text) for text in texts]
        matcher.add(ConjunctionBatch.of((i, to_dnf(one)) for i, one in enumerate(conditions)))
        matcher.match(EventBatch.of_dicts([{"a": 1, "b": 1, "c": 2, "d": 3, "s": "x"}]))
        matcher.weights = {"a": 1}
        matcher._weigh()
        matcher.remove(np.arange(len(texts)))


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
    """Return, per event, what two lists hold."""
    found = np.empty(len(one[0]) + len(other[0]), dtype=np.int64)
    found[np.arange(len(one[0])) + np.repeat(other[1][:-1], np.diff(one[1]))] = one[0]
    found[np.arange(len(other[0])) + np.repeat(one[1][1:], np.diff(other[1]))] = other[0]
    return found, one[1] + other[1]
