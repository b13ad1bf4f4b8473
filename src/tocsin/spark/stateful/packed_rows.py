"""Rows between the stages of a stream: record batches as bytes, each for a shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pyarrow as pa

SCHEMA = "key long, kind int, generation long, partition int, number int, payload binary"
_ARROW = pa.schema(
    [
        ("key", pa.int64()),
        ("kind", pa.int32()),
        ("generation", pa.int64()),
        ("partition", pa.int32()),
        ("number", pa.int32()),
        ("payload", pa.binary()),
    ]
)


class RowKind(IntEnum):
    """What a packed row holds."""

    NOTES = 0  # notifications that are ready
    FILTERED = 1  # events for a shard of the index, which is its `number`
    EVENTS = 2  # events for sequences and views; rows with a greater `number` follow
    LATEST = 3  # the latest ends of a partition's events


class Work(StrEnum):
    """What the timing rows of a micro-batch tell of."""

    MATCH = "match"
    ROUTE = "route"
    RESTORE = "restore"
    RUN = "run"
    SNAPSHOT = "snapshot"
    STORE = "store"
    STATE_BYTES = "state_bytes"
    WRITTEN_BYTES = "written_bytes"


class PackedRow(NamedTuple):
    """A row for a shard; rows are in the order of partitions, and then of numbers."""

    partition: int
    number: int
    kind: RowKind
    generation: int
    payload: bytes

    @classmethod
    def read(cls, row: Any) -> PackedRow:
        """Return a row of Spark's."""
        return cls(
            row["partition"], row["number"], RowKind(row["kind"]), row["generation"], bytes(row["payload"])
        )


def packed_batch(rows: Iterable[tuple[int, PackedRow]]) -> Any:
    """Return rows, each with the key of its shard, as a record batch."""
    columns: list[list[Any]] = [[] for _ in _ARROW]
    for key, row in rows:
        line = (key, int(row.kind), row.generation, row.partition, row.number, row.payload)
        for column, cell in zip(columns, line, strict=True):
            column.append(cell)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def payloads(batches: Iterable[Any]) -> Iterator[bytes]:
    """Yield the payloads of record batches."""
    for batch in batches:
        yield from batch.column("payload").to_pylist()
