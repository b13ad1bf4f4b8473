"""The base of matchers that keep a record of every expression beside their index."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from tocsin.matching.base import IndexedMatcher
from tocsin.matching.batches import IdArray
from tocsin.matching.conjunction_store._kernels.numbers import unlink
from tocsin.matching.conjunction_store._kernels.records import free_all, recall, store_all
from tocsin.matching.conjunction_store.state import Expressions, StoreColumn
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedClauses, EncodedConjunctions, encode_lists
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.errors import MatcherError


class StoredMatcher(IndexedMatcher):
    """Stores expressions, holds their words, and undoes both if placing them in the index fails.

    The state has the fields `store` and `records`.
    """

    _moving: Expressions | None = None  # expressions between two places in the index

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        bounds = np.arange(len(batch.tags) + 1, dtype=np.int64)
        ids, offsets, tags, lows, highs = batch
        with self._lock:
            self._add(ids, self._numberless(EncodedClauses(ids, offsets, bounds, tags, lows, highs)))

    def add_encoded_clauses(self, batch: EncodedClauses) -> None:
        """Add CNFs that are encoded already, with this matcher's vocabulary."""
        if not self.takes_clauses:
            super().add_encoded_clauses(batch)
        with self._lock:
            self._add(batch.ids, self._numberless(batch))

    def _numberless(self, batch: EncodedClauses) -> Expressions:
        """Return expressions with the members of their lists, that are to be given numbers yet."""
        numbers = np.full(len(batch.ids), -1, dtype=np.int64)
        _, offsets, bounds, tags, lows, highs = batch
        return with_lists(self.vocabulary, Expressions(numbers, offsets, bounds, tags, lows, highs))

    def _add(self, ids: IdArray, expressions: Expressions) -> None:
        """Store and place expressions; if that fails, none is stored and no word held."""
        if not len(ids):
            return
        self._finish_pending()
        self.vocabulary.retain(expressions.tags, expressions.lows)
        try:
            self._make_room(expressions)
            self._keep(ids, expressions)
            self._place(expressions)
        except BaseException:
            if expressions.numbers[0] >= 0:  # they are stored
                self._withdraw(expressions)
                unlink(self._store, expressions.numbers)
                self._forget(expressions)
            else:
                self._release(expressions)
            raise

    def _take_out(self, numbers: Keys) -> None:
        for expressions in self._recalled(numbers):
            self._withdraw(expressions)
            self._forget(expressions)

    def _relocate(self, batches: Iterable[Expressions]) -> None:
        """Remove stored expressions from the index, and place them again."""
        for batch in batches:
            self._moving = batch
            self._finish_relocation()

    def _finish_relocation(self) -> None:
        if self._moving is not None:
            self._withdraw(self._moving)
            self._place(self._moving)
            self._moving = None

    def _finish_pending(self) -> None:
        self._finish_relocation()
        super()._finish_pending()

    def _placeable(self, numbers: Keys) -> Iterator[Expressions]:
        """Return stored expressions with the members of their lists, to be placed again, a slice at a time."""
        return (with_lists(self.vocabulary, expressions) for expressions in self._recalled(numbers))

    def _recall(self, numbers: Keys, begin: int, into: Expressions) -> int:
        part = numbers[begin : begin + len(into.numbers)]
        return begin + recall(*self._records(part), part, into)

    def _records(self, numbers: Keys) -> tuple[Keys, Keys, Keys]:
        """Return the rows of all records, and where the rows of each expression begin and how many they are."""
        rows, at = self._state.records.rows, self._store.rows[numbers, StoreColumn.RECORD].astype(np.int64)
        return rows, at + 1, rows[at, 1]

    def _keep(self, ids: IdArray, expressions: Expressions) -> None:
        """Give expressions their numbers and keep their records; there is room."""
        store_all(self._store, self._state.records, ids, expressions)

    def _forget(self, expressions: Expressions) -> None:
        """Free removed expressions, and release their words."""
        free_all(self._store, self._state.records, expressions)
        self._release(expressions)

    def _release(self, expressions: Expressions) -> None:
        """Let go of the words of expressions."""
        self.vocabulary.release(expressions.tags, expressions.lows)

    @abstractmethod
    def _make_room(self, expressions: Expressions) -> None:
        """Make room in the state to store expressions; raise `MatcherError` for one that cannot be placed."""

    @abstractmethod
    def _place(self, expressions: Expressions) -> None:
        """Put expressions into the index."""

    @abstractmethod
    def _withdraw(self, expressions: Expressions) -> None:
        """Take expressions out of the index, also such as are placed in part or not at all."""


def with_lists(vocabulary: Vocabulary, expressions: Expressions) -> Expressions:
    """Return expressions with the members of their lists."""
    return expressions._replace(**encode_lists(vocabulary, expressions.tags, expressions.lows)._asdict())


def check_sizes(expressions: Expressions, most: int, matcher: str) -> int:
    """Return the predicates of the largest expression; raise `MatcherError` if it has more than `most`."""
    largest = int(np.diff(expressions.bounds[expressions.offsets]).max())
    if largest > most:
        raise MatcherError(
            f"a subscription has {largest:,} predicates, and {matcher} up to {most:,}; "
            "gather alternatives of one attribute with `in (…)`, or split it"
        )
    return largest


def attributes_of(expressions: Expressions) -> Keys:
    """Return the attributes of expressions' predicates, ascending."""
    named = expressions.tags[expressions.tags >> FIELD_BITS != Op.RESIDUAL] & FIELD_MASK
    return np.unique(named // FIELDS)
