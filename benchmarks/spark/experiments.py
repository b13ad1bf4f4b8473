"""The experiments with their sizes and plots: Spark beside the engine, shards, and a stream whose subscriptions change."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from benchmarks.lesubscribe.workload import WORKLOADS, Workload
from benchmarks.runner.benchmark import Benchmark, Experiment
from benchmarks.runner.plots import PALETTE, Bars, Plot, grouped_bars, plain, ranked_bars, with_legend
from benchmarks.runner.report import Measurement, of_experiment
from benchmarks.runner.session import scales
from benchmarks.runner.tables import show_runs
from benchmarks.spark.cores import cores
from benchmarks.spark.costs import costs
from benchmarks.spark.inputs import filled
from benchmarks.spark.joins import joins
from benchmarks.spark.process import Changed, Timed
from benchmarks.spark.session import EFFECT, SparkBenchSession
from benchmarks.spark.stateful import snapshots, stateful
from benchmarks.workloads.tabular import templates
from tocsin.engine import Engine
from tocsin.index import IndexReader
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.model.errors import SparkError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES: Final = scales(
    subscriptions=(50_000, 1_000_000),  # where the engine, Spark and shards are compared
    events=(100_000, 1_000_000),  # that a figure there is taken from
    joined=(2_000, 100_000),  # subscriptions, where a join is the alternative
    join_events=(2_000, 100_000),
    # events that the nested loop is timed with; the rest is extrapolated
    join_samples=((2_000,), (1_000, 2_000, 4_000)),
    changing=(2_000, 100_000),  # subscriptions of an index that a stream follows
    changes=(3, 10),  # of it while the stream runs
    rounds=(3, 5),  # in which all take their turn; figures are medians of them
    shards=((1, 2, 4), (1, 2, 4)),
    # subscriptions of W0's two fixed equalities: one in 1,225 matches
    noted=((1_225, 24_500), (1_225, 24_500)),
    noted_events=(20_000, 100_000),
    stream_rows=(1_000, 1_000),  # events in a micro-batch
    batch=(10_000, 10_000),  # events in a record batch, for the engine as on Spark
    sequences=(2_000, 100_000),  # subscriptions of the Cayuga benchmark that a stream has
    sequence_kinds=(("Filter",), ("Filter", "LinearStat")),
    sequence_events=(10_000, 50_000),  # events in a micro-batch of that stream
    stream_batches=(3, 10),  # micro-batches that are counted
    state_shards=((1, 8), (1, 2, 4, 8)),
    waiting=(20_000, 1_000_000),  # subscriptions with a partial match each, for snapshots
    workload=(WORKLOADS["W0"], WORKLOADS["W0"]),
)


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
            raise SparkError(f"the engine and Spark sent different numbers of notifications: {rows}")
        _record_paces(session, source, paces, rows.pop())


def _record_paces(
    session: SparkBenchSession, source: str, paces: dict[str, list[float]], notifications: int
) -> None:
    size = {"subscriptions": session.scale.subscriptions, "notifications": notifications}
    for label, runs in paces.items():
        session.record_runs(label, source, runs, "events/s", **size)
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
        for name, value, unit in (
            (session.two.label, paces, "events/s"),
            ("shards that an event visits", visited, "shards"),
            ("the largest shard's arrays", max(sizes) / 1e6, "MB"),
            ("the largest over the mean", max(sizes) * count / sum(sizes), "times"),
        ):
            session.record_runs(name, of, value, unit, shards=count)
    if len(expected) > 1:
        raise SparkError(f"different numbers of shards sent different numbers of notifications: {expected}")


def changes(session: SparkBenchSession) -> None:
    """Change the subscriptions of a running stream, and see when that takes effect."""
    scale = session.scale
    session.tell("filling the index")
    held = templates(Workload(scale.workload).subscriptions(0, scale.changing))
    index = filled(session.folder / "changing", held)
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
    effect = {"median": median(found.batches), "changes": scale.changes, **size}
    batches = [1e3 * one for one in found.batch_seconds]
    session.record_runs(EFFECT, "stream", max(found.batches), "micro-batches", **effect)
    session.record_runs("from the change to its effect", "stream", found.seconds, "s", **size)
    session.record_runs("of which: publish", "stream", found.publishing, "s", **size)
    session.record_runs("a micro-batch", "stream", batches, "ms", events=scale.stream_rows)


EXPERIMENTS: Final[Mapping[str, Experiment[SparkBenchSession]]] = {
    "joins": Experiment("instead of a join, end to end", "", joins),
    "overhead": Experiment("Spark and the embedded engine", "", overhead),
    "cores": Experiment("one processor and two, by processor time", "", cores),
    "shards": Experiment("the index in shards", "", shards),
    "changes": Experiment("from a subscription's change to its effect", "", changes),
    "stateful": Experiment("a stream with sequences, by the shards of their state", "", stateful),
    "snapshots": Experiment("snapshots of sequences, and restoring them", "", snapshots),
    "costs": Experiment("the cost of each part, on one core", "", costs),
}


def _joined(one: Measurement) -> str:
    """Return the label of a bar of the joins."""
    if one.name == "match, index included":
        return f"{one.name}\n(subscriptions from {one.details['of']})"
    return one.name.replace(", extrapolated", "\n(extrapolated)")


def _of(one: Measurement) -> str:
    return str(one.details["of"])


def _costs(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the costs of the parts of an event's way, one after another."""
    chosen = [one for one in of_experiment(measurements, "costs") if one.details["of"] == "an event"]
    figure.set_size_inches(7.0, 1.9)
    axes = figure.subplots()
    begin = 0.0
    for one, colour in zip(chosen, reversed(PALETTE), strict=False):
        bar = axes.barh([""], [one.value], left=begin, height=0.5, color=colour, label=one.name)
        axes.bar_label(bar, labels=[f"{one.value:,.0f}"], label_type="center", color="white", fontsize=8)
        begin += one.value
    axes.set_title("an event on one core, part by part")
    axes.set_xlabel("ns")
    plain(axes.xaxis)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    return with_legend(figure)


PLOTS: Final[Mapping[str, Plot]] = {
    "joins": ranked_bars("joins", "", "W0, two cores: seconds, end to end", unit="s", label=_joined),
    "rates": grouped_bars(
        Bars("overhead", "", "events a second, by source", "events/s", group="name", label="of"),
        Bars("shards", "", "the same in shards", "events/s", group="of", label="name"),
    ),
    "costs": _costs,
    "stateful": ranked_bars(
        "stateful",
        "events a second",
        "100,000 sequences: events a second",
        unit="events/s",
        label=_of,
        own=("Filter", "LinearStat"),
    ),
}


BENCHMARK: Final = Benchmark(
    name="spark",
    title="Matching on Spark: beside a join, beside the engine, in shards, while subscriptions change, and with sequences.",
    sizes="small: about three minutes; paper: 1,000,000 subscriptions",
    scales=SCALES,
    session=SparkBenchSession,
    experiments=EXPERIMENTS,
    show=show_runs,
    plots=PLOTS,
)
