"""The first stage on Spark's workers: filters are matched, and events routed to the shards of sequences and views."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tocsin.index import IndexReader
from tocsin.sharding import EventRows, LatestEnds, Routed, merge_latest
from tocsin.spark.batch_threads import in_threads
from tocsin.spark.frozen_heap import freeze_heap
from tocsin.spark.match_worker import (
    filter_shards,
    generation_of_batch,
    match_shard,
    opened_index,
    reader_of_each_thread,
)
from tocsin.spark.stateful.job import PlannedShards, StatefulJob
from tocsin.spark.stateful.packed_rows import PackedRow, RowKind, Work, packed_batch
from tocsin.spark.stateful.shard_events import ROLES, ReadEvents
from tocsin.spark.stateful.shard_notes import joined, packed, unpacked

SHARD: Final = "__tocsin_shard"
END: Final = "__tocsin_end"
PLACE: Final = "__tocsin_place"  # of an event in the history
_PARTITION: Final = 40  # bits for the rows of a partition


def route_micro_batch(job: StatefulJob, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield packed rows for all shards: notifications of filters, routed events, and the latest ends of all events."""
    readers = reader_of_each_thread(job.match)
    generation = generation_of_batch(job.match, readers[0])
    planned = job.planned(readers[0], generation)
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    latest: list[LatestEnds] = []

    def routed(reader: IndexReader, numbered: tuple[int, Any]) -> Iterator[Any]:
        number, batch = numbered
        stage = _FirstStage(job, planned, reader, generation=generation, partition=partition, number=number)
        yield packed_batch(stage.rows(batch))
        latest.append(stage.latest)

    numbers = count()
    filled = ((next(numbers), job.match.named(batch)) for batch in batches if batch.num_rows)
    yield from in_threads(routed, filled, readers)
    ends = msgspec.msgpack.encode(merge_latest(latest))
    yield packed_batch((key, PackedRow(partition, 0, RowKind.LATEST, generation, ends)) for key in job.keys)
    freeze_heap((job.match.index, generation))


class _FirstStage:
    """What becomes of one record batch."""

    def __init__(
        self,
        job: StatefulJob,
        planned: PlannedShards,
        reader: IndexReader,
        *,
        generation: int,
        partition: int,
        number: int,
    ) -> None:
        self._job, self._planned, self._reader = job, planned, reader
        self._generation, self._partition, self._number = generation, partition, number
        self.latest: LatestEnds = {}

    def rows(self, batch: Any) -> Iterator[tuple[int, PackedRow]]:
        """Yield the rows of a record batch, each with the key of its shard."""
        job, keys = self._job, self._job.keys
        own = keys[self._partition % len(keys)]
        begun = time.perf_counter()
        read = ReadEvents.of(job.match.layout, batch, self._planned.stateful)
        notes = []
        shards = filter_shards(self._reader, self._generation)
        if shards == 1:
            shard = self._reader.shard(self._generation, 0)
            found = match_shard(job.match, batch, read.decoded, shard, self._generation, begun=begun)
            notes += [job.notes.matched(one) for one in found]
        elif shards:
            for number, rows in self._by_index_shard(read):
                sent = packed(batch.take(pa.array(rows)))
                yield keys[number % len(keys)], self._row(RowKind.FILTERED, sent, number)
        faults = read.decoded.all_faults()
        if shards != 1 and job.match.faults and faults:
            notes.append(self._refused(batch, read, faults))
        matched, working = time.perf_counter(), time.thread_time()
        routed = _routed(self._planned, batch, read, faults, job)
        self.latest = routed.latest
        for shard_number, rows, roles in routed.by_shard():
            sent = packed(with_columns(batch.take(pa.array(rows)), {ROLES: pa.array(roles)}))
            yield keys[shard_number], self._row(RowKind.EVENTS, sent, self._number)
        if job.match.timed:
            seconds = {Work.ROUTE: time.thread_time() - working}
            if shards != 1:  # or it has been told
                seconds[Work.MATCH] = matched - begun
            notes.append(job.notes.timings(self._generation, seconds))
        if notes:
            whole = joined(notes)
            if whole is not None:
                yield own, self._row(RowKind.NOTES, packed(whole), self._number)

    def _by_index_shard(self, read: ReadEvents) -> Iterator[tuple[int, Any]]:
        """Yield each shard of the index that may match some rows, and those."""
        found = self._reader.router(self._generation).route(read.events)
        wrong = sorted(read.decoded.all_faults())
        right = ~np.isin(found.rows, wrong)
        rows, numbers = found.rows[right], found.numbers[right]
        for number in np.unique(numbers).tolist():
            yield number, rows[numbers == number]

    def _refused(self, batch: Any, read: ReadEvents, reasons: Any) -> Any:
        rows = sorted(reasons)
        sources = self._job.notes.sources(batch, read.decoded.ends, read.scales).take(pa.array(rows))
        texts = pa.array([reasons[row] for row in rows], pa.string())
        return self._job.notes.refused(sources, texts, self._generation)

    def _row(self, kind: RowKind, payload: bytes, number: int) -> PackedRow:
        return PackedRow(self._partition, number, kind, self._generation, payload)


def match_filtered(job: StatefulJob, row: PackedRow) -> Iterator[bytes]:
    """Yield the notifications of events that were sent to a shard of the index."""
    begun = time.perf_counter()
    shard = opened_index(job.match.index).shard(row.generation, row.number)
    batch = unpacked(row.payload)
    decoded = job.match.layout.read(batch)
    for found in match_shard(job.match, batch, decoded, shard, row.generation, begun=begun):
        yield packed(job.notes.matched(found))


def route_history(job: StatefulJob, generation: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield each event once for every shard that needs it, with what its order depends on."""
    planned = job.planned(opened_index(job.match.index), generation)
    context = TaskContext.get()
    place = (0 if context is None else context.partitionId()) << _PARTITION
    for batch in batches:
        if not batch.num_rows:
            continue
        named = job.match.named(batch)
        read = ReadEvents.of(job.match.layout, named, planned.stateful)
        routed = _routed(planned, named, read, read.decoded.all_faults(), job)
        if len(routed.rows):
            more = {
                SHARD: pa.array(routed.shards),
                ROLES: pa.array(routed.roles),
                END: pa.array(read.ends[routed.rows]),
                PLACE: pa.array(routed.rows + place),
            }
            yield with_columns(batch.take(pa.array(routed.rows)), more)
        place += batch.num_rows


def with_columns(batch: Any, more: dict[str, Any]) -> Any:
    """Return a record batch with further columns."""
    return pa.RecordBatch.from_arrays([*batch.columns, *more.values()], names=[*batch.schema.names, *more])


def _routed(planned: PlannedShards, batch: Any, read: ReadEvents, faults: Any, job: StatefulJob) -> Routed:
    rows = EventRows(read.events, read.ends, list(faults))
    if read.until is not None and job.changes:
        kept = np.flatnonzero(read.until.is_kept)
        ids = batch.column(job.match.layout.event_id)
        rows = EventRows(
            rows.events, rows.ends, rows.skipped, kept, [str(ids[row].as_py()) for row in kept.tolist()]
        )
    return planned.router.route_rows(rows)
