"""The held strings that a string begins with, or ends with."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from tocsin.matching.operators._kernels.prefixes import Prefixes, begins_with, enter, leave, pack
from tocsin.matching.operators.index import Passed, Patterns, Texts, gathered, text_bytes
from tocsin.structures import hash_index
from tocsin.structures.growth import grown, roomier
from tocsin.structures.hash_index import new_hash_index

_AT_ONCE: Final = 1024  # constants for which there is room at a time, at least


class PrefixIndex:
    """Constants by their hash. A constant comes and goes in about constant time."""

    backwards: ClassVar[bool] = False

    def __init__(self) -> None:
        self._state = Prefixes(
            new_hash_index(2, extra=3),
            np.zeros(1024, dtype=np.uint8),
            new_hash_index(2),
            np.zeros(64, dtype=np.int32),
            np.zeros(64, dtype=np.int32),
            np.full(64, -1, dtype=np.int32),
            np.zeros(2, dtype=np.int64),
        )

    def insert(self, tests: Patterns) -> None:
        """Hold these tests, of which none is held."""
        constants = text_bytes(tests.constants)
        self._reach(int(tests.attributes.max(initial=-1)) + 1)
        done = 0
        while done < len(tests.codes):
            more = min(len(tests.codes) - done, _AT_ONCE + hash_index.live_entries(self._state.entries) // 2)
            self._make_room(more, int(constants.offsets[done + more] - constants.offsets[done]))
            done = enter(self._state, tests.attributes, tests.codes, constants, self.backwards, done)

    def remove(self, tests: Patterns) -> None:
        """Hold these tests, all of which are held, no longer."""
        leave(self._state, tests.attributes, text_bytes(tests.constants), self.backwards)
        used, needless = self._state.counters.tolist()
        if needless > max(used // 2, 1 << 16):
            self._pack()

    def passed(self, texts: Texts) -> Passed:
        """Return which of the tests of its attribute each string passes."""
        return gathered(
            len(texts),
            lambda start, found: begins_with(
                self._state, texts.attributes, texts.bytes, self.backwards, start, found
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
        state = grown(state, ("held", "longer"), len(lengths.chain))
        self._state = grown(state, ("data",), int(state.counters[0]) + size)

    def _pack(self) -> None:
        """Give back the bytes of constants that are gone."""
        used, needless = self._state.counters.tolist()
        data = np.zeros(roomier(0, used - needless), dtype=np.uint8)
        pack(self._state, data)
        self._state = self._state._replace(data=data)
