"""Rows of the two tables of a join, and their changes."""

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
from tocsin.views.aggregates.base import PointError
from tocsin.views.changes import Floats


class JoinSide(IntEnum):
    """The two tables of a join."""

    R = 0  # its value is x, the attribute of ranges
    S = 1  # its value is z


class JoinRows(Struct, frozen=True):
    """Rows of one table, as columns of equal length: no id twice, all numbers finite."""

    id: IdArray
    key: Floats
    value: Floats  # x of R, z of S

    def __len__(self) -> int:
        return len(self.id)

    def take(self, positions: NDArray[np.int64] | NDArray[np.bool_]) -> JoinRows:
        """Return some of the rows, given by their positions or by a mask."""
        return JoinRows(self.id[positions], self.key[positions], self.value[positions])

    def check(self, table: JoinSide) -> None:
        """Raise `TocsinError` at a row that is not finite, or has the id of another."""
        if len(wrong := np.flatnonzero(~(np.isfinite(self.key) & np.isfinite(self.value)))):
            at = int(wrong[0])
            raise TocsinError(
                f"table {table.name}, row {at}: its key {self.key[at]} and value {self.value[at]} are to be finite; "
                f"leave the row out"
            )
        ids, counts = np.unique(self.id, return_counts=True)
        if len(twice := ids[counts > 1]):
            raise TocsinError(f"table {table.name} has several rows of id {twice[0]}; give each its own id")


class JoinChanges(Struct, frozen=True):
    """Changes of rows of both tables, one after another, as columns of equal length.

    An inserted row has NaN as its old key and value, a deleted one as its new ones. An update may change all but the id.
    """

    table: NDArray[np.int8]  # a `JoinSide`
    id: IdArray
    old_key: Floats
    old_value: Floats
    new_key: Floats
    new_value: Floats

    def __len__(self) -> int:
        return len(self.id)

    def part(self, begin: int, end: int | None = None) -> JoinChanges:
        """Return the changes from position `begin` to before `end`, or to the last."""
        return JoinChanges(*(getattr(self, name)[begin:end] for name in self.__struct_fields__))

    def check(self) -> None:
        """Raise `TocsinError` at a change whose table is unknown, or whose rows are neither finite nor absent."""
        columns = ((self.old_key, self.old_value), (self.new_key, self.new_value))
        wrong = ~np.isin(self.table, list(JoinSide))
        for key, value in columns:
            wrong |= ~(np.isfinite(key) & np.isfinite(value)) & ~(np.isnan(key) & np.isnan(value))
        if len(found := np.flatnonzero(wrong)):
            at = int(found[0])
            rows = ", ".join(f"({key[at]}, {value[at]})" for key, value in columns)
            raise TocsinError(
                f"change {at}: table {self.table[at]}, from and to (key, value) {rows}; a table is 0 for R or 1 for S, "
                f"and a key and a value are both finite, or both NaN where there is no row"
            )


class TableImage(Struct, frozen=True):
    """The initial rows of one table; replicas share it, so it must not change."""

    values: Mapping[float, Mapping[int, float]]  # by key, then by id
    keys: Mapping[int, float]  # by id


_NO_ROWS: Final[Mapping[int, float]] = {}


class KeyedRows:
    """Rows of one table by key: a shared image, and copies of the keys that changed since."""

    def __init__(self, table: JoinSide, image: TableImage) -> None:
        self._table = table
        self._image = image
        # Both override the image; a deleted row has no key.
        self._changed: dict[float, dict[int, float]] = {}
        self._keys: dict[int, float | None] = {}

    def of(self, key: float) -> Mapping[int, float]:
        """Return the values of all rows with a key, by id."""
        changed = self._changed.get(key)
        return self._image.values.get(key, _NO_ROWS) if changed is None else changed

    def expect(self, position: int, id: int, key: float, value: float) -> None:
        """Raise `PointError`, naming a change by its position, unless a row is stored with this key and value."""
        if self.of(key).get(id) != value:
            raise self._fault(position, f"row {id} is not stored with key {key} and value {value}")

    def expect_none(self, position: int, id: int) -> None:
        """Raise `PointError`, naming a change by its position, if a row is already stored with any key."""
        key = self._keys[id] if id in self._keys else self._image.keys.get(id)
        if key is not None:
            raise self._fault(position, f"row {id} is stored already, with key {key}")

    def remove(self, id: int, key: float) -> None:
        """Remove a row that is stored."""
        del self._own(key)[id]
        self._keys[id] = None

    def add(self, id: int, key: float, value: float) -> None:
        """Store a row."""
        self._own(key)[id] = value
        self._keys[id] = key

    def all(self) -> list[tuple[float, Mapping[int, float]]]:
        """Return each key with its rows."""
        stored = ((key, self.of(key)) for key in {**self._image.values, **self._changed})
        return [(key, rows) for key, rows in stored if rows]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all rows, including those of the image."""
        tables = (self._changed, self._keys, self._image.keys, *(rows for _, rows in self.all()))
        return sum(map(sys.getsizeof, tables))

    def _fault(self, position: int, reason: str) -> PointError:
        return PointError(
            position,
            f", table {self._table.name}: {reason}; the changes before it are made. "
            f"Start again with the tables' rows",
        )

    def _own(self, key: float) -> dict[int, float]:
        rows = self._changed.get(key)
        if rows is None:
            rows = self._changed[key] = dict(self._image.values.get(key, _NO_ROWS))
        return rows


def image_of(rows: JoinRows) -> TableImage:
    """Return rows by key, and the key of each."""
    values: dict[float, dict[int, float]] = {}
    ids, keys = rows.id.tolist(), rows.key.tolist()
    for id, key, value in zip(ids, keys, rows.value.tolist(), strict=True):
        values.setdefault(key, {})[id] = value
    return TableImage(values, dict(zip(ids, keys, strict=True)))
