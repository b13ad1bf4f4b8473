"""The rows of a join: two tables with a key in common, and their changes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats
from tocsin.views.kinds.kind import PointError


class Table(IntEnum):
    """One of the two tables of a join."""

    R = 0  # whose value is x, which ranges look at
    S = 1  # whose value is z


class JoinRows(Struct, frozen=True):
    """Rows of one table, as columns of equal length: no id twice, all numbers finite."""

    id: IdArray
    key: Floats
    value: Floats  # x of R, z of S

    def __len__(self) -> int:
        return len(self.id)

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> JoinRows:
        """Return only these, given by their places or by a mask."""
        return JoinRows(self.id[places], self.key[places], self.value[places])

    def check(self, table: Table) -> None:
        """Raise `TocsinError` at a row that cannot be one of a table."""
        if len(wrong := np.flatnonzero(~(np.isfinite(self.key) & np.isfinite(self.value)))):
            at = int(wrong[0])
            raise TocsinError(
                f"table {table.name}, row {at}: its key {self.key[at]} and value {self.value[at]} are to be finite; "
                f"leave the row out"
            )
        ids, counts = np.unique(self.id, return_counts=True)
        if len(twice := ids[counts > 1]):
            raise TocsinError(
                f"table {table.name} has several rows of id {twice[0]}; give each an id of its own"
            )


class JoinChanges(Struct, frozen=True):
    """Changes of rows of both tables, one after another, as columns of equal length.

    A row without an old key and value comes, one without new ones goes: they are NaN. Any other keeps its id, whatever
    else of it changes.
    """

    table: NDArray[np.int8]  # a `Table`
    id: IdArray
    old_key: Floats
    old_value: Floats
    new_key: Floats
    new_value: Floats

    def __len__(self) -> int:
        return len(self.id)

    def part(self, begin: int, end: int | None = None) -> JoinChanges:
        """Return the changes from place `begin` to before `end`, or to the last."""
        part = slice(begin, end)
        return JoinChanges(
            self.table[part],
            self.id[part],
            self.old_key[part],
            self.old_value[part],
            self.new_key[part],
            self.new_value[part],
        )

    def check(self) -> None:
        """Raise `TocsinError` at a change that is none of two rows, of which each is there or not."""
        columns = ((self.old_key, self.old_value), (self.new_key, self.new_value))
        wrong = ~np.isin(self.table, list(Table))
        for key, value in columns:
            wrong |= ~(np.isfinite(key) & np.isfinite(value)) & ~(np.isnan(key) & np.isnan(value))
        if len(places := np.flatnonzero(wrong)):
            at = int(places[0])
            rows = ", ".join(f"({key[at]}, {value[at]})" for key, value in columns)
            raise TocsinError(
                f"change {at}: table {self.table[at]}, from and to (key, value) {rows}; a table is 0 for R or 1 for S, "
                f"and a key and a value are both finite, or both NaN where there is no row"
            )


class Image(Struct, frozen=True):
    """Rows of one table, which nobody changes."""

    values: Mapping[float, Mapping[int, float]]  # by key, then by id
    keys: Mapping[int, float]  # by id


_NO_ROWS: Final[Mapping[int, float]] = {}


class KeyedRows:
    """Rows of one table by key. It begins as an image that others may hold too, and copies only what changes."""

    def __init__(self, table: Table, image: Image) -> None:
        self._table = table
        self._image = image
        # For what is in them, in the place of the image's; a row that went has no key.
        self._changed: dict[float, dict[int, float]] = {}
        self._keys: dict[int, float | None] = {}

    def of(self, key: float) -> Mapping[int, float]:
        """Return the values of all rows with a key, by id."""
        changed = self._changed.get(key)
        return self._image.values.get(key, _NO_ROWS) if changed is None else changed

    def expect(self, place: int, id: int, key: float, value: float) -> None:
        """Raise `PointError`, naming a change by its place, unless a row is held just so."""
        if self.of(key).get(id) != value:
            raise self._fault(place, f"row {id} is not held with key {key} and value {value}")

    def expect_none(self, place: int, id: int) -> None:
        """Raise `PointError`, naming a change by its place, if a row is held already, with whatever key."""
        key = self._keys[id] if id in self._keys else self._image.keys.get(id)
        if key is not None:
            raise self._fault(place, f"row {id} is held already, with key {key}")

    def remove(self, id: int, key: float) -> None:
        """Let go of a row that is held."""
        del self._own(key)[id]
        self._keys[id] = None

    def add(self, id: int, key: float, value: float) -> None:
        """Hold a row."""
        self._own(key)[id] = value
        self._keys[id] = key

    def all(self) -> list[tuple[float, Mapping[int, float]]]:
        """Return each key with its rows."""
        held = ((key, self.of(key)) for key in {**self._image.values, **self._changed})
        return [(key, rows) for key, rows in held if rows]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all rows, those of the image too."""
        tables = (self._changed, self._keys, self._image.keys, *(rows for _, rows in self.all()))
        return sum(map(sys.getsizeof, tables))

    def _fault(self, place: int, reason: str) -> PointError:
        return PointError(
            place,
            f", table {self._table.name}: {reason}; the changes before it are made. "
            f"Begin anew with the tables' rows",
        )

    def _own(self, key: float) -> dict[int, float]:
        rows = self._changed.get(key)
        if rows is None:
            rows = self._changed[key] = dict(self._image.values.get(key, _NO_ROWS))
        return rows


def image_of(rows: JoinRows) -> Image:
    """Return rows by key, and the key of each."""
    values: dict[float, dict[int, float]] = {}
    ids, keys = rows.id.tolist(), rows.key.tolist()
    for id, key, value in zip(ids, keys, rows.value.tolist(), strict=True):
        values.setdefault(key, {})[id] = value
    return Image(values, dict(zip(ids, keys, strict=True)))
