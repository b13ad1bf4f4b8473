"""Counts of the predicates that use each test, in arrays, since there may be millions."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.operators._kernels import uses as kernels
from tocsin.structures import hash_index
from tocsin.structures.array_types import Bools, zeros
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import new_hash_index

_FEW: Final = 1024  # queued tests up to which removed ones are not filtered out


class UseCounts:
    """The number of predicates that use each test, and a queue of the tests that are not in an index yet."""

    def __init__(self) -> None:
        self._uses = zeros(kernels.Uses, 64, entries=new_hash_index(2))
        # Attributes and codes of new tests; some are removed again
        self._waiting: list[tuple[Keys, Keys]] = []
        self._queued = 0  # their number

    def __len__(self) -> int:
        return hash_index.live_entries(self._uses.entries)

    def add(self, attributes: Keys, codes: Keys, more: Keys) -> Bools:
        """Count `more` uses of each of these tests; return which of them are new."""
        entries = hash_index.with_room(self._uses.entries, len(codes))
        uses = grown(self._uses._replace(entries=entries), ("count", "indexed"), len(entries.chain))
        self._uses = uses
        fresh = np.zeros(len(codes), dtype=np.uint8)
        kernels.add_uses(uses, attributes, codes, more, fresh)
        new = fresh.view(np.bool_)
        if new.any():
            self._waiting.append((attributes[new], codes[new]))
            self._queued += int(np.count_nonzero(new))
            if self._queued > 2 * len(self) + _FEW:
                self._queue()
        return new

    def take(self, attributes: Keys, codes: Keys) -> tuple[Bools, Bools]:
        """Count one use less of each; return which are removed by it, and which of the removed are in an index."""
        fate = np.zeros(len(codes), dtype=np.uint8)
        kernels.take_uses(self._uses, attributes, codes, fate)
        if not len(self):
            self._waiting, self._queued = [], 0
        return fate != kernels.STAYS, fate == kernels.GONE

    def waiting(self) -> tuple[Keys, Keys] | None:
        """Empty the queue and return its tests without the removed ones; None if it is empty."""
        if not self._waiting:
            return None
        attributes, codes = (np.concatenate(column) for column in zip(*self._waiting, strict=True))
        self._waiting, self._queued = [], 0
        wanted = np.zeros(len(codes), dtype=np.uint8)
        kernels.claim(self._uses, attributes, codes, wanted)
        mask = wanted.view(np.bool_)
        return attributes[mask], codes[mask]

    def wait_again(self) -> None:
        """Queue every test, as if none were in an index."""
        self._uses.indexed[:] = 0
        self._queue()

    def rows(self) -> Keys:
        """Return a row of attribute, code and number of uses for each test."""
        uses = self._uses
        top = hash_index.top_entry(uses.entries)
        held = np.flatnonzero(uses.count[:top] > 0)
        return np.column_stack([uses.entries.keys[held], uses.count[held]])

    def _queue(self) -> None:
        """Queue every test that is in no index, once."""
        uses = self._uses
        top = hash_index.top_entry(uses.entries)
        new = np.flatnonzero((uses.count[:top] > 0) & (uses.indexed[:top] == 0))
        keys = uses.entries.keys[new]
        self._waiting, self._queued = [(keys[:, 0].copy(), keys[:, 1].copy())], len(new)
