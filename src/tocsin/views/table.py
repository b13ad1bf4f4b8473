"""A table: the last row of each key, in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.model.errors import EventError
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Value
from tocsin.structures.interning import InterningTable
from tocsin.structures.slots import Slots
from tocsin.views.batch import Batch, BatchChanges, previous_places
from tocsin.views.cells import (
    ABSENT,
    BOOLEAN,
    CODED,
    FLOAT,
    INTEGER,
    MOMENT,
    Cells,
    Column,
    Key,
    decode,
    key_of,
)
from tocsin.views.changes import Row, RowChange

_SLOTS: Final = 64
_WIDE: Final = 2**63


class StoredTable:
    """The rows of a table, each in a slot; what is published replaces the whole row of its key.

    A row that ended before the one that is held is late, and changes nothing. `key` names one attribute or several.
    """

    def __init__(self, name: str, key: tuple[str, ...]) -> None:
        self.name = name
        self.key = key
        self.late = 0  # rows that came too late
        self._slots: dict[Key, int] = {}
        self._free = Slots()
        self._ends: NDArray[np.int64] = np.zeros(_SLOTS, dtype=np.int64)
        self._shapes: NDArray[np.int32] = np.full(_SLOTS, -1, dtype=np.int32)  # -1: no row
        self._names = InterningTable[tuple[str, ...]]()  # a row's attributes, in order: its shape
        self._cells: dict[str, Cells] = {}
        self._codes = InterningTable[Value]()  # texts, and integers beyond 64 bits

    def __len__(self) -> int:
        return len(self._slots)

    def upsert(self, row: Row, end: int) -> RowChange | None:
        """Put a row in the place of that with its key, if there is one; return None if it is late."""
        key = self._key(row)
        slot = self._slots.get(key)
        old: Row | None = None
        if slot is not None:
            if end < self._ends[slot]:
                self.late += 1
                return None
            old = self.row(slot)
            self._clear(slot)
        else:
            slot = self._slots[key] = self._new_slot()
        self._write(slot, row, end)
        return RowChange(self.name, slot, old, row)

    def upsert_batch(
        self, batch: Batch, ends: NDArray[np.int64], wanted: Iterable[str], *, rows: bool = False
    ) -> BatchChanges | None:
        """Put rows in the place of those with their keys, one after another, and return what changed.

        Also return the old and new values of the `wanted` attributes and, with `rows`, of whole rows. Return None and change
        nothing if one key has several rows that are not in the order of their end.
        """
        repeated = len(set(batch.keys)) < len(batch)
        if repeated and (ends[1:] < ends[:-1]).any():
            return None
        held = np.array([self._slots.get(key, -1) for key in batch.keys], dtype=np.int64)
        # What is not held yet cannot be late; where there is no row, slot 0 is looked at for nothing.
        late = (held >= 0) & (ends < self._ends[np.maximum(held, 0)])
        self.late += int(late.sum())
        places = np.flatnonzero(~late)
        slots = held[places]
        fresh = np.flatnonzero(slots < 0)
        for at in fresh.tolist():
            key = batch.keys[places[at]]
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = self._new_slot()
            slots[at] = slot
        previous = previous_places(slots)
        new = {name: self._column(batch, name, places) for name in wanted}
        old = {name: self._before(name, slots, previous, new[name]) for name in new}
        existed = (self._shapes[slots] >= 0) | (previous >= 0)
        changed = self._row_changes(batch, places, slots, previous) if rows else ()
        last = np.ones(len(slots), dtype=np.bool_)
        last[previous[previous >= 0]] = False
        self._write_batch(batch, places[last], slots[last], ends)
        return BatchChanges(places, slots, previous, existed, old, new, changed)

    def _row_changes(
        self, batch: Batch, places: IdArray, slots: IdArray, previous: IdArray
    ) -> tuple[RowChange, ...]:
        """Return the changes of whole rows that a batch is about to make."""
        changes: list[RowChange] = []
        for place, slot, before in zip(places.tolist(), slots.tolist(), previous.tolist(), strict=True):
            held = self.row(slot) if self._shapes[slot] >= 0 else None
            old = held if before < 0 else changes[before].new
            changes.append(RowChange(self.name, slot, old, batch.rows[place]))
        return tuple(changes)

    def delete(self, row: Row, end: int) -> RowChange | None:
        """Remove the row with the key of this one; return None if there is none, or a later one."""
        key = self._key(row)
        slot = self._slots.get(key)
        if slot is None:
            return None
        if end < self._ends[slot]:
            self.late += 1
            return None
        old = self.row(slot)
        self._clear(slot)
        del self._slots[key]
        self._free.give(slot)
        return RowChange(self.name, slot, old, None)

    def slot(self, row: Row) -> int | None:
        """Return where the row with the key of this one is held, if there is one."""
        return self._slots.get(self._key(row))

    def is_late(self, row: Row, end: int) -> bool:
        """Tell whether a row ended before the one that is held with its key."""
        slot = self.slot(row)
        return slot is not None and end < int(self._ends[slot])

    def row(self, slot: int) -> Row:
        """Return the row in a slot."""
        return {name: self._value(name, slot) for name in self._names.value(self._shapes[slot])}

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Return all rows with their slots, those that came first in front."""
        return ((slot, self.row(slot)) for slot in self._slots.values())

    @property
    def nbytes(self) -> int:
        """Return the bytes of the arrays; the keys and texts, which Python holds, are not among them."""
        own = self._ends.nbytes + self._shapes.nbytes
        return own + sum(cells.nbytes for cells in self._cells.values())

    # as one file

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return all that is held, its rows in the order they came: arrays by name, and the rest as JSON has it."""
        slots = np.fromiter(self._slots.values(), dtype=np.int64, count=len(self._slots))
        arrays: dict[str, NDArray[Any]] = {"ends": self._ends[slots], "shapes": self._shapes[slots]}
        for place, cells in enumerate(self._cells.values()):
            arrays[f"kinds{place}"] = cells.kinds[slots]
            arrays[f"words{place}"] = cells.words[slots]
        texts = [
            value if isinstance(value, (str, type(None))) else [str(value)] for value in self._codes.values
        ]
        rest = {"key": self.key, "names": list(self._cells), "shapes": self._names.values, "values": texts}
        return arrays, rest

    @classmethod
    def of_parts(cls, name: str, arrays: Mapping[str, NDArray[Any]], rest: Mapping[str, Any]) -> StoredTable:
        """Return the table that `parts` were taken of."""
        table = cls(name, tuple(rest["key"]))
        values = [int(one[0]) if isinstance(one, list) else one for one in rest["values"]]
        columns = {}
        for place, attribute in enumerate(rest["names"]):
            cells = columns[attribute] = Cells(0)
            cells.kinds, cells.words = arrays[f"kinds{place}"], arrays[f"words{place}"]
            cells.floats = cells.words.view(np.float64)
        ends, shapes = arrays["ends"].tolist(), arrays["shapes"].tolist()
        for at, (end, shape) in enumerate(zip(ends, shapes, strict=True)):
            row = {name: decode(columns[name], at, values) for name in rest["shapes"][shape]}
            table.upsert(row, end)
        return table

    def _key(self, row: Row) -> Key:
        values = [row.get(name) for name in self.key]
        if None in values:
            name = self.key[values.index(None)]
            raise EventError(f"a row of the table `{self.name}` needs it, since it is of its key", name)
        return key_of(cast("list[Value]", values))

    def _new_slot(self) -> int:
        slot = self._free.take()
        if slot == len(self._ends):
            more = 2 * slot
            self._ends = np.concatenate([self._ends, np.zeros(slot, dtype=np.int64)])
            self._shapes = np.concatenate([self._shapes, np.full(slot, -1, dtype=np.int32)])
            for cells in self._cells.values():
                cells.grow(more)
        return slot

    def _write(self, slot: int, row: Row, end: int) -> None:
        self._shapes[slot] = self._names.acquire(tuple(row))
        for name, value in row.items():
            cells = self._cells.get(name)
            if cells is None:
                cells = self._cells[name] = Cells(len(self._ends))
            if type(value) is float:
                cells.kinds[slot] = FLOAT
                cells.floats[slot] = value
            else:
                cells.kinds[slot], cells.words[slot] = self._word(value)
        self._ends[slot] = end

    def _column(self, batch: Batch, name: str, places: NDArray[np.int64]) -> Column:
        """Return one attribute of a batch's rows."""
        column = batch.columns.get(name)
        if column is None:
            size = len(places)
            return Column(np.zeros(size, dtype=np.uint8), np.zeros(size, dtype=np.int64))
        return column.take(places)

    def _before(
        self, name: str, slots: NDArray[np.int64], previous: NDArray[np.int64], new: Column
    ) -> Column:
        """Return what an attribute was before each row of a batch."""
        cells = self._cells.get(name)
        kinds = np.zeros(len(slots), dtype=np.uint8) if cells is None else cells.kinds[slots]
        words = np.zeros(len(slots), dtype=np.int64) if cells is None else cells.words[slots]
        again = previous >= 0
        kinds[again], words[again] = new.kinds[previous[again]], new.words[previous[again]]
        return Column(kinds, words)

    def _write_batch(
        self, batch: Batch, places: NDArray[np.int64], slots: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        """Write rows of a batch into slots, of which each is there once."""
        shapes = self._shapes[slots]
        self._names.release(shapes[shapes >= 0].astype(np.int64))
        for cells in self._cells.values():
            kinds = cells.kinds[slots]
            self._codes.release(cells.words[slots[kinds == CODED]])
            cells.kinds[slots] = ABSENT
        for name, column in batch.columns.items():
            held = self._cells.get(name)
            if held is None:
                held = self._cells[name] = Cells(len(self._ends))
            part = column.take(places)
            words = part.words
            if name in batch.texts:
                coded = part.kinds == CODED
                counts = np.bincount(words[coded], minlength=len(batch.texts[name]))
                codes = [
                    self._codes.acquire(text, count) if count else -1
                    for text, count in zip(batch.texts[name], counts.tolist(), strict=True)
                ]
                words = np.where(coded, np.array([*codes, -1], dtype=np.int64)[words], words)
            held.kinds[slots], held.words[slots] = part.kinds, words
        if batch.is_full:
            taken = self._names.acquire(tuple(batch.columns), len(slots)) if len(slots) else -1
            self._shapes[slots] = taken
        else:
            self._shapes[slots] = [self._names.acquire(batch.names(place)) for place in places.tolist()]
        self._ends[slots] = ends[places]

    def _clear(self, slot: int) -> None:
        """Let go of what a row holds."""
        for name in self._names.value(self._shapes[slot]):
            cells = self._cells[name]
            if cells.kinds[slot] == CODED:
                self._codes.release_one(int(cells.words[slot]))
            cells.kinds[slot] = ABSENT
        self._names.release_one(int(self._shapes[slot]))
        self._shapes[slot] = -1

    def _word(self, value: Value) -> tuple[int, int]:
        if isinstance(value, bool):
            return BOOLEAN, int(value)
        if isinstance(value, datetime):
            return MOMENT, microseconds(value)
        if isinstance(value, int) and -_WIDE <= value < _WIDE:
            return INTEGER, value
        return CODED, self._codes.acquire(value)

    def _value(self, name: str, slot: int) -> Value:
        return decode(self._cells[name], slot, self._codes.values)
