"""Events as Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["arrow_rows", "is_arrow", "parquet_batches"]


def is_arrow(source: object) -> bool:
    """Tell whether `source` is an Arrow table or record batch."""
    return isinstance(source, (pa.Table, pa.RecordBatch))


def arrow_rows(batches: Iterable[Any]) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Return each row's number, from 1, and its attributes.

    Nulls are absent, structs are nested attributes, and a timestamp without a zone is taken to be UTC.
    """
    number = 0
    for batch in batches:
        zoneless = [
            field.name
            for field in batch.schema
            if pa.types.is_timestamp(field.type) and field.type.tz is None
        ]
        for row in batch.to_pylist():
            number += 1
            for name in zoneless:
                if isinstance(row[name], datetime):
                    row[name] = row[name].replace(tzinfo=UTC)
            yield number, row


def parquet_batches(path: str, rows: int = 10_000) -> tuple[int, Iterator[Any]]:
    """Return how many rows a Parquet file has, and the file as record batches."""
    file = pq.ParquetFile(path)
    return file.metadata.num_rows, file.iter_batches(batch_size=rows)
