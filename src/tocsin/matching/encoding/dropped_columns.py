"""Columns of an Arrow table that hold no values, arrays and bytes: they are left out and counted, as in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from tocsin.matching.encoding.columns import is_text, plain_values
from tocsin.structures.array_types import Bools

Dropped: TypeAlias = Mapping[str, Bools]
"""The paths of columns that are left out, each with the rows that have something there."""


def without_dropped(table: Any) -> tuple[Any, Dropped]:
    """Return a table without the columns that hold no values, and what is left out.

    Raise `ValueError` if some cell of such a column may be unreadable, which makes its row a fault.
    """
    names, columns, dropped = [], [], dict[str, Bools]()
    is_plain = not any(_holds_dropped(field.type) for field in table.schema)
    if is_plain or len(set(table.schema.names)) < len(table.schema):
        return table, {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if not _holds_dropped(column.type):
            names.append(name)
            columns.append(column)
            continue
        kept = _split(column.combine_chunks(), name, dropped)
        if kept is not None:
            names.append(name)
            columns.append(kept)
    return pa.table(columns, names), dropped


def _split(array: Any, path: str, dropped: dict[str, Bools]) -> Any:
    """Return an array without the parts that are left out, None if nothing is left."""
    if not _holds_dropped(array.type):
        return array
    if not pa.types.is_struct(array.type):
        array.validate(full=True)
        # Bytes are left out, and counted, where they are null, too: a row has an empty array there.
        dropped[path] = (
            plain_values(array.is_valid())[0] if _is_list(array.type) else np.ones(len(array), dtype=np.bool_)
        )
        return None
    fields, arrays = [], []
    for field, inner in zip(array.type, array.flatten(), strict=True):  # a field is null where its struct is
        before = set(dropped)
        kept = _split(inner, f"{path}.{field.name}", dropped)
        for one in set(dropped) - before:
            if array.null_count:  # nothing is below a null
                dropped[one] = dropped[one] & plain_values(array.is_valid())[0]
        if kept is not None:
            fields.append(pa.field(field.name, kept.type))
            arrays.append(kept)
    if not arrays:
        return None
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=array.is_null())


def _holds_dropped(kind: Any) -> bool:
    """Tell whether a column of this type is left out, or a struct with such a field."""
    if pa.types.is_struct(kind):
        return any(_holds_dropped(field.type) for field in kind)
    return _is_bytes(kind) or (_is_list(kind) and _is_readable(kind.value_type))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_bytes(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def _is_readable(kind: Any) -> bool:
    """Tell whether Python can read every valid cell of a type."""
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return len(set(names)) == len(names) and all(_is_readable(field.type) for field in kind)
    if _is_list(kind):
        return _is_readable(kind.value_type)
    plain = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, is_text
    return _is_bytes(kind) or any(is_kind(kind) for is_kind in plain)
