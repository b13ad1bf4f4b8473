"""Who holds the ends of automata: subscriptions, and sequences in parentheses that others read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.running.state import (
    FEEDS,
    FIRST,
    NONE,
    Holders,
    State,
)
from tocsin.structures.growth import grown


class Holder(Struct, frozen=True):
    """Its automaton, under which name it publishes, whether that is one in parentheses, and which of those it reads."""

    automaton: Automaton
    publish: str | None
    internal: bool
    inner: tuple[str, ...]


class HolderTable:
    """Holders by number; subscriptions by theirs, sequences in parentheses by their name."""

    def __init__(self) -> None:
        self.inner: dict[str, int] = {}
        self.inner_uses: dict[str, int] = {}
        self._of: dict[int, int] = {}  # subscription -> holder
        self._numbers: list[int] = []
        self._infos: list[Holder | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, number: int) -> bool:
        return number in self._of

    def of(self, numbers: IdArray) -> IdArray:
        """Return the holders of those subscriptions that are there."""
        known = self._of
        return np.array([known[number] for number in numbers.tolist() if number in known], dtype=np.int64)

    def info(self, entry: int) -> Holder:
        """Return what is known of a holder."""
        found = self._infos[entry]
        assert found is not None  # noqa: S101 - it is asked for holders that are there
        return found

    def enter(self, holders: Holders, numbers: IdArray, info: Holder, since: int) -> tuple[Holders, IdArray]:
        """Return the arrays with a new holder for each subscription, or for none where it is -1, and their entries."""
        count = len(numbers)
        given = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = count - len(given)
        given += range(len(self._infos), len(self._infos) + fresh)
        self._infos.extend([None] * fresh)
        self._numbers.extend([NONE] * fresh)
        entries = np.array(given, dtype=np.int64)
        holders = grown(holders, Holders._fields, len(self._infos))
        holders.number[entries] = numbers
        holders.since[entries] = since
        for entry, number in zip(given, numbers.tolist(), strict=True):
            self._infos[entry] = info
            self._numbers[entry] = number
            if number >= 0:
                self._of[number] = entry
        return holders, entries

    def leave(self, entries: IdArray) -> None:
        """Forget holders."""
        for entry in entries.tolist():
            self._of.pop(self._numbers[entry], None)
            self._infos[entry] = None
            self._free.append(entry)

    def publishers(self, state: State, row: int) -> Iterator[Holder]:
        """Return the holders that publish an output, each as often as its subscriptions do."""
        end, birth = state.outputs.rows[row, 0], state.outputs.rows[row, 3]
        if not state.places.rows[end, FEEDS]:
            return
        entry = int(state.places.rows[end, FIRST])
        while entry >= 0:
            info = self.info(entry)
            if info.publish is not None and (info.internal or state.holders.since[entry] < birth):
                yield info
            entry = int(state.holders.next[entry])
