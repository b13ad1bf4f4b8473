"""A table: the last row of each key, in arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.formats.opaque_columns import is_opaque
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.event import DELETIONS, is_deletion
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Opaque, Value
from tocsin.structures.array_types import Bools, Int32s, Int64s
from tocsin.structures.interning import InterningTable
from tocsin.structures.slots import Slots
from tocsin.views.batch import Batch, BatchChanges, keys_of, previous_positions
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
from tocsin.views.changes import Row
from tocsin.views.saved_table import longer, plain_code, read_table, restore_interned

_SLOTS: Final = 64
_WIDE: Final = 2**63


class RowUpdate(Struct, frozen=True):
    """An event of a table, read and checked: the row that replaces the one of its key, or None if that is deleted."""

    table: StoredTable
    key: Key
    row: Row | None
    end: int
    readings: dict[Any, Any]  # the row as each of the table's readers reads it


class StoredTable:
    """The rows of a table, each in a slot; an event replaces the whole row of its key.

    A row that ended before the stored one is late, and changes nothing. `key` names one attribute or several.
    """

    def __init__(self, name: str, key: tuple[str, ...]) -> None:
        self.name = name
        self.key = key
        self.late = 0  # rows that came too late
        self.readers: dict[Any, None] = {}  # the keys of the families that read it, in the order they came
        self._slots: dict[Key, int] = {}
        self._free = Slots()
        self._ends: Int64s = np.zeros(_SLOTS, dtype=np.int64)
        self._shapes: Int32s = np.full(_SLOTS, -1, dtype=np.int32)  # -1: no row
        self._names = InterningTable[tuple[str, ...]]()  # a row's attributes, in order: its shape
        self._cells: dict[str, Cells] = {}
        self._codes = InterningTable[Value]()  # texts, and integers beyond 64 bits

    def __len__(self) -> int:
        return len(self._slots)

    def read(self, event: Event) -> RowUpdate:
        """Return an event as a row, without the marks of a deletion; raise `EventError` if it lacks a part of the key."""
        row, deletes = event.attributes, False
        if "$delete" in row or "_deleted" in row:
            row, deletes = {n: v for n, v in row.items() if n not in DELETIONS}, is_deletion(event)
        return RowUpdate(self, self.key_of(row), None if deletes else row, event.end, {})

    def upsert(self, key: Key, row: Row, end: int) -> int | None:
        """Insert a row, or replace the row with its key; return its slot, None if it is late."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = self._new_slot()
        elif end < self._ends[slot]:
            self.late += 1
            return None
        self._write(slot, row)
        self._ends[slot] = end
        return slot

    def upsert_batch(self, batch: Batch, ends: Int64s) -> BatchChanges:
        """Insert rows, or replace those with their keys, one after another, and return the changes."""
        slots = np.fromiter(map(self._slots.get, batch.keys, repeat(-1)), dtype=np.int64, count=len(batch))
        # An event without a stored row cannot be late; slot 0 is read instead and ignored.
        late = (slots >= 0) & (ends < self._ends[np.maximum(slots, 0)])
        for at in np.flatnonzero(slots < 0).tolist():
            key = batch.keys[at]
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = self._new_slot()
            slots[at] = slot
        if (ends[1:] < ends[:-1]).any():
            late |= _is_overtaken(slots, ends)
        self.late += int(late.sum())
        positions = np.flatnonzero(~late)
        slots = slots[positions]
        previous = previous_positions(slots)
        last = np.ones(len(slots), dtype=np.bool_)
        last[previous[previous >= 0]] = False
        self._write_batch(batch, positions[last], slots[last], ends)
        return BatchChanges(self.name, self.row, positions, slots, previous)

    def delete(self, key: Key, end: int) -> int | None:
        """Remove the row with a key, and return the slot it had; None if there is none, or a later one."""
        slot = self._slots.get(key)
        if slot is None:
            return None
        if end < self._ends[slot]:
            self.late += 1
            return None
        self._clear(slot)
        del self._slots[key]
        self._free.give(slot)
        return slot

    def key_of(self, row: Row) -> Key:
        """Return the key of a row, or raise `EventError` if a part of it is missing."""
        values = []
        for name in self.key:
            value = row.get(name)
            if value is None:
                raise self.missing_key(name)
            if type(value) is Opaque:
                raise self.opaque_key(name)
            values.append(value)
        return values[0] if len(values) == 1 and type(values[0]) is not bool else key_of(values)

    def missing_keys(self, events: ArrowEvents) -> dict[int, str]:
        """Return, by position, the fault of each row without an attribute of the key."""
        faults: dict[int, str] = {}
        for name in reversed(self.key):  # the first one that is missing is reported
            lacking = events.lacks(name)
            faults |= dict.fromkeys(np.flatnonzero(lacking).tolist(), str(self.missing_key(name)))
            if any(is_opaque(leaf.type) for leaf in events.leaves_at(name)):
                faults |= dict.fromkeys(np.flatnonzero(~lacking).tolist(), str(self.opaque_key(name)))
        return faults

    def opaque_key(self, name: str) -> EventError:
        """Return the error of a row whose attribute of the key cannot be compared."""
        return EventError(
            f"a row of the table `{self.name}` cannot have a value there that cannot be compared, since it is of its key",
            name,
        )

    def missing_key(self, name: str) -> EventError:
        """Return the error of a row without an attribute of the key."""
        return EventError(f"a row of the table `{self.name}` needs it, since it is of its key", name)

    def find(self, key: Key) -> int | None:
        """Return the slot of the row with a key, if there is one."""
        return self._slots.get(key)

    def is_late(self, key: Key, end: int) -> bool:
        """Tell whether a row ended before the stored one with its key."""
        slot = self._slots.get(key)
        return slot is not None and end < int(self._ends[slot])

    @property
    def unused_slot(self) -> int:
        """Return a slot that no row has."""
        return len(self._ends)

    def row(self, slot: int) -> Row:
        """Return the row in a slot."""
        return {name: self._value(name, slot) for name in self._names.value(self._shapes[slot])}

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Return all rows with their slots, in the order of arrival."""
        return ((slot, self.row(slot)) for slot in self._slots.values())

    @property
    def nbytes(self) -> int:
        """Return the bytes of the arrays; the keys and texts, which Python holds, are not among them."""
        own = self._ends.nbytes + self._shapes.nbytes
        return own + sum(cells.nbytes for cells in self._cells.values())

    # as one file

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the whole state, its rows in the order they came: arrays by name, and the rest as JSON has it."""
        slots = np.fromiter(self._slots.values(), dtype=np.int64, count=len(self._slots))
        arrays: dict[str, NDArray[Any]] = {"ends": self._ends[slots], "shapes": self._shapes[slots]}
        for position, cells in enumerate(self._cells.values()):
            arrays[f"kinds{position}"] = cells.kinds[slots]
            arrays[f"words{position}"] = cells.words[slots]
        texts = [plain_code(value) for value in self._codes.values]
        rest = {"key": self.key, "names": list(self._cells), "shapes": self._names.values, "values": texts}
        return arrays, rest

    @classmethod
    def of_parts(cls, name: str, arrays: Mapping[str, NDArray[Any]], rest: Mapping[str, Any]) -> StoredTable:
        """Return the table that `parts` were taken of, or raise an error if they do not fit."""
        saved = read_table(name, arrays, rest)
        table, count = cls(name, saved.key), len(saved.ends)
        restore_interned(table._codes, saved.values, saved.value_uses)
        restore_interned(table._names, saved.names, saved.name_uses)
        texts = dict.fromkeys(saved.key, saved.values)
        table._slots = dict(zip(keys_of(saved.columns, texts, saved.key, count), range(count), strict=True))
        if len(table._slots) < count:
            raise ValueError(f"two rows of `{name}` have one key")
        table._free = Slots(count)
        room = max(_SLOTS, count)
        table._ends, table._shapes = longer(saved.ends, room, 0), longer(saved.shapes, room, -1)
        for attribute, column in saved.columns.items():
            cells = table._cells[attribute] = Cells(0)
            cells.kinds, cells.words = longer(column.kinds, room, 0), longer(column.words, room, 0)
            cells.floats = cells.words.view(np.float64)
        return table

    def contents(self) -> StoredRows:
        """Return all rows with their slots, in the order of arrival."""
        slots = np.fromiter(self._slots.values(), dtype=np.int64, count=len(self._slots))
        return StoredRows(self, slots)

    def batch(self, slots: Int64s) -> Batch:
        """Return the rows of these slots by the column."""
        columns = {
            name: Column(cells.kinds[slots], cells.words[slots]) for name, cells in self._cells.items()
        }
        texts = dict.fromkeys(columns, self._codes.values)
        return Batch(pa.table({}), columns, texts, list(self._slots))

    def _new_slot(self) -> int:
        """Return a free slot; all columns grow if there is none."""
        slot = self._free.take()
        if slot == len(self._ends):
            more = 2 * slot
            self._ends = np.concatenate([self._ends, np.zeros(slot, dtype=np.int64)])
            self._shapes = np.concatenate([self._shapes, np.full(slot, -1, dtype=np.int32)])
            for cells in self._cells.values():
                cells.grow(more)
        return slot

    def _write(self, slot: int, row: Row) -> None:
        """Write a row over the one in a slot, if there is one; a text that stays keeps its code."""
        names, shape = tuple(row), self._shapes.item(slot)
        if shape < 0 or self._names.values[shape] != names:
            if shape >= 0:
                self._clear(slot)
            self._shapes[slot] = self._names.acquire(names)
        texts = self._codes.values
        value: Any
        for name, value in row.items():
            cells = self._cells.get(name)
            if cells is None:
                cells = self._cells[name] = Cells(len(self._ends))
            old = cells.words.item(slot) if cells.kinds.item(slot) == CODED else -1
            kind = type(value)
            if kind is float:
                cells.kinds[slot] = FLOAT
                cells.floats[slot] = value
            elif kind is int and -_WIDE <= value < _WIDE:
                cells.kinds[slot] = INTEGER
                cells.words[slot] = value
            elif old >= 0 and texts[old] == value:
                continue
            else:
                cells.kinds[slot], cells.words[slot] = self._word(value)
            if old >= 0:
                self._codes.release_one(old)

    def _write_batch(self, batch: Batch, positions: Int64s, slots: Int64s, ends: Int64s) -> None:
        """Write rows of a batch into slots, of which each is there once."""
        shapes = self._shapes[slots]
        self._names.release(shapes[shapes >= 0].astype(np.int64))
        for cells in self._cells.values():
            kinds = cells.kinds[slots]
            self._codes.release(cells.words[slots[kinds == CODED]])
            cells.kinds[slots] = ABSENT
        for name, column in batch.columns.items():
            target = self._cells.get(name)
            if target is None:
                target = self._cells[name] = Cells(len(self._ends))
            part = column.take(positions)
            words = part.words
            if name in batch.texts:
                coded = part.kinds == CODED
                counts = np.bincount(words[coded], minlength=len(batch.texts[name]))
                codes = [
                    self._codes.acquire(text, count) if count else -1
                    for text, count in zip(batch.texts[name], counts.tolist(), strict=True)
                ]
                words = np.where(coded, np.array([*codes, -1], dtype=np.int64)[words], words)
            target.kinds[slots], target.words[slots] = part.kinds, words
        if len(slots):
            names, which = batch.shapes(positions)
            counts = np.bincount(which, minlength=len(names)).tolist()
            self._shapes[slots] = np.array(list(map(self._names.acquire, names, counts)))[which]
        self._ends[slots] = ends[positions]

    def _clear(self, slot: int) -> None:
        """Release the codes of a row."""
        for name in self._names.value(self._shapes[slot]):
            cells = self._cells[name]
            if cells.kinds[slot] == CODED:
                self._codes.release_one(int(cells.words[slot]))
            cells.kinds[slot] = ABSENT
        self._names.release_one(int(self._shapes[slot]))
        self._shapes[slot] = -1

    def _word(self, value: Value) -> tuple[int, int]:
        """Return a value that is neither a float nor an integer of 64 bits as a kind and a word."""
        if isinstance(value, bool):
            return BOOLEAN, int(value)
        if isinstance(value, datetime):
            return MOMENT, microseconds(value)
        return CODED, self._codes.acquire(value)

    def _value(self, name: str, slot: int) -> Value:
        return decode(self._cells[name], slot, self._codes.values)


class StoredRows:
    """The rows of a table with their slots, in the order of arrival; they can be read again and again."""

    def __init__(self, table: StoredTable, slots: Int64s) -> None:
        self.slots = slots
        self._table = table

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self._table.rows()

    def row(self, slot: int) -> Row:
        """Return one row."""
        return self._table.row(slot)

    def batch(self) -> Batch:
        """Return the rows by the column."""
        return self._table.batch(self.slots)


def _is_overtaken(slots: Int64s, ends: Int64s) -> Bools:
    """Tell which rows ended before one that came earlier in the same slot."""
    latest: dict[int, int] = {}
    found = np.zeros(len(slots), dtype=np.bool_)
    for position, (slot, end) in enumerate(zip(slots.tolist(), ends.tolist(), strict=True)):
        if end < latest.get(slot, end):
            found[position] = True
        else:
            latest[slot] = end
    return found
