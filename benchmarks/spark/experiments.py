"""The experiments: Spark beside the engine, shards beside one another, and a stream whose subscriptions change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median
from typing import Any, Final

import pyarrow.parquet as pq

from benchmarks.lesubscribe.workload import Workload
from benchmarks.runner.benchmark import Benchmark, Experiment
from benchmarks.runner.tables import show_runs
from benchmarks.spark.costs import costs
from benchmarks.spark.inputs import filled
from benchmarks.spark.joins import joins
from benchmarks.spark.plots import PLOTS
from benchmarks.spark.process import Changed, Timed
from benchmarks.spark.scale import SCALES
from benchmarks.spark.session import SparkBenchSession
from benchmarks.workloads.tabular import templates
from tocsin.engine import Engine
from tocsin.index import IndexReader
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.model.errors import SparkError


def overhead(session: SparkBenchSession) -> None:
    """Compare the engine with Spark on one core and on two: in turns, on the same events."""
    session.tell("filling the engine")
    engine = session.inputs.engine()
    session.tell("filling the index")
    index = session.inputs.index().folder
    files = session.inputs.event_files
    for source, events in (("memory", session.inputs.events), ("Parquet", files)):
        paces: dict[str, list[float]] = {}
        rows: set[int] = set()
        for is_counted in session.rounds(f"events from {source}"):
            runs = {"engine": _by_engine(engine, events, session.scale.batch)}
            for process in (session.one, session.two):
                runs[process.label] = process.match(files, index, cached=source == "memory")
            for label, run in runs.items():
                rows.add(run.rows)
                if is_counted:
                    paces.setdefault(label, []).append(session.scale.events / run.seconds)
        if len(rows) > 1:
            raise SparkError(f"the engine and Spark told different numbers of notifications: {rows}")
        _record_paces(session, source, paces, rows.pop())


def _record_paces(
    session: SparkBenchSession, source: str, paces: dict[str, list[float]], notifications: int
) -> None:
    for label, runs in paces.items():
        session.record_runs(
            label,
            source,
            runs,
            "events/s",
            subscriptions=session.scale.subscriptions,
            notifications=notifications,
        )
    engine, one, two = paces.values()
    shares = [100 * mine / whole for mine, whole in zip(one, engine, strict=True)]
    gains = [more / less for more, less in zip(two, one, strict=True)]
    session.record_runs("share of the engine's rate", source, shares, "%")
    session.record_runs("gain of a second core", source, gains, "times")


def _by_engine(engine: Engine, events: Any, batch: int) -> Timed:
    begun = time.perf_counter()
    if isinstance(events, str):
        files = sorted(pq.ParquetDataset(events).files)
        batches = (part for file in files for part in pq.ParquetFile(file).iter_batches(batch))
    else:
        batches = iter(events.to_batches(max_chunksize=batch))
    rows = sum(len(engine.match(part).ids) for part in batches)
    return Timed(time.perf_counter() - begun, rows)


def shards(session: SparkBenchSession) -> None:
    """Spread the same subscriptions over more and more shards."""
    files = session.inputs.event_files
    events = session.inputs.events.slice(0, session.scale.batch)
    expected: set[int] = set()
    for count in session.scale.shards:
        of = f"{count} shard{'s' if count > 1 else ''}"
        session.tell(f"filling an index of {of}")
        index = session.inputs.index(count).folder
        paces = []
        for is_counted in session.rounds(of):
            run = session.two.match(files, index)
            expected.add(run.rows)
            if is_counted:
                paces.append(session.scale.events / run.seconds)
        reader = IndexReader(index)
        number = reader.current()
        visited = 1.0
        if count > 1:
            visited = len(reader.router(number).route(arrow_events(events)).rows) / events.num_rows
        sizes = [shard.bytes for shard in reader.generation(number).shards]
        session.record_runs(session.two.label, of, paces, "events/s", shards=count)
        session.record_runs("shards that an event visits", of, visited, "shards", shards=count)
        session.record_runs("the largest shard's arrays", of, max(sizes) / 1e6, "MB", shards=count)
        session.record_runs(
            "the largest over the mean", of, max(sizes) * count / sum(sizes), "times", shards=count
        )
    if len(expected) > 1:
        raise SparkError(f"different numbers of shards told different numbers of notifications: {expected}")


def changes(session: SparkBenchSession) -> None:
    """Change the subscriptions of a running stream, and see when that takes effect."""
    scale = session.scale
    session.tell("filling the index")
    index = filled(
        session.folder / "changing", templates(Workload(scale.workload).subscriptions(0, scale.changing))
    )
    session.tell("running a stream")
    found = session.two.ask(
        "changed",
        Changed,
        index=index.folder,
        checkpoint=str(session.folder / "checkpoint"),
        changes=scale.changes,
        stream_rows=scale.stream_rows,
    )
    size = {"subscriptions": scale.changing}
    session.record_runs(
        "micro-batches to the effect",
        "stream",
        max(found.batches),
        "micro-batches",
        median=median(found.batches),
        changes=scale.changes,
        **size,
    )
    session.record_runs("from the change to its effect", "stream", found.seconds, "s", **size)
    session.record_runs("of which: publish", "stream", found.publishing, "s", **size)
    session.record_runs(
        "a micro-batch", "stream", [1e3 * one for one in found.batch_seconds], "ms", events=scale.stream_rows
    )


EXPERIMENTS: Final[Mapping[str, Experiment[SparkBenchSession]]] = {
    "joins": Experiment("instead of a join, end to end", "", joins),
    "overhead": Experiment("Spark and the embedded engine", "", overhead),
    "shards": Experiment("the index in shards", "", shards),
    "changes": Experiment("from a subscription's change to its effect", "", changes),
    "costs": Experiment("the cost of each part, on one core", "", costs),
}

BENCHMARK: Final = Benchmark(
    name="spark",
    title="Matching on Spark: beside a join, beside the engine, in shards, and while subscriptions change.",
    sizes="small: about two minutes; paper: 1,000,000 subscriptions",
    scales=SCALES,
    session=SparkBenchSession,
    experiments=EXPERIMENTS,
    show=show_runs,
    plots=PLOTS,
)
