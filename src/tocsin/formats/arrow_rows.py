"""Events as Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.formats.records import Records, UnreadableRecord
from tocsin.model.errors import EventError

Change: TypeAlias = Callable[[Any], Any]


def is_arrow(source: object) -> bool:
    """Tell whether `source` is an Arrow table or record batch."""
    return isinstance(source, (pa.Table, pa.RecordBatch))


def arrow_rows(batches: Iterable[Any]) -> Records:
    """Return each row's number, from 1, and its attributes.

    Nulls are absent, structs are nested attributes, and a timestamp without a zone is taken to be UTC. A column
    of a type that is no kind of value is left out as arrays are. A cell that Python cannot hold breaks its row.
    """
    number = 0
    for batch in batches:
        names = batch.schema.names
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise EventError(f"two columns are called `{repeated}`")
        changes = {field.name: change for field in batch.schema if (change := _change(field.type))}
        for row in _rows(batch):
            number += 1
            if not isinstance(row, UnreadableRecord):
                for name, change in changes.items():
                    row[name] = change(row[name])
            yield number, row


def parquet_batches(path: str, rows: int = 10_000) -> tuple[int, Iterator[Any]]:
    """Return how many rows a Parquet file has, and the file as record batches."""
    file = pq.ParquetFile(path)
    return file.metadata.num_rows, file.iter_batches(batch_size=rows)


def _rows(batch: Any) -> Iterator[dict[str, Any] | UnreadableRecord]:
    try:
        yield from batch.to_pylist()
        return
    except _UNHELD:
        pass  # one cell is enough to refuse the whole batch; so each row is tried alone
    for start in range(batch.num_rows):
        try:
            yield batch.slice(start, 1).to_pylist()[0]
        except _UNHELD as fault:
            yield UnreadableRecord(f"a cell cannot be read: {fault}")


def _change(kind: Any) -> Change | None:
    """Return what is to be done to the values of a column, or None if nothing is."""
    if pa.types.is_dictionary(kind):
        return _change(kind.value_type)
    if pa.types.is_timestamp(kind):
        return _in_utc if kind.tz is None else None
    if pa.types.is_struct(kind):
        inner = {field.name: change for field in kind if (change := _change(field.type))}
        return (lambda value: _changed(value, inner)) if inner else None
    return (
        _leave_out
        if isinstance(kind, pa.BaseExtensionType) or any(is_kind(kind) for is_kind in _NO_KIND)
        else None
    )


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _leave_out(_: Any) -> Any:
    return ()  # arrays are left out and counted


def _changed(value: Any, inner: dict[str, Change]) -> Any:
    return (
        value if value is None else {**value, **{name: change(value[name]) for name, change in inner.items()}}
    )


_NO_KIND = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
    pa.types.is_time,
    pa.types.is_duration,
)
_UNHELD = (OverflowError, ValueError, KeyError, LookupError, pa.ArrowException)
