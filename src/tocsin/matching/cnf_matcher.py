"""What matchers that hold clause forms have in common: a conjunction is clauses of one predicate each."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tocsin.matching.batches import ConjunctionBatch, IdArray
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.conjunctions import (
    EncodedClauses,
    EncodedConjunctions,
    encode_clauses,
    encode_conjunctions,
)
from tocsin.matching.unshared_base import IndexedMatcher


class CnfMatcher(IndexedMatcher):
    """Adds the conjunctions and the clause forms of a batch together: either all are there, or none."""

    takes_clauses = True

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and clause forms; any one of those that carry an id satisfies it."""
        with self._lock:
            encoded = encode_conjunctions(subscriptions, self.vocabulary)
            if subscriptions.clauses:
                self.add_encoded_clauses(_joined(encoded, encode_clauses(subscriptions, self.vocabulary)))
            else:
                self.add_encoded(encoded)

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        bounds = np.arange(len(batch.tags) + 1, dtype=np.int64)
        with self._lock:
            self._add(batch.ids, self._forms(batch.offsets, bounds, batch.tags, batch.lows, batch.highs))

    def add_encoded_clauses(self, batch: EncodedClauses) -> None:
        """Add clause forms that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            self._add(
                batch.ids, self._forms(batch.offsets, batch.bounds, batch.tags, batch.lows, batch.highs)
            )

    def _add(self, ids: IdArray, forms: Any) -> None:
        """Add forms, and hold what they speak of; if they are refused, nothing is held."""
        if not len(ids):
            return
        self.vocabulary.retain(forms.tags, forms.lows)
        try:
            self._enter(ids, forms)
        except BaseException:
            self._release(forms)
            raise

    @abstractmethod
    def _forms(self, offsets: Keys, bounds: Keys, tags: Keys, lows: Keys, highs: Keys) -> Any:
        """Return forms as this matcher takes them, with numbers that are to be given yet."""

    @abstractmethod
    def _enter(self, ids: IdArray, forms: Any) -> None:
        """Add forms whose words are held; if that fails, they are as if they had never come."""

    def _release(self, forms: Any) -> None:
        """Let go of the words of forms."""
        self.vocabulary.release(forms.tags, forms.lows)


def _joined(one: EncodedConjunctions, many: EncodedClauses) -> EncodedClauses:
    """Return conjunctions and clause forms as clause forms."""
    count = len(one.tags)
    return EncodedClauses(
        np.concatenate([one.ids, many.ids]),
        np.concatenate([one.offsets, many.offsets[1:] + count]),
        np.concatenate([np.arange(count + 1, dtype=np.int64), many.bounds[1:] + count]),
        *(np.concatenate(pair) for pair in zip(one[2:], many[3:], strict=True)),
    )
