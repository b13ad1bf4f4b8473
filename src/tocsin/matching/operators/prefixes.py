"""`starts with` and `ends with`: constants by their hash."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from tocsin.matching.operators._kernels.prefixes import Bytes, Prefixes, begins_with, insert, pack, remove
from tocsin.matching.operators.index import PassedTests, Patterns, Texts, run_growing, text_bytes
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator
from tocsin.structures import hash_index
from tocsin.structures.growth import grown, roomier
from tocsin.structures.hash_index import new_hash_index

_AT_ONCE: Final = 1024  # constants for which room is made at a time, at least


class PrefixIndex:
    """Constants by their hash. Inserting or removing one takes about constant time.

    A suffix is a prefix of the string read backwards.
    """

    def __init__(self, *, backwards: bool = False) -> None:
        self._backwards = backwards
        self._state = Prefixes(
            new_hash_index(2, extra=3),
            np.zeros(1024, dtype=np.uint8),
            new_hash_index(2),
            np.zeros(64, dtype=np.int32),
            np.zeros(64, dtype=np.int32),
            np.full(64, -1, dtype=np.int32),
            np.zeros(len(Bytes), dtype=np.int64),
        )

    def insert(self, tests: Patterns) -> None:
        """Add these tests; none may be present."""
        constants = text_bytes(tests.constants)
        self._reach(int(tests.attributes.max(initial=-1)) + 1)
        done = 0
        while done < len(tests.codes):
            more = min(len(tests.codes) - done, _AT_ONCE + hash_index.live_entries(self._state.entries) // 2)
            self._make_room(more, int(constants.offsets[done + more] - constants.offsets[done]))
            done = insert(self._state, tests.attributes, tests.codes, constants, self._backwards, done)

    def remove(self, tests: Patterns) -> None:
        """Remove these tests; each must be present."""
        remove(self._state, tests.attributes, text_bytes(tests.constants), self._backwards)
        used, idle = self._state.bytes.tolist()
        if idle > max(used // 2, 1 << 16):
            self._pack()

    def passed(self, texts: Texts) -> PassedTests:
        """Return, for each string, the tests on its attribute that it passes."""
        return run_growing(
            len(texts),
            lambda start, found: begins_with(
                self._state, texts.attributes, texts.bytes, self._backwards, start, found
            ),
        )

    def _reach(self, attributes: int) -> None:
        known = len(self._state.shortest)
        if attributes > known:
            self._state = grown(self._state, ("shortest",), attributes)
            self._state.shortest[known:] = -1

    def _make_room(self, constants: int, size: int) -> None:
        state = self._state
        lengths = hash_index.with_room(state.lengths, min(constants, 64))
        state = state._replace(entries=hash_index.with_room(state.entries, constants), lengths=lengths)
        state = grown(state, ("constants", "longer"), len(lengths.chain))
        self._state = grown(state, ("data",), int(state.bytes[Bytes.USED]) + size)

    def _pack(self) -> None:
        """Free the bytes of removed constants."""
        used, idle = self._state.bytes.tolist()
        data = np.zeros(roomier(0, used - idle), dtype=np.uint8)
        pack(self._state, data)
        self._state = self._state._replace(data=data)


operator_index(Operator.STARTS_WITH)(PrefixIndex)
operator_index(Operator.ENDS_WITH)(partial(PrefixIndex, backwards=True))
