"""Notifications of shards as the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tocsin.sharding import ShardOutput
from tocsin.spark.match_worker import SECONDS
from tocsin.spark.stateful.packed_rows import Work
from tocsin.structures.array_types import Int64s

TIME: Final = "__tocsin_time"  # of an event, as the DataFrame has it
PART: Final = "__tocsin_part"  # of the work, in timing rows
SCALE: Final = "__tocsin_scale"  # what the ticks of its stream are multiplied with for such a time


class NoteSchema(Struct, frozen=True):
    """The columns of notifications: those of the plan's output, and which column of events holds ids."""

    schema: Any  # pa.Schema
    event_id: str
    keep: tuple[str, ...]

    def sources(self, batch: Any, times: Int64s, scales: Int64s) -> Any:
        """Return what notifications need of the events that caused them, a row each."""
        wanted = self._source_schema()
        columns = [batch.column(name) for name in (self.event_id, *self.keep)]
        columns += [pa.array(times), pa.array(scales)]
        cast = [_whole(column).cast(field.type) for column, field in zip(columns, wanted, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=wanted)

    def no_sources(self) -> Any:
        """Return what notifications need of no event."""
        return pa.RecordBatch.from_pylist([], self._source_schema())

    def _source_schema(self) -> Any:
        kept = [pa.field(name, self.schema.field(name).type) for name in ("event_id", *self.keep)]
        return pa.schema([*kept, pa.field(TIME, pa.int64()), pa.field(SCALE, pa.int64())])

    def timings(self, generation: int, told: Mapping[Work, float]) -> Any:
        """Return a row for each part of the work, with what it came to."""
        given = {
            "generation": pa.array([generation] * len(told), pa.int64()),
            SECONDS: pa.array([float(one) for one in told.values()], pa.float64()),
            PART: pa.array([part.value for part in told], pa.string()),
        }
        return self._filled(given, len(told))

    def of_output(
        self, output: ShardOutput, sources: Any, generation: int, *, late: bool, faults: bool
    ) -> Any:
        """Return the rows of a shard's output, or None if there are none; refused events are among them as asked."""
        notes = output.notifications
        rows = [self._notifications(notes, self._causes(notes, sources))]
        refused = output.late
        if refused.num_rows and (late or faults):
            is_late = np.asarray(refused.column("is_late"))
            chosen = pa.array(np.flatnonzero((is_late & late) | (~is_late & faults)))
            refused = refused.take(chosen)
            causes = self._causes(refused, sources)
            rows.append(self.refused(causes, refused.column("reason"), generation))
        return joined(rows)

    def refused(self, causes: Any, reasons: Any, generation: int) -> Any:
        """Return a row for each event that was refused."""
        count = causes.num_rows
        given = {
            "generation": pa.array([generation] * count, pa.int64()),
            "reason": reasons,
            **self._of_causes(causes),
        }
        return self._filled(given, count)

    def matched(self, filtered: Any) -> Any:
        """Return the notifications of filters with the columns that those of sequences and views have besides."""
        given = {name: filtered.column(name) for name in filtered.schema.names}
        if "event_ids" in self.schema.names:
            ids = filtered.column("event_id").cast(pa.string())
            offsets = pa.array(np.arange(len(ids) + 1, dtype=np.int32))
            lists = pa.ListArray.from_arrays(offsets, ids)
            is_note = filtered.column("subscription").is_valid()
            given["event_ids"] = pa.compute.if_else(is_note, lists, pa.scalar(None, lists.type))
            given["start"] = pa.compute.if_else(
                is_note, filtered.column("time"), pa.scalar(None, filtered.column("time").type)
            )
        return self._filled(given, filtered.num_rows)

    def _notifications(self, notes: Any, causes: Any) -> Any:
        kind = self.schema.field("time").type
        scales = np.asarray(causes.column(SCALE).fill_null(1))
        starts = np.asarray(notes.column("start").fill_null(0)) * scales
        given = {
            name: notes.column(name) for name in ("subscription", "event_ids", "generation", "old", "new")
        }
        given["start"] = pa.array(starts, mask=np.asarray(notes.column("start").is_null())).cast(kind)
        given["values"] = notes.column("values")
        return self._filled({**given, **self._of_causes(causes)}, notes.num_rows)

    def _of_causes(self, causes: Any) -> dict[str, Any]:
        given = {name: causes.column(name) for name in ("event_id", *self.keep)}
        given["time"] = causes.column(TIME).cast(self.schema.field("time").type)
        return given

    def _causes(self, notes: Any, sources: Any) -> Any:
        """Return the rows of the events that caused notifications: of this call, that had waited, or nulls for none."""
        rows = notes.column("row")
        carried = notes.column("carried")
        waited = np.flatnonzero(np.asarray(carried.is_valid()))
        if not len(waited):
            return sources.take(rows)
        positions = np.where(np.asarray(rows.is_valid()), np.asarray(rows.fill_null(0)), -1)
        positions[waited] = sources.num_rows + np.arange(len(waited))
        earlier = [unpacked(carried[place].as_py()) for place in waited.tolist()]
        every = pa.Table.from_batches([sources, *earlier]).combine_chunks().to_batches()[0]
        return every.take(pa.array(positions, mask=positions < 0))

    def _filled(self, given: dict[str, Any], count: int) -> Any:
        columns = [
            _whole(given[field.name]).cast(field.type) if field.name in given else pa.nulls(count, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class CarriedRows(Sequence[bytes | None]):
    """What notifications need of each event, as bytes for those that wait."""

    def __init__(self, sources: Any) -> None:
        self._sources = sources

    def __getitem__(self, row: Any) -> Any:
        return packed(self._sources.slice(int(row), 1))

    def __len__(self) -> int:
        return int(self._sources.num_rows)


def joined(batches: Sequence[Any]) -> Any:
    """Return record batches as one; None if they have no rows."""
    found = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found[0] if found and found[0].num_rows else None


def packed(batch: Any) -> bytes:
    """Return a record batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> Any:
    """Return the record batch of which these are the bytes."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def _whole(column: Any) -> Any:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
