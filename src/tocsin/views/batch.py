"""Rows of an Arrow table that become rows of a table by the column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.formats.opaque_columns import is_opaque, opaque_values
from tocsin.matching import IdArray
from tocsin.matching.encoding.columns import plain_values
from tocsin.model.errors import EventError
from tocsin.model.values import Opaque, Value
from tocsin.views.cells import BOOLEAN, CODED, FLOAT, INTEGER, MOMENT, Column, Key, decode_all, key_of
from tocsin.views.changes import Row, RowChange

_MOMENT: Final = pa.timestamp("us", "UTC")


class Batch(Struct, frozen=True, dict=True):
    """Rows by the column, in the order they come; the words of texts are positions in `texts`."""

    table: pa.Table
    columns: dict[str, Column]
    texts: dict[str, list[Any]]
    keys: list[Key]

    def __len__(self) -> int:
        return len(self.keys)

    def names(self, position: int) -> tuple[str, ...]:
        """Return the attributes that a row has."""
        return tuple(name for name, column in self.columns.items() if column.kinds[position])

    def shapes(self, positions: IdArray) -> tuple[list[tuple[str, ...]], IdArray]:
        """Return the sets of attributes that these rows have, and which of them each row has."""
        there = np.array([column.kinds[positions] != 0 for column in self.columns.values()], dtype=np.bool_)
        if there.all():
            return [tuple(self.columns)], np.zeros(len(positions), dtype=np.int64)
        packed = np.packbits(there, axis=0)
        _, first, which = np.unique(packed, axis=1, return_index=True, return_inverse=True)
        return [self.names(positions[place]) for place in first.tolist()], which.reshape(-1)

    @cached_property
    def rows(self) -> list[Row]:
        """Return all rows as mappings."""
        return self.rows_at(np.arange(len(self)))

    def rows_at(self, positions: IdArray) -> list[Row]:
        """Return some rows as mappings."""
        names = list(self.columns)
        cells = [self._values(name, positions) for name in names]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*cells, strict=True)
        ]

    def _values(self, name: str, positions: IdArray) -> list[Value | None]:
        """Return an attribute of some rows, None where it is absent."""
        return decode_all(self.columns[name].take(positions), self.texts.get(name, []))


def read_batch(table: pa.Table, key: Sequence[str], name: str) -> Batch:
    """Return a table's rows; raise `EventError` for a column of another kind, and for a row without its key."""
    columns: dict[str, Column] = {}
    texts: dict[str, list[Any]] = {}
    for attribute, chunks in zip(table.schema.names, table.columns, strict=True):
        found = _column(chunks.combine_chunks())
        if found is None:
            raise EventError(
                f"a column of {chunks.type} is not taken as it is, only integers of 64 bits, floats, texts, booleans, "
                "dates and timestamps to the microsecond; cast it, or publish the table",
                attribute,
            )
        if attribute in columns:
            raise EventError("two columns have this name", attribute)
        columns[attribute], words = found
        if words is not None:
            texts[attribute] = words
    for attribute in key:
        missing = (
            columns[attribute].kinds == 0 if attribute in columns else np.ones(table.num_rows, dtype=np.bool_)
        )
        if missing.any():
            raise EventError(
                f"row {int(missing.argmax())} has none, and a row of the table `{name}` needs it, since it is of its key",
                attribute,
            )
        if any(isinstance(one, Opaque) for one in texts.get(attribute, ())):
            raise EventError(
                f"a row of the table `{name}` cannot have a value there that cannot be compared, since it is of its key",
                attribute,
            )
    return Batch(table, columns, texts, keys_of(columns, texts, key, table.num_rows))


def keys_of(
    columns: Mapping[str, Column], texts: Mapping[str, list[Any]], key: Sequence[str], count: int
) -> list[Key]:
    """Return the keys of so many rows, all of which have them."""
    parts = [_key_parts(columns[attribute], texts.get(attribute, [])) for attribute in key if count]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _key_parts(column: Column, texts: list[Any]) -> list[Key]:
    """Return the values of a column that every row has, as keys contain them."""
    values = decode_all(column, texts)
    return [key_of((value,)) for value in values] if (column.kinds == BOOLEAN).any() else values


def _column(array: Any) -> tuple[Column, list[Any] | None] | None:
    """Return one column's cells, and its texts if these are some; None if it is of another kind."""
    array = _in_plain_kind(array.dictionary_decode() if pa.types.is_dictionary(array.type) else array)
    kind = array.type
    present, _ = plain_values(array.is_valid())
    texts: list[Any] | None = None
    if pa.types.is_floating(kind):
        cell_kind = FLOAT
        words = _plain(array.cast(pa.float64())).view(np.int64)
        if np.isnan(words.view(np.float64)).any():
            return None  # a row that is no event: reading it as an event reports it
    elif pa.types.is_integer(kind) and kind != pa.uint64():
        cell_kind, words = INTEGER, _plain(array.cast(pa.int64()))
    elif pa.types.is_null(kind):
        cell_kind, words = INTEGER, np.zeros(len(array), dtype=np.int64)
    elif pa.types.is_boolean(kind):
        cell_kind, words = BOOLEAN, _plain(array.cast(pa.int64()))
    elif kind == _MOMENT:
        cell_kind, words = MOMENT, _plain(array.cast(pa.int64()))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = array.dictionary_encode()
        cell_kind, words = CODED, _plain(coded.indices.cast(pa.int64()))
        texts = coded.dictionary.to_pylist()
    elif is_opaque(kind):
        coded = array.dictionary_encode()
        cell_kind, words = CODED, _plain(coded.indices.cast(pa.int64()))
        texts = opaque_values(coded.dictionary)
    else:
        return None
    return Column(np.where(present, np.uint8(cell_kind), np.uint8(0)), words), texts


def _in_plain_kind(array: Any) -> Any:
    """Return a column in the kind that cells have, if that holds all its values: dates are timestamps at midnight in UTC."""
    kind, wanted = array.type, None
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        wanted = _MOMENT
    elif kind == pa.uint64():
        wanted = pa.int64()
    elif kind == pa.float16():
        wanted = pa.float32()
    if wanted is None:
        return array
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid:  # parts of microseconds, or numbers beyond 64 bits
        return array


def _plain(array: Any) -> NDArray[Any]:
    """Return a copy of an array's numbers, zero at nulls."""
    return np.array(plain_values(array)[0])


class BatchChanges(Struct, frozen=True):
    """The changes that a batch made in a table, one for each row that was not late.

    `previous` is the change of the same batch that wrote the slot before, -1 for none. `row` returns the row that is
    in a slot of the table now.
    """

    table: str
    row: Callable[[int], Row]
    positions: IdArray  # in the batch
    slots: IdArray
    previous: IdArray

    def of_rows(self, rows: Sequence[Any]) -> list[RowChange]:
        """Return the changes one by one, with the rows of the batch as a family reads them."""
        pairs = zip(self.positions.tolist(), self.slots.tolist(), strict=True)
        return [RowChange(self.table, slot, rows[position]) for position, slot in pairs]


def previous_positions(slots: IdArray) -> IdArray:
    """Return, of each row, the last one before it that has the same slot; -1 if there is none."""
    found = np.full(len(slots), -1, dtype=np.int64)
    order = np.argsort(slots, kind="stable")
    again = np.flatnonzero(slots[order[1:]] == slots[order[:-1]])
    found[order[again + 1]] = order[again]
    return found
