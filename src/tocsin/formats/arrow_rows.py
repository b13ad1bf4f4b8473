"""Events as Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pyarrow as pa

from tocsin.formats.opaque_columns import opaque_name, readable
from tocsin.formats.records import Records, UnreadableRecord
from tocsin.model.errors import EventError
from tocsin.model.values import Opaque

Conversion: TypeAlias = Callable[[Any], Any]


def is_arrow(source: object) -> bool:
    """Return whether `source` is an Arrow table or record batch."""
    return isinstance(source, (pa.Table, pa.RecordBatch))


def arrow_rows(batches: Iterable[Any]) -> Records:
    """Yield each row's number, from 1, and its attributes.

    A null or NaN is an absent attribute, a struct a nested one, and a timestamp without a zone is in UTC. Values of a column
    whose type is no kind of value are `Opaque`. A cell that Python cannot hold makes its row unreadable.
    """
    number = 0
    for given in batches:
        batch = _without_zone(given)
        names = batch.schema.names
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise EventError(f"two columns are called `{repeated}`")
        conversions = {field.name: convert for field in batch.schema if (convert := _conversion(field.type))}
        for row in _rows(readable(batch)):
            number += 1
            if not isinstance(row, UnreadableRecord):
                for name, convert in conversions.items():
                    row[name] = convert(row[name])
            yield number, row


def parquet_batches(path: str, rows: int = 10_000) -> tuple[int, Iterator[Any]]:
    """Return the number of rows of a Parquet file, and its record batches."""
    from pyarrow import parquet  # noqa: PLC0415 - it takes a while to load

    file = parquet.ParquetFile(path)
    return file.metadata.num_rows, file.iter_batches(batch_size=rows)


def _without_zone(batch: Any) -> Any:
    """Return a batch with times in UTC as times without a zone, which are in UTC, too.

    Arrow imports pandas, where that is installed, to make a datetime with a zone, and that takes a second.
    """
    for number, field in enumerate(batch.schema):
        kind = field.type
        if pa.types.is_timestamp(kind) and kind.tz == "UTC" and kind.unit != "ns":
            naive = batch.column(number).cast(pa.timestamp(kind.unit))
            batch = batch.set_column(number, field.name, naive)
    return batch


def _rows(batch: Any) -> Iterator[dict[str, Any] | UnreadableRecord]:
    """Yield each row of a batch as a dictionary; a row with an unreadable cell is an `UnreadableRecord`."""
    try:
        yield from batch.to_pylist()
        return
    except _UNREADABLE:
        pass  # one cell makes the whole batch fail, so each row is read alone
    for start in range(batch.num_rows):
        try:
            yield batch.slice(start, 1).to_pylist()[0]
        except _UNREADABLE as fault:
            yield UnreadableRecord(f"a cell cannot be read: {fault}")


def _conversion(kind: Any) -> Conversion | None:
    """Return the conversion of a column's values, or None if they need none."""
    if pa.types.is_dictionary(kind):
        return _conversion(kind.value_type)
    if pa.types.is_timestamp(kind):
        return _to_utc if kind.tz is None else None
    if pa.types.is_struct(kind):
        inner = {field.name: convert for field in kind if (convert := _conversion(field.type))}
        return (lambda value: _convert_struct(value, inner)) if inner else None
    name = opaque_name(kind)
    return None if name is None else lambda value: None if value is None else Opaque(name)


def _to_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _convert_struct(value: Any, inner: dict[str, Conversion]) -> Any:
    if value is None:
        return None
    return {**value, **{name: convert(value[name]) for name, convert in inner.items()}}


_UNREADABLE = (OverflowError, ValueError, KeyError, LookupError, pa.ArrowException)
