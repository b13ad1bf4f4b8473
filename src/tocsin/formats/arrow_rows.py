"""Events as Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.model.errors import EventError

__all__ = ["arrow_rows", "is_arrow", "parquet_batches"]


def is_arrow(source: object) -> bool:
    """Tell whether `source` is an Arrow table or record batch."""
    return isinstance(source, (pa.Table, pa.RecordBatch))


def arrow_rows(batches: Iterable[Any]) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Return each row's number, from 1, and its attributes.

    Nulls are absent, structs are nested attributes, and a timestamp without a zone is taken to be UTC. A column
    of a type that is no kind of value is left out as arrays are.
    """
    number = 0
    for batch in batches:
        names = batch.schema.names
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise EventError(f"two columns are called `{repeated}`")
        zoneless = [field.name for field in batch.schema if _is_zoneless(field.type)]
        left_out = [field.name for field in batch.schema if any(test(field.type) for test in _NO_KIND)]
        for row in batch.to_pylist():
            number += 1
            for name in zoneless:
                if isinstance(row[name], datetime):
                    row[name] = row[name].replace(tzinfo=UTC)
            for name in left_out:
                row[name] = ()
            yield number, row


def parquet_batches(path: str, rows: int = 10_000) -> tuple[int, Iterator[Any]]:
    """Return how many rows a Parquet file has, and the file as record batches."""
    file = pq.ParquetFile(path)
    return file.metadata.num_rows, file.iter_batches(batch_size=rows)


def _is_zoneless(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is None


_NO_KIND = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_time,
    pa.types.is_duration,
)
