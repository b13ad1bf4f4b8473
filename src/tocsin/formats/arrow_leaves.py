"""Arrow tables of which some columns are replaced, also those within structs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

Convert: TypeAlias = Callable[[Any], Any]
IsConcerned: TypeAlias = Callable[[Any], bool]


def with_leaves(table: Any, convert: Convert, is_concerned: IsConcerned) -> Any:
    """Return a table or record batch with `convert(array)` in the place of each array whose type is concerned.

    `convert` may return the array itself; a table in which nothing changes is returned itself.
    """
    if not any(_has_concerned(field.type, is_concerned) for field in table.schema):
        return table
    columns = []
    for column in table.columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        chunks = chunks or [pa.nulls(0, column.type)]
        converted = [_converted(chunk, convert, is_concerned) for chunk in chunks]
        if all(one is chunk for one, chunk in zip(converted, chunks, strict=True)):
            columns.append(column)
        else:
            is_chunked = isinstance(column, pa.ChunkedArray)
            columns.append(pa.chunked_array(converted) if is_chunked else converted[0])
    if all(one is column for one, column in zip(columns, table.columns, strict=True)):
        return table
    return type(table).from_arrays(columns, names=table.schema.names)


def _has_concerned(kind: Any, is_concerned: IsConcerned) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_concerned(field.type, is_concerned) for field in kind)
    return is_concerned(kind)


def _converted(array: Any, convert: Convert, is_concerned: IsConcerned) -> Any:
    kind = array.type
    if not _has_concerned(kind, is_concerned):
        return array
    if not pa.types.is_struct(kind):
        return convert(array)
    given = array.flatten()  # a field is null where its struct is
    inner = [_converted(one, convert, is_concerned) for one in given]
    if all(one is other for one, other in zip(inner, given, strict=True)):
        return array
    fields = [pa.field(field.name, one.type) for field, one in zip(kind, inner, strict=True)]
    return pa.StructArray.from_arrays(inner, fields=fields, mask=array.is_null())
