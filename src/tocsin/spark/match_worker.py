"""Matching on Spark's workers: record batches of events in, record batches of notifications out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray
from pyspark import TaskContext

from tocsin.index import Generation, IndexReader
from tocsin.index.shard import Shard
from tocsin.index.storage import LocalStorage
from tocsin.model.errors import SparkError
from tocsin.spark.batch_threads import available_cores, in_threads
from tocsin.spark.event_decoding import DecodedBatch, EventLayout
from tocsin.spark.frozen_heap import freeze_heap
from tocsin.spark.session_kinds import BATCH, QUERY

GENERATION: Final = "__tocsin_generation"
SHARD: Final = "__tocsin_shard"
SECONDS: Final = "__tocsin_seconds"
_PATIENCE: Final = 120.0  # seconds that a task waits for the first task to choose a generation
_POLL: Final = 0.05


class MatchJob(Struct, frozen=True):
    """The task of a worker. `generation` applies unless a micro-batch chooses its own."""

    index: str
    generation: int
    is_pinned: bool  # whether `generation` applies to micro-batches too
    layout: EventLayout
    keep: tuple[str, ...] = ()
    values: bool = False
    faults: bool = False
    time_type: Any = None  # the Arrow type of the column `time`
    timed: bool = False  # whether each batch adds a row with the seconds that it took
    threads: int | None = None  # that match in a worker; None for as many as cores are free
    tasks: int | None = None  # that run on this machine at a time, on a local master
    names: tuple[str, ...] = ()  # the columns' own names, if they have positional ones
    with_stateful: bool = False  # whether there is another stage for sequences and views

    def named(self, batch: Any) -> Any:
        """Return a record batch with its columns' own names; added columns keep theirs."""
        return batch.rename_columns([*self.names, *batch.schema.names[len(self.names) :]])

    def read(self, batch: Any, reader: IndexReader, generation: int) -> DecodedBatch:
        """Return a record batch's rows as events; a row of a table without its key is a fault."""
        stateful = reader.stateful(generation) if self.with_stateful else None
        decoded = self.layout.read(batch)
        return decoded if stateful is None else decoded.without_keyless_rows(stateful.tables)


def match_batches(job: MatchJob, batches: Iterable[Any], *, is_routed: bool = False) -> Iterator[Any]:
    """Yield the notifications of each record batch of events."""
    readers = reader_of_each_thread(job)
    generation = None if is_routed else _generation(job, readers[0], is_sharded=False)
    used: set[tuple[str, int, int]] = set()

    def matched(reader: IndexReader, batch: Any) -> Iterator[Any]:
        """Yield the notifications of a record batch."""
        if generation is not None:
            used.add((job.index, generation, 0))
            begun = time.perf_counter()
            read = job.read(batch, reader, generation)
            yield from match_shard(job, batch, read, reader.shard(generation, 0), generation, begun=begun)
            return
        for rows, shard, number in _by_shard(batch):
            part = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
            used.add((job.index, number, shard))
            begun = time.perf_counter()
            read = job.read(part, reader, number)
            yield from match_shard(job, part, read, reader.shard(number, shard), number, begun=begun)

    yield from in_threads(matched, _filled(job, batches), readers)
    freeze_heap(*used)


def _filled(job: MatchJob, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the record batches that have rows, with the columns' own names."""
    return (job.named(batch) for batch in batches if batch.num_rows)


def route_batches(job: MatchJob, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield each event once for every shard that may match it, with the shard and the generation."""
    reader = opened_index(job.index)
    generation = _generation(job, reader, is_sharded=True)
    for batch in batches:
        if not batch.num_rows:
            continue
        decoded = job.read(job.named(batch), reader, generation)
        router = reader.router(generation)
        found = [(part, router.route(part.events)) for part in decoded.parts]
        rows_of = [one.rows if part.rows is None else part.rows[one.rows] for part, one in found]
        positions = np.concatenate(rows_of)
        numbers = np.concatenate([one.numbers for _, one in found])
        if faults := decoded.all_faults():
            wrong = np.array(sorted(faults), dtype=np.int64)
            right = ~np.isin(positions, wrong)
            positions, numbers = positions[right], numbers[right]
            if job.faults:  # sent to one shard, which finds the fault again
                positions = np.concatenate([positions, wrong])
                numbers = np.concatenate([numbers, np.zeros(len(wrong), dtype=np.int64)])
        if len(positions):
            sent = batch.take(pa.array(positions))
            columns = [*sent.columns, pa.array(numbers), pa.array(np.full(len(positions), generation))]
            yield pa.RecordBatch.from_arrays(columns, names=[*sent.schema.names, SHARD, GENERATION])


def find_dead_letters(job: MatchJob, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows that are no events, each with its reason."""
    for batch in map(job.named, batches):
        if batch.num_rows:
            faults = job.layout.read(batch).all_faults()
            if faults:
                rows = pa.array(sorted(faults))
                kept = [batch.column(name).take(rows) for name in job.keep]
                reasons = pa.array([faults[position] for position in sorted(faults)], pa.string())
                columns = [batch.column(job.layout.event_id).take(rows), reasons, *kept]
                yield pa.RecordBatch.from_arrays(columns, names=["event_id", "reason", *job.keep])


def match_shard(
    job: MatchJob, batch: Any, decoded: DecodedBatch, shard: Shard, generation: int, *, begun: float
) -> Iterator[Any]:
    """Yield the notifications of a batch from a shard, then its faults if the job reports them; its work began at `begun`."""
    silenced = decoded.silenced()
    for part in decoded.parts:
        ends = decoded.ends if part.rows is None else decoded.ends[part.rows]
        found = shard.match(part.events, ends)
        rows = found.rows if part.rows is None else part.rows[found.rows]
        values = shard.values(found, part.events) if job.values else None
        numbers = found.numbers
        if silenced is not None:
            valid = np.flatnonzero(~silenced[rows])
            rows, numbers = rows[valid], numbers[valid]
            values = None if values is None else values.take(pa.array(valid))
        if len(rows):
            ids = shard.ids(numbers)
            yield _notification_batch(
                job, batch, decoded, rows, subscriptions=ids, generation=generation, values=values
            )
    if job.faults and (faults := decoded.all_faults()):
        positions = sorted(faults)
        nulls = pa.nulls(len(positions), pa.string())
        yield _notification_batch(
            job,
            batch,
            decoded,
            np.array(positions),
            subscriptions=nulls,
            generation=generation,
            values=nulls,
            reasons=pa.array([faults[position] for position in positions], pa.string()),
        )
    if job.timed:
        nobody = pa.nulls(0, pa.string())
        none = np.empty(0, dtype=np.int64)
        like = _notification_batch(
            job, batch, decoded, none, subscriptions=nobody, generation=generation, values=nobody
        )
        yield _timing(like.schema, generation, time.perf_counter() - begun)


def _notification_batch(
    job: MatchJob,
    batch: Any,
    decoded: DecodedBatch,
    rows: NDArray[np.int64],
    *,
    subscriptions: Any,
    generation: int,
    values: Any,
    reasons: Any = None,
) -> Any:
    """Return the output batch for these rows: matches, or faults with null ids and a reason."""
    positions = pa.array(rows)
    columns = {
        "subscription": subscriptions,
        "event_id": batch.column(job.layout.event_id).take(positions),
        "time": pa.array(decoded.ends[rows]).cast(job.time_type),
        "generation": pa.array(np.full(len(rows), generation, dtype=np.int64)),
    }
    if job.values:
        columns["values"] = values
    for name in job.keep:
        columns[name] = batch.column(name).take(positions)
    if job.faults:
        columns["reason"] = pa.nulls(len(rows), pa.string()) if reasons is None else reasons
    if job.timed:
        columns[SECONDS] = pa.nulls(len(rows), pa.float64())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _timing(schema: Any, generation: int, seconds: float) -> Any:
    """Return an output batch of one row, with nothing but the generation and the seconds."""
    told = {"generation": [generation], SECONDS: [seconds]}
    columns = [pa.array(told.get(field.name, [None]), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _by_shard(batch: Any) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """Yield the positions of each shard's rows, with the shard and the generation."""
    shards = batch.column(SHARD).to_numpy()
    generation = int(batch.column(GENERATION)[0].as_py())
    for shard in np.unique(shards).tolist():
        yield np.flatnonzero(shards == shard), shard, generation


def opened_index(index: str) -> IndexReader:
    """Return an index, opened once per process and refreshed."""
    (reader,) = _opened(index, 1)
    return reader


def reader_of_each_thread(job: MatchJob) -> Sequence[IndexReader]:
    """Return a reader of the index for each thread: a matcher has room to work in, and takes one call at a time."""
    return _opened(job.index, job.threads or free_cores(job.tasks))


def _opened(index: str, count: int) -> Sequence[IndexReader]:
    """Return so many readers of an index, opened once per process and refreshed."""
    readers = _kept(index)
    while len(readers) < count:
        readers.append(IndexReader(index))
    for reader in readers[:count]:
        reader.renew()
    return readers[:count]


@lru_cache(maxsize=8)  # a session may build an index for each match, and each keeps files mapped
def _kept(index: str) -> list[IndexReader]:  # noqa: ARG001 - the key
    return []


def free_cores(tasks: int | None) -> int:
    """Return the cores that a task may match with: those that Spark reserves for it, or its share of a local machine's."""
    context = TaskContext.get()
    reserved = 1 if context is None else context.cpus()
    return max(1, reserved, available_cores() // tasks if tasks else 1)


def filter_shards(reader: IndexReader, generation: int) -> int:
    """Return on how many shards of the index the filters of a generation are; 0 if it has none."""
    shards = reader.generation(generation).shards
    return len(shards) if any(shard.subscriptions for shard in shards) else 0


def has_stateful(generation: Generation) -> bool:
    """Return whether a generation of an index has a sequence or a view."""
    return generation.stateful is not None and generation.stateful.subscriptions > 0


def _generation(job: MatchJob, reader: IndexReader, *, is_sharded: bool) -> int:
    """Return the generation to match with; raise `SparkError` if the plan does not fit the index's shards."""
    number = generation_of_batch(job, reader)
    generation = reader.generation(number)
    if has_stateful(generation) and not job.with_stateful:
        raise SparkError(
            f"{job.index}: sequences or views came into the index, and the stream was planned for filters alone; start it with "
            "a new checkpoint, and with `state_shards` if there are none at that time"
        )
    shards = len(generation.shards)
    if is_sharded is not (shards > 1):
        raise SparkError(
            f"{job.index}: another index was made here, with {shards} shard{'s' if shards > 1 else ''}; "
            "restart the stream, so that it is planned for that"
        )
    return number


def generation_of_batch(job: MatchJob, reader: IndexReader) -> int:
    """Return the generation of the micro-batch that this task is part of, or the job's own."""
    query, batch = micro_batch_of_task()
    if job.is_pinned or query is None or batch is None:
        return job.generation
    # Object stores cannot create a file exclusively: only the first task may choose, and the others wait for it.
    context = TaskContext.get()
    is_local = isinstance(reader.generations.storage, LocalStorage)
    may_choose = is_local or context is None or context.partitionId() == 0
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        chosen = reader.generations.of_batch(query, batch, may_decide=may_choose)
        if chosen is not None:
            return chosen
        time.sleep(_POLL)
    raise SparkError(
        f"{job.index}: the first task of batch {batch} did not say within {_PATIENCE:.0f} s which generation to use; "
        "restart the stream"
    )


def micro_batch_of_task() -> tuple[str | None, int | None]:
    """Return the streaming query and the micro-batch that this task is part of, if it is part of one."""
    context = TaskContext.get()
    batch = None if context is None else context.getLocalProperty(BATCH)
    if context is None or batch is None:
        return None, None
    return context.getLocalProperty(QUERY), int(batch)
