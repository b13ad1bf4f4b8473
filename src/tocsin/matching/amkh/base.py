"""Conjunctions in a hash table under one scheme, and on their way from one scheme to another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import SIBLING, unlink
from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.matching import match
from tocsin.matching.amkh._kernels.placing import place, withdraw
from tocsin.matching.amkh._kernels.storing import leave, recall, store
from tocsin.matching.amkh.scheme import Scheme
from tocsin.matching.amkh.staleness import Staleness
from tocsin.matching.amkh.state import (
    EVENTS,
    HOME,
    LIVE_FORMS,
    RESUME,
    ROOM,
    SEEN,
    SHARE,
    SUMS,
    TOP_FORM,
    Expressions,
    Index,
    State,
)
from tocsin.matching.base import IndexedMatcher
from tocsin.matching.batches import Clauses, IdArray
from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.lists import lists_of
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.id_chains import Links, taken_from
from tocsin.matching.saved import MatcherParts
from tocsin.model.errors import SavedMatcherError
from tocsin.structures.growth import bytes_of
from tocsin.structures.hash_index import HashIndex

MEMORY: Final = 50_000  # events after which a count weighs half
_SLICE: Final = 1 << 16  # conjunctions that are handled at a time
_PACE: Final = 20  # conjunctions that are moved to another index for each that is added


class HashedMatcher(IndexedMatcher):
    """Keeps each conjunction in buckets of a hash table, as a scheme says that was chosen elsewhere.

    While all are moved to an index with another scheme, a few at a time, events are matched against both.
    """

    saved_states: ClassVar[tuple[str, ...]] = ("_state", "_index")
    _state: State

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        super().__init__(vocabulary)
        self._state = State(arrays.new_store(), arrays.new_scratch())
        self._scheme = self._first_scheme()
        self._index = self._new_index(self._scheme, None)
        self._home = 0  # what a conjunction in this index says of where it is
        self._next: Index | None = None  # the index that all are being moved to,
        self._moved = 0  # up to this one,
        self._moving: Expressions | None = None  # and these are under way
        self._leaving: Keys | None = None  # numbers that are being removed, or -1
        self._considered = 0  # conjunctions when the scheme was last thought over
        self._staleness = Staleness()

    @abstractmethod
    def _first_scheme(self) -> Scheme:
        """Return the scheme while nothing is known."""

    @abstractmethod
    def _new_index(self, scheme: Scheme, sample: Expressions | None) -> Index:
        """Return an empty index for a scheme; a sample tells by which constants clauses are classed."""

    @abstractmethod
    def _grew(self, forms: Expressions) -> None:
        """Do what is due when conjunctions are stored and not yet hashed."""

    @abstractmethod
    def _remember(self, events: EncodedEvents) -> None:
        """Take note of events before they are matched."""

    # moving

    def _settle(self) -> None:
        """Move all that is still to be moved."""
        self._finish_pending()
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
            self._moving = forms
            self._finish_pending()
        self._moved = end
        if self._moved >= store_.tops[TOP_FORM]:
            self._index, self._next, self._home = self._next, None, 1 - self._home
            self._staleness.begin(store_, int(store_.tops[LIVE_FORMS]))

    def _finish_pending(self) -> None:
        """Move or remove what is under way, however far an exception let it come."""
        if self._moving is not None and self._next is not None:
            self._withdraw(self._moving.numbers)
            self._state.store.forms[self._moving.numbers, HOME] = 1 - self._home
            self._place(self._moving)
            self._moving = None
        if self._leaving is not None:
            numbers = self._leaving[self._leaving >= 0]
            for forms in self._recalled(numbers[self._state.store.owner[numbers] >= 0]):
                self._withdraw(forms.numbers)
                self._leave(forms)
            self._leaving = None

    # changes

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            self._finish_pending()
            self._move(_PACE * len(batch.ids))
            numbers = np.full(len(batch.ids), -1, dtype=np.int64)
            forms = self._forms(numbers, batch.offsets, batch.tags, batch.lows, batch.highs)
            self._make_room(forms)
            self.vocabulary.hold(forms.tags, forms.lows)
            try:
                store(
                    self._state.store, batch.ids, forms, self._home if self._next is None else 1 - self._home
                )
                self._grew(forms)
                if self._next is not None:
                    self._state.store.forms[forms.numbers, HOME] = 1 - self._home
                self._place(forms)
            except BaseException:
                if len(numbers) and numbers[0] >= 0:  # they are stored
                    self._withdraw(numbers)
                    unlink(*self._links(), self._state.store.owner, numbers)
                    self._leave(forms)
                else:
                    self.vocabulary.release(forms.tags, forms.lows)
                raise

    def _make_room(self, forms: Expressions) -> None:
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

    def _place(self, forms: Expressions) -> None:
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

    def _leave(self, forms: Expressions) -> None:
        """Give up conjunctions that are withdrawn."""
        leave(self._state.store, forms)
        self.vocabulary.release(forms.tags, forms.lows)

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        with self._lock:
            self._finish_pending()
            for _ in taken_from(ids, self._links, self._let_leave):
                self._finish_pending()
            self._considered = min(self._considered, int(self._state.store.tops[LIVE_FORMS]) + 1)

    def _let_leave(self, numbers: Keys) -> None:
        self._leaving = numbers

    def _links(self) -> Links:
        store_ = self._state.store
        return store_.ids, store_.first, store_.forms

    def _forms(self, numbers: Keys, offsets: Keys, tags: Keys, lows: Keys, highs: Keys) -> Expressions:
        """Return conjunctions with the members of their lists."""
        return Expressions(numbers, offsets, tags, lows, highs, *lists_of(self.vocabulary, tags, lows))

    def _recalled(self, numbers: Keys) -> Iterator[Expressions]:
        """Return what conjunctions say, a part of them at a time."""
        done, room = 0, max(64, 16 * min(len(numbers), _SLICE))
        none = np.empty(0, dtype=np.int64)
        while done < len(numbers):
            count = min(len(numbers) - done, _SLICE)
            numbers_, offsets = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
            tags, lows, highs = np.empty((3, room), dtype=np.int64)
            into = Expressions(numbers_, offsets, tags, lows, highs, none, none, none, none)
            reached = recall(self._state.store, numbers, done, into)
            if reached == done:
                room *= 2
                continue
            offsets = offsets[: reached - done + 1]
            said = slice(int(offsets[-1]))
            yield self._forms(numbers_[: reached - done], offsets, tags[said], lows[said], highs[said])
            done = reached

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        One above `NEEDS_RESIDUAL` has predicates left that only Python can tell.
        """
        count = len(events.offsets) - 1
        self._finish_pending()
        store_ = arrays.with_fields(self._state.store, self.vocabulary.names.top)
        pairs = 3 * int(np.diff(events.offsets).max(initial=0)) + 2
        self._state = State(store_, arrays.with_pairs(self._state.scratch, pairs, 0))
        self._index = arrays.with_hashing(self._index, self.vocabulary.names.top)
        self._remember(events)
        found, offsets = self._match(self._index, events)
        if self._next is not None:
            self._next = arrays.with_hashing(self._next, self.vocabulary.names.top)
            found, offsets = _merged((found, offsets), self._match(self._next, events))
            store_.totals[SEEN] -= count
        totals = store_.totals
        totals[SHARE] /= 0.5 ** (count / MEMORY)
        if totals[SHARE] > 1e100:
            store_.seen[:] /= totals[SHARE]
            store_.since[:] /= totals[SHARE]
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

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of conjunctions that are unsure, the clauses that have yet to be told."""
        return {number: self._decode(number, only_residual=True) for number in numbers}

    def _decode(self, number: int, *, only_residual: bool = False) -> Clauses:
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

    def _expressions_of(self, entry: int) -> list[Clauses]:
        """Return the conjunctions of a subscription, in the order they came."""
        chain = self._chain(int(self._state.store.first[entry]), self._state.store.forms[:, SIBLING])
        return [self._decode(number) for number in chain]

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the predicates of all conjunctions, each as often as it occurs."""
        numbers = np.flatnonzero(self._state.store.owner[: self._state.store.tops[TOP_FORM]] >= 0)
        none = np.empty(0, dtype=np.int64)
        held = [(none, none), *((forms.tags, forms.lows) for forms in self._recalled(numbers))]
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    def _bytes(self) -> int:
        return super()._bytes() + (0 if self._next is None else bytes_of(self._next))

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, the scheme, and the words of the predicates that this matcher holds."""
        with self._lock:
            self._settle()
            with super().parts() as parts:
                said = [
                    msgspec.to_builtins(self._scheme),
                    self._home,
                    self._considered,
                    self._staleness.excess,
                ]
                scheme = {"scheme": said}
                yield MatcherParts(
                    parts.options, parts.arrays, {**parts.documents, **scheme}, parts.vocabulary
                )

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        with self._lock:
            super().restore(parts)
            try:
                scheme, self._home, self._considered, self._staleness.excess = parts.documents["scheme"]
                self._scheme = msgspec.convert(scheme, Scheme)
            except (KeyError, ValueError, msgspec.ValidationError) as fault:
                raise SavedMatcherError(f"its scheme: {fault}; save the matcher anew") from None
            self._staleness.begin(self._state.store, int(self._state.store.tops[LIVE_FORMS]))


def fields_of(forms: Expressions) -> Keys:
    """Return the fields that predicates look at, each as often as one does."""
    named = forms.tags[forms.tags >> FIELD_BITS != Op.RESIDUAL]
    return np.asarray(named & ((1 << FIELD_BITS) - 1))


def _merged(one: tuple[Keys, Keys], other: tuple[Keys, Keys]) -> tuple[Keys, Keys]:
    """Return, per event, what two lists hold."""
    found = np.empty(len(one[0]) + len(other[0]), dtype=np.int64)
    found[np.arange(len(one[0])) + np.repeat(other[1][:-1], np.diff(one[1]))] = one[0]
    found[np.arange(len(other[0])) + np.repeat(one[1][1:], np.diff(other[1]))] = other[0]
    return found, one[1] + other[1]
