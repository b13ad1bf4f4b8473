"""Plain dicts as a block of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from tocsin.formats.column_blocks import ROW_SPECIFIC, ColumnBlock, value_arrays

_KINDS: Final = {bool, int, float, str, type(None)}
_MOST_NAMES: Final = 512


def dict_block(rows: Sequence[object]) -> ColumnBlock | None:
    """Return dicts as a block, or None if some row is not a dict of plain values and has to be read by itself.

    Names and strings are valid Unicode, integers have 64 bits, no float is NaN, and no name has a special meaning.
    """
    if set(map(type, rows)) != {dict}:
        return None
    dicts = cast("Sequence[dict[Any, Any]]", rows)
    names = dict.fromkeys(dicts[0])
    for row in dicts:
        if row.keys() != names.keys():
            names.update(dict.fromkeys(row))
    if len(names) > _MOST_NAMES or set(map(type, names)) - {str} or not ROW_SPECIFIC.isdisjoint(names):
        return None
    try:
        "".join(names).encode()
        columns = {name: _column([row.get(name) for row in dicts]) for name in names}
    except (UnicodeEncodeError, OverflowError, _NotPlainError):
        return None
    return _DictBlock(dicts, columns)


class _NotPlainError(Exception):
    """A value that has no column."""


def _column(values: list[Any]) -> list[Any]:
    kinds = set(map(type, values))
    if not kinds <= _KINDS:
        raise _NotPlainError
    arrays = value_arrays(values)
    if float in kinds and any(
        type(value) is float and np.isnan(value) for value in _doubtful(arrays, values)
    ):
        raise _NotPlainError
    return arrays


def _doubtful(arrays: list[Any], values: list[Any]) -> list[Any]:
    """Return the values, if a NaN may be among them: it looks like a null to the array of floats."""
    nulls = sum(array.null_count for array in arrays if pa.types.is_floating(array.type))
    others = sum(len(values) - array.null_count for array in arrays if not pa.types.is_floating(array.type))
    return values if nulls > others else []


class _DictBlock(ColumnBlock):
    """Dicts with their columns."""

    def __init__(self, rows: Sequence[dict[str, Any]], columns: dict[str, list[Any]]) -> None:
        super().__init__(tuple(columns), range(1, len(rows) + 1))
        self._rows = rows
        self._columns = columns

    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the Arrow arrays with the values at a path."""
        return self._columns.get(path, ())

    def has_integers(self, path: str) -> bool:
        """Tell whether integers stand among the floats at a path."""
        return int in {type(row.get(path)) for row in self._rows}

    def record(self, row: int) -> Mapping[str, object]:
        """Return a copy of a dict, which the caller may change."""
        return dict(self._rows[row])
