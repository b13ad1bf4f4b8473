"""Subscriptions over any kind of predicate, at scale: each distinct predicate once, and numbers that point to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads.blocks import Ragged, Workload
from tocsin.matching import ConjunctionBatch, ConjunctionGroup, EventBatch, IdArray
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.conjunctions import EncodedConjunctions, encode_conjunctions
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.conditions import Predicate
from tocsin.model.values import Value

_NOBODY: Final = np.zeros(1, dtype=np.int64)


class Pool:
    """Distinct predicates, made when they are first drawn.

    The caller draws codes of its own, and `make` returns the predicate of a code.
    """

    def __init__(self, make: Callable[[int], Predicate]) -> None:
        self.predicates: list[Predicate] = []
        self._make = make
        self._codes: Keys = np.empty(0, dtype=np.int64)  # ascending
        self._places: NDArray[np.int32] = np.empty(0, dtype=np.int32)  # of the predicates with these codes

    def __len__(self) -> int:
        return len(self.predicates)

    def places(self, codes: Keys) -> NDArray[np.int32]:
        """Return where the predicates with these codes stand in `predicates`."""
        wanted, inverse = np.unique(codes, return_inverse=True)
        new = np.setdiff1d(wanted, self._codes, assume_unique=True)
        if len(new):
            added = np.arange(len(self.predicates), len(self.predicates) + len(new), dtype=np.int32)
            self.predicates += map(self._make, new.tolist())
            self._places = np.concatenate([self._places, added])
            self._codes = np.concatenate([self._codes, new])
            order = np.argsort(self._codes, kind="stable")
            self._codes, self._places = self._codes[order], self._places[order]
        found = self._places[np.searchsorted(self._codes, wanted)]
        return np.asarray(found[inverse], dtype=np.int32)


class PooledSubscriptions(NamedTuple):
    """The predicates of subscription i are those at `places[offsets[i]]` to `places[offsets[i + 1]]` of the pool."""

    ids: IdArray  # int64[subscriptions]
    offsets: Keys  # int64[subscriptions + 1]
    places: NDArray[np.int32]  # [predicates]
    pool: Pool

    def encode(self, vocabulary: Vocabulary) -> EncodedConjunctions:
        """Return the subscriptions in a vocabulary's codes; new values get one."""
        return PoolEncoding(self.pool, vocabulary).encode(self)

    def to_batch(self) -> ConjunctionBatch:
        """Return the subscriptions as predicates; equal ones are one Python object."""
        predicates, bounds, places = self.pool.predicates, self.offsets.tolist(), self.places.tolist()
        return ConjunctionBatch(
            tuple(
                ConjunctionGroup(
                    tuple(predicates[place] for place in places[bounds[i] : bounds[i + 1]]),
                    self.ids[i : i + 1],
                    {},
                )
                for i in range(len(self.ids))
            )
        )


class PoolEncoding:
    """A pool in a vocabulary's codes: each predicate is encoded once, when a batch first has it.

    Only for a matcher that is filled: the codes of a predicate are good as long as some subscription that was
    added has it.
    """

    def __init__(self, pool: Pool, vocabulary: Vocabulary) -> None:
        self.pool = pool
        self._vocabulary = vocabulary
        self._cells: Keys = np.empty((3, 0), dtype=np.int64)  # tags, lows, highs
        self._is_known = np.empty(0, dtype=np.bool_)

    def encode(self, batch: PooledSubscriptions) -> EncodedConjunctions:
        """Return subscriptions in the vocabulary's codes."""
        missing = len(self.pool) - len(self._is_known)
        if missing:
            self._cells = np.concatenate([self._cells, np.empty((3, missing), dtype=np.int64)], axis=1)
            self._is_known = np.concatenate([self._is_known, np.zeros(missing, dtype=np.bool_)])
        is_new = np.zeros(len(self._is_known), dtype=np.bool_)
        is_new[batch.places] = True
        new = np.flatnonzero(is_new & ~self._is_known)
        if len(new):
            self._encode(new)
        tags, lows, highs = (np.ascontiguousarray(column[batch.places]) for column in self._cells)
        return EncodedConjunctions(
            np.ascontiguousarray(batch.ids), np.ascontiguousarray(batch.offsets), tags, lows, highs
        )

    def _encode(self, places: Keys) -> None:
        predicates = self.pool.predicates
        alone = tuple(ConjunctionGroup((predicates[place],), _NOBODY, {}) for place in places.tolist())
        encoded = encode_conjunctions(ConjunctionBatch(alone), self._vocabulary)
        self._cells[:, places] = encoded.tags, encoded.lows, encoded.highs
        self._is_known[places] = True


class RecordEvents(NamedTuple):
    """Events as flat dicts."""

    rows: Sequence[Mapping[str, Value]]

    def to_dicts(self) -> list[Mapping[str, Value]]:
        """Return each event as a dict."""
        return list(self.rows)

    def as_batch(self) -> EventBatch:
        """Return the events as a batch of flat attributes."""
        return EventBatch(self.rows)


class PooledWorkload(Workload[PooledSubscriptions, RecordEvents]):
    """A workload over any kind of predicate; the column of a subscription is its predicates' codes."""

    def __init__(self, parameters: Any, seed: int) -> None:
        self.pool = Pool(self._predicate)
        super().__init__(parameters, seed)

    def _subscriptions_of(self, ids: Keys, rows: Ragged) -> PooledSubscriptions:
        return PooledSubscriptions(ids, rows.offsets, self.pool.places(rows.columns[0]), self.pool)

    @abstractmethod
    def _predicate(self, code: int) -> Predicate:
        """Return the predicate of a code."""
