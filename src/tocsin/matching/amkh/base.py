"""Conjunctions in a hash table under one scheme, and while they move from one scheme to another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

import msgspec
import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.matching import match
from tocsin.matching.amkh._kernels.placement import place, withdraw
from tocsin.matching.amkh._kernels.uses import forget, keep
from tocsin.matching.amkh.scheme import Scheme
from tocsin.matching.amkh.staleness import Staleness
from tocsin.matching.amkh.state import HashedColumn, HashTotal, Index, IndexTop, State, StateTop
from tocsin.matching.base import SLICE, longer
from tocsin.matching.batches import IdArray
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.saved import MatcherParts
from tocsin.matching.stored_matcher import StoredMatcher, with_lists
from tocsin.model.errors import SavedMatcherError
from tocsin.structures.growth import bytes_of

MEMORY: Final = 50_000  # events after which a count weighs half
_PACE: Final = 20  # conjunctions that are moved to another index for each that is added


class HashedMatcher(StoredMatcher):
    """Keeps each conjunction in buckets of a hash table under a scheme; subclasses choose the scheme.

    While all are moved to an index with another scheme, a few at a time, events are matched against both.
    """

    saved_states: ClassVar[tuple[str, ...]] = ("_state", "_index")
    _state: State

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        super().__init__(vocabulary)
        self._state = arrays.new_state()
        self._scheme = self._first_scheme()
        self._index = self._new_index(self._scheme, None)
        self._home = 0  # the HOME of conjunctions in this index
        self._next: Index | None = None  # the index that all are being moved to,
        self._moved = 0  # up to this one,
        self._moving: Expressions | None = None  # and these are under way
        self._considered = 0  # conjunctions when the scheme was last considered
        self._staleness = Staleness()

    @abstractmethod
    def _first_scheme(self) -> Scheme:
        """Return the scheme while nothing is known."""

    @abstractmethod
    def _new_index(self, scheme: Scheme, sample: Expressions | None) -> Index:
        """Return an empty index for a scheme; the constants that divide classes are chosen by a sample."""

    @abstractmethod
    def _after_adding(self, expressions: Expressions) -> None:
        """React to conjunctions that are stored and not yet hashed."""

    @abstractmethod
    def _note_events(self, events: EncodedEvents) -> None:
        """Note events before they are matched."""

    # moving

    def _finish_move(self) -> None:
        """Move all that is still to be moved."""
        self._finish_pending()
        while self._next is not None:
            self._move(SLICE)

    def _move(self, count: int) -> None:
        """Move some conjunctions to the next index, which takes the place of this one when all are moved."""
        store = self._store
        if self._next is None:
            return
        end = min(self._moved + count, int(store.counters[StoreCounter.TOP]))
        numbers = np.arange(self._moved, end)
        here = (store.owner[numbers] >= 0) & (store.rows[numbers, HashedColumn.HOME] == self._home)
        for expressions in self._placeable(numbers[here]):
            self._moving = expressions
            self._finish_pending()
        self._moved = end
        if self._moved >= store.counters[StoreCounter.TOP]:
            self._index, self._next, self._home = self._next, None, 1 - self._home
            self._staleness.begin(self._state.totals, int(store.counters[StoreCounter.LIVE]))

    def _finish_pending(self) -> None:
        """Finish a move or a removal, however far an exception let it come."""
        if self._moving is not None and self._next is not None:
            self._withdraw(self._moving)
            self._store.rows[self._moving.numbers, HashedColumn.HOME] = 1 - self._home
            self._place(self._moving)
            self._moving = None
        super()._finish_pending()

    # adding and removing

    def _add(self, ids: IdArray, expressions: Expressions) -> None:
        self._finish_pending()
        self._move(_PACE * len(ids))
        super()._add(ids, expressions)

    def _make_room(self, expressions: Expressions) -> None:
        state = arrays.with_fields(self._state, self.vocabulary.names.top)
        state = arrays.with_expressions(state, expressions)
        widest = min(int(np.diff(expressions.offsets).max(initial=0)), 256)
        if widest > len(state.scratch.draft):
            scratch = state.scratch._replace(draft=np.zeros((256, 8), dtype=np.int64))
            state = state._replace(scratch=scratch)
        self._state = state
        self._index = arrays.with_hashing(self._index, self.vocabulary.names.top)
        if self._next is not None:
            self._next = arrays.with_hashing(self._next, self.vocabulary.names.top)

    def _keep(self, ids: IdArray, expressions: Expressions) -> None:
        keep(self._state, ids, expressions)
        self._store.rows[expressions.numbers, HashedColumn.HOME] = (
            self._home if self._next is None else 1 - self._home
        )
        self._after_adding(expressions)
        if self._next is not None:
            self._store.rows[expressions.numbers, HashedColumn.HOME] = 1 - self._home

    def _forget(self, expressions: Expressions) -> None:
        forget(self._state, with_lists(self.vocabulary, expressions))
        self._release(expressions)

    def _place(self, expressions: Expressions) -> None:
        """Hash conjunctions into the index that new ones go to."""
        index = self._index if self._next is None else self._next
        index = arrays.with_hashing(index, self.vocabulary.names.top)
        widest = int(np.diff(expressions.offsets).max(initial=0))
        done, count = 0, len(expressions.numbers)
        while done < count:
            index = arrays.with_points(index, count - done, widest)
            if self._next is None:
                self._index = index
            else:
                self._next = index
            done = place(self._state, index, expressions, done)

    def _withdraw(self, expressions: Expressions) -> None:
        """Take conjunctions out of the index that each is in."""
        numbers = expressions.numbers
        self._index.tops[IndexTop.RESUME] = 0
        if self._next is None:
            withdraw(self._state, self._index, numbers)
            return
        self._next.tops[IndexTop.RESUME] = 0
        here = self._store.rows[numbers, HashedColumn.HOME] == self._home
        withdraw(self._state, self._index, numbers[here])
        withdraw(self._state, self._next, numbers[~here])

    def _take_out(self, numbers: Keys) -> None:
        super()._take_out(numbers)
        self._considered = min(self._considered, int(self._store.counters[StoreCounter.LIVE]) + 1)

    # matching

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin."""
        count = len(events.offsets) - 1
        self._finish_pending()
        state = arrays.with_fields(self._state, self.vocabulary.names.top)
        pairs = 3 * int(np.diff(events.offsets).max(initial=0)) + 2
        scratch = arrays.with_pairs(state.scratch, pairs, 0)
        self._state = state if scratch is state.scratch else state._replace(scratch=scratch)
        self._index = arrays.with_hashing(self._index, self.vocabulary.names.top)
        self._note_events(events)
        found, offsets = self._match(self._index, events)
        if self._next is not None:
            self._next = arrays.with_hashing(self._next, self.vocabulary.names.top)
            found, offsets = _merged((found, offsets), self._match(self._next, events))
            state.totals[HashTotal.SEEN] -= count
        totals = state.totals
        totals[HashTotal.SHARE] /= 0.5 ** (count / MEMORY)
        if totals[HashTotal.SHARE] > 1e100:
            state.fields.seen[:] /= totals[HashTotal.SHARE]
            state.fields.since[:] /= totals[HashTotal.SHARE]
            totals[HashTotal.EVENTS] /= totals[HashTotal.SHARE]
            totals[HashTotal.SHARE] = 1.0
        return found, offsets

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
                if tops[StateTop.ROOM] > 0:
                    found = longer(found, int(offsets[done]), int(tops[StateTop.ROOM]))
                self._state = self._state._replace(
                    scratch=arrays.with_pairs(self._state.scratch, 0, int(tops[StateTop.SUMS]))
                )
        return found[: offsets[-1]], offsets

    def _bytes(self) -> int:
        return super()._bytes() + (0 if self._next is None else bytes_of(self._next))

    # saving

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, the scheme, and the words of the predicates that this matcher holds."""
        with self._lock:
            self._finish_move()
            with super().parts() as parts:
                kept = [
                    msgspec.to_builtins(self._scheme),
                    self._home,
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
                scheme, self._home, self._considered, self._staleness.excess = parts.documents["scheme"]
                self._scheme = msgspec.convert(scheme, Scheme)
            except (KeyError, ValueError, msgspec.ValidationError) as fault:
                raise SavedMatcherError(f"its scheme: {fault}; save the matcher anew") from None
            self._staleness.begin(self._state.totals, int(self._store.counters[StoreCounter.LIVE]))


def fields_of(expressions: Expressions) -> Keys:
    """Return the field of each predicate that is not residual."""
    named = expressions.tags[expressions.tags >> FIELD_BITS != Op.RESIDUAL]
    return np.asarray(named & ((1 << FIELD_BITS) - 1))


def _merged(one: tuple[Keys, Keys], other: tuple[Keys, Keys]) -> tuple[Keys, Keys]:
    """Return two lists of matches merged by event."""
    found = np.empty(len(one[0]) + len(other[0]), dtype=np.int64)
    found[np.arange(len(one[0])) + np.repeat(other[1][:-1], np.diff(one[1]))] = one[0]
    found[np.arange(len(other[0])) + np.repeat(one[1][1:], np.diff(other[1]))] = other[0]
    return found, one[1] + other[1]
