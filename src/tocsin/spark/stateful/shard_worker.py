"""Shards on Spark's workers: routed events and a state in, notifications and the next state out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from tocsin.index import IndexReader
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.errors import SavedError
from tocsin.sharding import CLOCK, AddedInIndex, LatestEnds, ShardRuntime, merge_latest
from tocsin.spark.frozen_heap import freeze_heap
from tocsin.spark.match_worker import micro_batch_of_task, opened_index
from tocsin.spark.stateful.job import PlannedShards, StatefulJob
from tocsin.spark.stateful.packed_rows import PackedRow, RowKind, Work
from tocsin.spark.stateful.routing import SHARD, match_filtered
from tocsin.spark.stateful.saved_pages import SavedPages
from tocsin.spark.stateful.shard_events import ROLES, ReadEvents, in_order
from tocsin.spark.stateful.shard_notes import CarriedRows, joined, packed, unpacked

_IDLE: Final = 600.0  # seconds after which a runtime that nobody used is let go
_NOBODY: Final = np.empty(0, dtype=np.int64)


class _Held(Struct):
    """A runtime that a worker holds between micro-batches: which saved state it has come to, and when it was used."""

    runtime: ShardRuntime
    token: bytes
    used: float


_held: dict[tuple[Any, ...], _Held] = {}


def run_shard(job: StatefulJob, shard: int, rows: Iterable[PackedRow], saved: SavedPages) -> Iterator[bytes]:
    """Yield the notifications of a micro-batch, packed, and what came for nobody but the output; replace the state."""
    reader = opened_index(job.match.index)
    routed: list[PackedRow] = []
    latest: LatestEnds = {}
    generation = 0
    for row in rows:
        if row.kind is RowKind.NOTES:
            yield row.payload
        elif row.kind is RowKind.FILTERED:
            yield from match_filtered(job, row)
        elif row.kind is RowKind.LATEST:
            generation = row.generation
            latest = merge_latest((latest, msgspec.msgpack.decode(row.payload, type=LatestEnds)))
        else:
            routed.append(row)
    if not generation:  # only filters were here
        return
    clock = _Clock(job)
    planned = job.planned(reader, generation)
    key = (job.match.index, micro_batch_of_task()[0], job.shards, shard, str(job.out_of_orderness))
    held = _runtime(job, key, reader, planned, generation=generation, shard=shard, saved=saved)
    clock.tell(Work.RESTORE)
    output = _process(job, planned, held.runtime, [unpacked(row.payload) for row in sorted(routed)], latest)
    if output is not None:
        yield packed(output)
    clock.tell(Work.RUN)
    state = held.runtime.snapshot()
    clock.tell(Work.SNAPSHOT)
    done = saved.write(state, generation)
    held.token, held.used = done.token, time.monotonic()
    clock.tell(Work.STORE)
    if job.match.timed:
        yield packed(clock.rows(generation, {Work.STATE_BYTES: done.size, Work.WRITTEN_BYTES: done.written}))


def end_task() -> None:
    """Have the garbage collector leave out the runtimes that this worker holds."""
    freeze_heap(*((key, id(one.runtime), one.runtime.generation) for key, one in _held.items()))


def run_history(job: StatefulJob, generation: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the notifications of a shard's events, which come in the order of their end."""
    planned = job.planned(opened_index(job.match.index), generation)
    runtime: ShardRuntime | None = None
    for batch in map(job.match.named, batches):
        if not batch.num_rows:
            continue
        if runtime is None:
            shard = int(batch.column(SHARD)[0].as_py())
            runtime = ShardRuntime(planned.stateful, planned.plan, shard, generation, first_answers=False)
        output = _process(job, planned, runtime, [batch], None)
        if output is not None:
            yield output


def _process(
    job: StatefulJob,
    planned: PlannedShards,
    runtime: ShardRuntime,
    batches: list[Any],
    latest: Mapping[int, int] | None,
) -> Any:
    """Give a runtime routed events, and return the rows of the output, or None; without `latest`, theirs are the latest ends."""
    schema = job.notes
    if not batches:
        output = runtime.process(TimedBatch([]), _NOBODY, latest or {})
        sources = schema.no_sources()
    else:
        batch = joined(batches)
        read = ReadEvents.of(job.match.layout, batch, planned.stateful)
        sorted_batch = in_order(batch, read.ends)
        if sorted_batch is not batch:
            batch, read = sorted_batch, ReadEvents.of(job.match.layout, sorted_batch, planned.stateful)
        sources = schema.sources(batch, read.decoded.ends, read.scales)
        events = read.timed(batch.column(job.match.layout.event_id))
        roles = np.asarray(batch.column(ROLES))
        ends = _latest_of(read, planned) if latest is None else latest
        output = runtime.process(events, roles, ends, carried=CarriedRows(sources))
    return schema.of_output(output, sources, runtime.generation, late=job.late, faults=job.match.faults)


def _latest_of(read: ReadEvents, planned: PlannedShards) -> LatestEnds:
    """Return the latest ends of the events of a history, which all shards have in this order."""
    found: LatestEnds = {CLOCK: int(read.ends.max())}
    for length in {1, *planned.ticks.values()}:
        own = read.ends[read.lengths == length]
        if len(own):
            found[length] = int(own.max())
    return found


def _runtime(
    job: StatefulJob,
    key: tuple[Any, ...],
    reader: IndexReader,
    planned: PlannedShards,
    *,
    generation: int,
    shard: int,
    saved: SavedPages,
) -> _Held:
    """Return a runtime with the saved state and the subscriptions of a generation; of the worker's own, if it has one."""
    now = time.monotonic()
    for idle in [name for name, one in _held.items() if now - one.used > _IDLE]:
        del _held[idle]
    held = _held.pop(key, None)
    head = saved.head
    if head is not None and head.generation > generation:
        raise SavedError(
            f"the state is of generation {head.generation}, and the micro-batch of an earlier one, {generation}"
        )
    if held is not None and (head is None or held.runtime.generation > head.generation):
        held = None
    if held is None:
        state = None if head is None else saved.read()
        runtime = ShardRuntime(
            planned.stateful,
            planned.plan,
            shard,
            generation,
            state=state,
            out_of_orderness=job.out_of_orderness,
        )
    else:
        assert head is not None  # noqa: S101 - or there would be no runtime
        runtime = held.runtime
        if held.token != head.token:
            if runtime.generation < head.generation:
                then = job.planned(reader, head.generation)
                runtime.migrate(then.stateful, then.plan, head.generation)
            runtime.go_back(saved.read())
        if runtime.generation < generation:
            runtime.migrate(planned.stateful, planned.plan, generation)
    if head is not None and head.generation < generation:
        runtime.meet(AddedInIndex(reader, head.generation, generation))
    held = _held[key] = _Held(runtime, b"", now)
    return held


class _Clock:
    """The processor seconds of each part of a shard's work."""

    def __init__(self, job: StatefulJob) -> None:
        self._notes = job.notes
        self._last = time.thread_time()
        self._told: dict[Work, float] = {}

    def tell(self, part: Work) -> None:
        now = time.thread_time()
        self._told[part] = now - self._last
        self._last = now

    def rows(self, generation: int, more: Mapping[Work, float]) -> Any:
        """Return rows with nothing but a part, what it came to, and the generation."""
        told = {**self._told, **more}
        return self._notes.timings(generation, told)
