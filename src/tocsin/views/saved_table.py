"""The columns of a table that was saved, checked before any of them is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.model.timestamps import from_microseconds
from tocsin.model.values import Opaque, Value
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.interning import InterningTable
from tocsin.views.cells import ABSENT, CODED, MOMENT, Column


class SavedTable(Struct, frozen=True):
    """The rows of a table by the column, in the order they came; all fit together."""

    key: tuple[str, ...]
    ends: Int64s
    shapes: Int32s  # codes of the rows' `names`
    columns: dict[str, Column]
    names: list[tuple[str, ...]]  # attributes of rows
    name_uses: Int64s
    values: list[Value | None]  # by code
    value_uses: Int64s


def read_table(name: str, arrays: Mapping[str, NDArray[Any]], rest: Mapping[str, Any]) -> SavedTable:
    """Return a table's columns; raise `ValueError`, or what reading raises, if they do not fit together."""
    key = tuple(map(str, rest["key"]))
    ends = _checked(arrays["ends"], np.int64, None)
    names = [tuple(map(str, one or ())) for one in rest["shapes"]]
    shapes = _checked(arrays["shapes"], np.int32, len(ends), below=len(names))
    values = [_read_plain(one) for one in rest["values"]]
    value_uses = np.zeros(len(values), dtype=np.int64)
    columns: dict[str, Column] = {}
    for position, attribute in enumerate(rest["names"]):
        has = np.array([attribute in one for one in names], dtype=np.bool_)[shapes]
        column = columns[str(attribute)] = _read_column(arrays, position, has, name, values)
        codes = column.words[column.kinds == CODED]
        value_uses += np.bincount(codes, minlength=len(values))
        if attribute in key and any(type(values[code]) is Opaque for code in np.unique(codes).tolist()):
            raise ValueError(f"a key of `{name}` cannot be compared")
    for shape in np.unique(shapes).tolist():
        if not set(key) <= set(names[shape]) <= set(columns):
            raise ValueError(f"a row of `{name}` lacks its key, or has an unknown attribute")
    name_uses = np.bincount(shapes, minlength=len(names))
    return SavedTable(key, ends, shapes, columns, names, name_uses, values, value_uses)


def _read_column(
    arrays: Mapping[str, NDArray[Any]], position: int, has: NDArray[np.bool_], name: str, values: list[Any]
) -> Column:
    """Return an attribute's cells: those of the rows that have it, by their shape, and no others."""
    kinds = _checked(arrays[f"kinds{position}"], np.uint8, len(has), below=CODED + 1)
    words = _checked(arrays[f"words{position}"], np.int64, len(has))
    wrong = (kinds != ABSENT) != has
    if wrong.any():
        raise ValueError(f"row {int(wrong.argmax())} of `{name}` lacks a value")
    moments = words[kinds == MOMENT]
    if len(moments):
        list(map(from_microseconds, (int(moments.min()), int(moments.max()))))  # which may be none
    _checked(words[kinds == CODED], np.int64, None, below=len(values))
    return Column(kinds, words)


def _checked(array: NDArray[Any], dtype: type, count: int | None, below: int | None = None) -> NDArray[Any]:
    """Return a column, or raise `ValueError` if it is of another type or length, or has a number that is not below `below`."""
    if array.dtype != dtype or array.ndim != 1 or (count is not None and len(array) != count):
        raise ValueError("a column does not fit")
    if below is not None and len(array) and not 0 <= int(array.min()) <= int(array.max()) < below:
        raise ValueError("a code is unknown")
    return array


def restore_interned(table: InterningTable[Any], values: list[Any], uses: Int64s) -> None:
    """Restore the values that have uses, of which no two may be the same."""
    kept = [value if count else None for value, count in zip(values, uses.tolist(), strict=True)]
    table.restore(kept, uses)
    if len(table) != np.count_nonzero(uses):
        raise ValueError("a value has two codes, or is missing")


def longer(column: NDArray[Any], room: int, rest: int) -> NDArray[Any]:
    """Return a copy of a column with more room."""
    found = np.full(room, rest, dtype=column.dtype)
    found[: len(column)] = column
    return found


def plain_code(value: Value | None) -> Any:
    """Return a coded value as JSON has it."""
    if isinstance(value, Opaque):
        return {"opaque": value.type}
    return value if isinstance(value, (str, type(None))) else [str(value)]


def _read_plain(plain: Any) -> Any:
    """Return the value that `plain_code` wrote."""
    if isinstance(plain, dict):
        return Opaque(plain["opaque"])
    return int(plain[0]) if isinstance(plain, list) else plain
