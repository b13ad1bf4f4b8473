"""Sequences with their state in shards: a stream's rate by the number of shards, its parts, and snapshots."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from benchmarks.cayuga.session import Input, technical_input
from benchmarks.spark.inputs import filled
from benchmarks.spark.kernels import timed_kernels
from benchmarks.spark.process import Streamed
from benchmarks.spark.session import SparkBenchSession
from benchmarks.workloads.tabular import ID, FilledTemplate
from tocsin.engine import Engine
from tocsin.engine.event_sources import require_columns, timed_rows
from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.matching.timed_batch import TimedRows
from tocsin.model.errors import SparkError
from tocsin.model.ticks import StreamTicks
from tocsin.sharding import ShardPlan, ShardRouter, ShardRuntime
from tocsin.spark.stateful.packed_rows import Work

Found = TypeVar("Found")

_FILES: Final = 2  # of a micro-batch, for two tasks to read
_TRIED: Final = 5  # micro-batches until each worker has begun with each of its shards
_SYMBOLS: Final = 1_000
_TEXT: Final = (
    "from stock a where a.symbol = :s and a.price > :p next stock b on b.symbol = a.symbol "
    "where b.price > 1.05 * a.price within 100000"
)
_COMPLETING: Final = "from {stream} a where a.d1 = :d and a.c1 > 0.9 next {stream} b on b.d1 = a.d1 where b.c1 > a.c1 within 1000"
_COMPLETED: Final = (
    100  # sequences that complete: those of the workload hardly ever do, and then there is nothing to compare
)
_PARTS: Final = (Work.MATCH, Work.ROUTE, Work.RESTORE, Work.RUN, Work.SNAPSHOT, Work.STORE)


def stateful(session: SparkBenchSession) -> None:
    """Run a stream with sequences on one shard and on more, beside the engine."""
    scale = session.scale
    for kind in scale.sequence_kinds:
        session.tell(kind, "filling the index")
        given = _with_completing(technical_input(kind, scale.sequences - _COMPLETED), scale.sequences)
        index = filled(session.folder / f"sequences-{kind}", given.groups).folder
        events = str(session.folder / f"events-{kind}")
        expected = _by_engine(session, kind, given, write_events(given, scale, Path(events)))
        # The first stream is run twice, and counted once: Java compiles what all of them need.
        for run, shards in enumerate((scale.state_shards[0], *scale.state_shards)):
            of = f"{kind}, {shards} shard{'s' if shards > 1 else ''}"
            session.tell(of, "running a stream")
            found = session.two.ask(
                "streamed",
                Streamed,
                events=events,
                index=index,
                checkpoint=str(session.folder / f"stream-{kind}-{run}"),
                stream=given.stream,
                time=given.time,
                shards=shards,
                files=_FILES,
                tried=_TRIED,
            )
            notes = [one.notifications for one in found.batches]
            if notes != expected:
                raise SparkError(f"the engine sent {expected} notifications, and the stream of {of} {notes}")
            if run:
                _record(session, of, shards, found)
        _record_kernels(session, kind, given, index)


def _with_completing(given: Input, count: int) -> Input:
    """Return an input with further sequences, up to `count`, that complete."""
    numbers = np.arange(count - _COMPLETED, count)
    more = FilledTemplate(_COMPLETING.format(stream=given.stream), numbers, {"d": np.arange(_COMPLETED)})
    return replace(given, groups=[*given.groups, more])


def write_events(given: Input, scale: Any, folder: Path) -> list[pa.Table]:
    """Write the files of all micro-batches, in the order of their times, and return the events of each micro-batch."""
    folder.mkdir()
    batches = _TRIED + scale.stream_batches
    each = scale.sequence_events // _FILES
    tables = []
    for number, table in enumerate(given.events(0, batches * each * _FILES, batch=each)):
        ids = pa.array(np.arange(number * each, number * each + len(table))).cast(pa.string())
        file = folder / f"{number:04}.parquet"
        pq.write_table(table.append_column("event_id", ids), file)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
        tables.append(table)
    return [pa.concat_tables(tables[one : one + _FILES]) for one in range(0, len(tables), _FILES)]


def _by_engine(session: SparkBenchSession, kind: str, given: Input, batches: list[pa.Table]) -> list[int]:
    """Return the notifications of each counted micro-batch, and record the rate of an engine with all sequences."""
    session.tell(kind, "the engine")
    engine = Engine()
    for group in given.groups:
        engine.subscribe_many(group.text, group.with_ids(), id=ID)
    notes, paces = [], []
    for table in batches:
        begun = time.perf_counter()
        notes.append(len(engine.publish_many(table, stream=given.stream, time=given.time)))
        paces.append(len(table) / (time.perf_counter() - begun))
    size = {"subscriptions": len(engine)}
    session.record_runs("events a second", f"{kind}, the engine", paces[_TRIED:], "events/s", **size)
    return notes[_TRIED:]


def _record(session: SparkBenchSession, of: str, shards: int, found: Streamed) -> None:
    batches, scale = found.batches, session.scale
    events = sum(one.events for one in batches)
    size = {"subscriptions": scale.sequences, "micro_batch": scale.sequence_events, "shards": shards}
    paces = [one.events / one.seconds for one in batches]
    session.record_runs("events a second", of, paces, "events/s", **size)
    session.record_runs("a micro-batch", of, [one.seconds for one in batches], "s", **size)
    session.record_runs("the first micro-batch", of, found.first, "s", **size)
    for part, seconds in found.processor.items():
        session.record_runs(part, of, 1e6 * seconds / events, "µs an event", **size)
    for part in _PARTS:
        own = [1e6 * one.parts[part] / one.events for one in batches]
        session.record_runs(f"of Python: {part}", of, own, "µs an event", **size)
    told = sum(one.parts[part] for one in batches for part in _PARTS)
    rest = max(found.processor["Python, workers"] - told, 0.0)
    session.record_runs("of Python: Arrow and the rest", of, 1e6 * rest / events, "µs an event", **size)
    notes = sum(one.notifications for one in batches)
    session.record_runs("notifications", of, notes, "", **size)
    state = [one.state_bytes / shards / 1e3 for one in batches]
    session.record_runs("a shard's state", of, state, "KB", **size)
    session.record_runs("a shard's checkpoint, a micro-batch", of, found.written_bytes / shards / 1e3, "KB")
    session.record_runs("a shard's checkpoint on disk", of, found.checkpoint_bytes / shards / 1e3, "KB")


def _record_kernels(session: SparkBenchSession, kind: str, given: Input, index: str) -> None:
    """Record how much of `run` is in kernels: for the busiest of the most shards, by processor time in this process."""
    session.tell(kind, "kernels")
    reader, shards = IndexReader(index), max(session.scale.state_shards)
    stateful = reader.stateful(reader.current())
    assert stateful is not None  # noqa: S101 - the index has sequences
    plan = ShardPlan.of(stateful, shards)
    router = ShardRouter(plan)
    batches = [
        (one, router.route(one)) for one in _event_batches(given, session.scale.sequence_events, _TRIED + 2)
    ]
    busiest = np.bincount(np.concatenate([routed.shards for _, routed in batches]), minlength=shards)
    shard = int(busiest.argmax())

    def run(runtime: ShardRuntime) -> float:
        seconds = 0.0
        for events, routed in batches:
            parts = {one: (rows, roles) for one, rows, roles in routed.by_shard()}
            if shard in parts:
                rows, roles = parts[shard]
                begun = time.process_time()
                runtime.process(events.take(rows), roles, routed.latest)
                seconds += time.process_time() - begun
        return seconds

    runtimes = [ShardRuntime(stateful, plan, shard, 1) for _ in range(2)]
    run(runtimes[0])  # compiles
    with timed_kernels() as kernels:
        seconds = run(runtimes[1])
    share = 100 * kernels.seconds / max(seconds, 1e-9)
    session.record_runs("of `run`: kernels", f"{kind}, {shards} shards, one of them", share, "%")


def _event_batches(given: Input, batch: int, batches: int) -> Iterator[TimedRows]:
    for table in given.events(0, batch * batches, batch=batch):
        yield timed_rows(require_columns(table, given.stream), given.time, None, StreamTicks())


def snapshots(session: SparkBenchSession) -> None:
    """Take snapshots where each row of a template has a partial match, of an engine and of shards, and restore them."""
    count = session.scale.waiting
    rows, names = np.arange(count), [f"S{number}" for number in range(_SYMBOLS)]
    asked = {
        ID: rows,
        "s": pa.array(names).take(pa.array(rows % _SYMBOLS)),
        "p": rows // _SYMBOLS / 100,
    }
    events = pa.table({"symbol": names, "price": [float(count)] * _SYMBOLS, "t": np.arange(_SYMBOLS)})
    _snapshots_of_engine(session, asked, events)
    _snapshots_of_shards(session, asked, events)


def _snapshots_of_engine(session: SparkBenchSession, asked: dict[str, Any], events: pa.Table) -> None:
    session.tell("an engine")
    engine = _waiting_engine(asked)
    engine.publish_many(events, stream="stock", time="t")
    _check_waiting(session, engine.stats().sequences.instances)
    other = _waiting_engine(asked)
    state, taking, restoring = b"", [], []
    for is_counted in session.rounds("an engine"):
        seconds, state = _timed(engine.snapshot)
        again, restored = _timed(partial(other.restore, state))
        if restored.subscriptions != session.scale.waiting or restored.dropped:
            raise SparkError(f"a snapshot was restored in part: {restored}")
        if is_counted:
            taking.append(seconds)
            restoring.append(again)
    _record_snapshots(session, "an engine", len(state), taking, restoring)


def _waiting_engine(asked: dict[str, Any]) -> Engine:
    engine = Engine()
    engine.subscribe_many(_TEXT, asked, id=ID)
    return engine


def _snapshots_of_shards(session: SparkBenchSession, asked: dict[str, Any], events: pa.Table) -> None:
    shards = max(session.scale.state_shards)
    of = f"{shards} shards, one after another"
    session.tell(of)
    index = SubscriptionIndex(session.folder / "waiting")
    index.subscribe_many(_TEXT, asked, id=ID)
    generation = index.publish()
    stateful = IndexReader(session.folder / "waiting").stateful(generation)
    assert stateful is not None  # noqa: S101 - the index has sequences
    plan = ShardPlan.of(stateful, shards)
    runtimes = [ShardRuntime(stateful, plan, shard, generation) for shard in range(shards)]
    batch = timed_rows(require_columns(events, "stock"), "t", None, StreamTicks())
    routed = ShardRouter(plan).route(batch)
    for shard, rows, roles in routed.by_shard():
        runtimes[shard].process(batch.take(rows), roles, routed.latest)
    states: list[bytes] = []
    taking, restoring = [], []
    for is_counted in session.rounds(of):
        seconds, states = _timed(lambda: [runtime.snapshot() for runtime in runtimes])
        again, _ = _timed(partial(_go_back, runtimes, states))
        if is_counted:
            taking.append(seconds)
            restoring.append(again)
    _record_snapshots(session, of, sum(map(len, states)), taking, restoring)
    begun = []
    for shard, state in enumerate(states):
        seconds, runtime = _timed(partial(ShardRuntime, stateful, plan, shard, generation, state=state))
        begun.append(seconds)
        if runtime.snapshot() != state:
            raise SparkError(f"shard {shard} does not have the state that it was begun with")
    session.record_runs("begun with subscriptions and state", of, sum(begun), "s")


def _go_back(runtimes: list[ShardRuntime], states: list[bytes]) -> None:
    for runtime, state in zip(runtimes, states, strict=True):
        runtime.go_back(state)


def _check_waiting(session: SparkBenchSession, instances: int) -> None:
    if instances != session.scale.waiting:
        raise SparkError(f"{instances:,} partial matches wait, not {session.scale.waiting:,}")


def _record_snapshots(
    session: SparkBenchSession, of: str, size: int, taking: list[float], restoring: list[float]
) -> None:
    waiting = {"subscriptions": session.scale.waiting, "partial_matches": session.scale.waiting}
    session.record_runs("snapshot", of, taking, "s", **waiting)
    session.record_runs("restore", of, restoring, "s", **waiting)
    session.record_runs("bytes of a partial match", of, size / session.scale.waiting, "bytes", **waiting)


def _timed(work: Callable[[], Found]) -> tuple[float, Found]:
    """Return the processor seconds of a piece of work, and its result."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found
