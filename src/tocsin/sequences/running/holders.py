"""The holders of ends: subscriptions, and sequences in parentheses that others read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.running.state import Holders, OutputColumn, PlaceColumn, State
from tocsin.structures.growth import grown
from tocsin.structures.row_lookup import find_rows
from tocsin.structures.slots import Slots


class Holder(Struct, frozen=True):
    """A subscription or an inner sequence: `inner` names the sequences in parentheses that it reads itself."""

    automaton: Automaton
    is_inner: bool
    inner: tuple[str, ...]


class HolderTable:
    """Holders by their entry; subscriptions also by number, inner sequences by name."""

    def __init__(self) -> None:
        self.inner: dict[str, int] = {}  # name -> entry
        self.inner_uses: dict[str, int] = {}
        self._entry_of: dict[int, int] = {}  # subscription -> entry
        self._by_entry: list[Holder | None] = []
        self._slots = Slots()

    def __len__(self) -> int:
        return len(self._entry_of)

    def entries(self, numbers: IdArray) -> IdArray:
        """Return the entries of these subscriptions; unknown numbers are ignored."""
        positions = self.positions(numbers)
        return np.asarray(positions[positions >= 0])

    def positions(self, numbers: IdArray) -> IdArray:
        """Return the entry of each subscription, or -1 for an unknown number."""
        known = self._entry_of
        if not known or len(numbers) < len(known) // 8:
            return np.array([known.get(number, -1) for number in numbers.tolist()], dtype=np.int64)
        # Most of all: looking each up in the table would take several times as long.
        own = np.fromiter(known, dtype=np.int64, count=len(known))
        entries = np.fromiter(known.values(), dtype=np.int64, count=len(known))
        rows = find_rows(own, numbers)
        return np.where(rows >= 0, entries[rows], -1)

    def holder(self, entry: int) -> Holder:
        """Return the holder of an entry."""
        holder = self._by_entry[entry]
        assert holder is not None  # noqa: S101 - the caller passes entries in use
        return holder

    def add(self, holders: Holders, numbers: IdArray, holder: Holder, since: int) -> tuple[Holders, IdArray]:
        """Return the arrays with an entry for each number (-1 for an inner sequence), and the entries."""
        taken = self._slots.take_many(len(numbers))
        entries = np.array(taken, dtype=np.int64)
        holders = grown(holders, Holders._fields, self._slots.top)
        holders.number[entries] = numbers
        holders.since[entries] = since
        if taken[0] == len(self._by_entry):  # all of them are new
            self._by_entry += [holder] * len(taken)
        else:
            self._by_entry += [None] * (self._slots.top - len(self._by_entry))
            for entry in taken:
                self._by_entry[entry] = holder
        if not holder.is_inner:
            self._entry_of.update(zip(numbers.tolist(), taken, strict=True))
        return holders, entries

    def remove(self, holders: Holders, entries: IdArray) -> None:
        """Remove holders."""
        for entry, number in zip(entries.tolist(), holders.number[entries].tolist(), strict=True):
            self._entry_of.pop(number, None)
            self._by_entry[entry] = None
            self._slots.give(entry)

    def publishers(self, state: State, output: int) -> Iterator[Holder]:
        """Yield the holders that publish an output, each as often as its subscriptions do."""
        end, birth = state.outputs.rows[output, [OutputColumn.END, OutputColumn.BIRTH]].tolist()
        if not state.places.rows[end, PlaceColumn.FEEDS]:
            return
        entry = int(state.places.rows[end, PlaceColumn.FIRST])
        while entry >= 0:
            holder = self.holder(entry)
            if holder.automaton.publish is not None and (
                holder.is_inner or state.holders.since[entry] < birth
            ):
                yield holder
            entry = int(state.holders.next[entry])
