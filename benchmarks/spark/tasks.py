"""The tasks of a Spark process: matches, joins, a stream whose subscriptions change, and one with sequences."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import convert

from benchmarks.lesubscribe.workload import Parameters, Workload
from benchmarks.spark.inputs import filled
from benchmarks.spark.process import Changed, Timed
from benchmarks.spark.processor import processor_seconds
from benchmarks.spark.streaming import streamed
from benchmarks.workloads.tabular import templates
from tocsin.index import SubscriptionIndex
from tocsin.model.errors import SparkError
from tocsin.spark import BatchProgress, Pipeline, match

if TYPE_CHECKING:
    from msgspec import Struct
    from pyspark.sql import DataFrame, SparkSession

_EVERY: Final = "value >= 0"  # matches every event of the stream
_WARM: Final = 5  # micro-batches before the first change
_PATIENCE: Final = 300.0  # seconds that are waited for a micro-batch
_POLL: Final = 0.02

Found = TypeVar("Found")


def matched(
    session: SparkSession, events: str, index: str, *, cached: bool = True, threads: int = 1
) -> Timed:
    """Match a folder of events with an index, and count the notifications."""
    frame = _events(session, events, cached=cached)
    return _counted(lambda: match(frame, index, threads=threads))


def from_texts(session: SparkSession, events: str, subscriptions: str, folder: str) -> Timed:
    """Match events with subscriptions that are rows of ids and texts; to make the index is part of the work."""
    frame, asked = _events(session, events), _events(session, subscriptions)
    rmtree(folder, ignore_errors=True)
    return _counted(lambda: match(frame, asked, folder=folder))


def join_plan(session: SparkSession, events: str, index: str) -> Timed:
    """Match a folder of events with an index's subscriptions by the plan `join`; to make its table is part of the work."""
    frame = _events(session, events)
    return _counted(lambda: match(frame, index, plan="join"), planned=True)


def from_templates(
    session: SparkSession, events: str, workload: dict[str, Any], subscriptions: int, folder: str
) -> Timed:
    """Match events with a workload's first subscriptions, as templates; making the index is part of the work."""
    frame = _events(session, events)
    asked = list(templates(Workload(convert(workload, Parameters)).subscriptions(0, subscriptions)))
    rmtree(folder, ignore_errors=True)
    return _counted(lambda: match(frame, filled(Path(folder), asked).folder))


def joined(session: SparkSession, events: str, subscriptions: str, condition: str) -> Timed:
    """Join events `e` with subscriptions `s` on a condition in SQL, and count the pairs."""
    _events(session, events).createOrReplaceTempView("joined_events")
    _events(session, subscriptions).createOrReplaceTempView("joined_subscriptions")
    frame = session.sql(
        "select /*+ broadcast(s) */ s.id as subscription, e.event_id "  # noqa: S608 - our own
        f"from joined_events e join joined_subscriptions s on {condition}"
    )
    return _counted(lambda: frame, planned=True)


def transferred(session: SparkSession, events: str) -> Timed:
    """Bring events into Python, and do nothing with them there."""
    frame = _events(session, events)
    return _counted(lambda: frame.mapInArrow(_nothing, frame.schema))


def changed(session: SparkSession, index: str, checkpoint: str, changes: int, stream_rows: int) -> Changed:
    """Run a stream of `stream_rows` events a micro-batch, and add `changes` times one more subscription that all of them match."""
    subscriptions = SubscriptionIndex(index)
    subscriptions.subscribe(_EVERY, id="every-0")
    subscriptions.publish()
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", stream_rows).load()
    pipeline = Pipeline(source, index, {"format": "noop"}, checkpoint, event_id="value")
    heard: list[BatchProgress] = []
    stream = Thread(target=pipeline.run, kwargs={"on_progress": heard.append}, daemon=True)
    stream.start()
    try:
        _wait(lambda: len(heard) >= _WARM or None, stream)
        effects = [_change(subscriptions, number, heard, stream) for number in range(1, changes + 1)]
    finally:
        pipeline.stop()
        stream.join()
    batches, seconds, publishing = zip(*effects, strict=True)
    return Changed(batches, seconds, publishing, tuple(one.seconds for one in heard[1:] if one.events))


TASKS: Final[Mapping[str, Callable[..., Struct]]] = {
    task.__name__: task
    for task in (matched, from_texts, from_templates, join_plan, joined, transferred, changed, streamed)
}

_kept: dict[str, DataFrame] = {}  # tables in memory


def _events(session: SparkSession, folder: str, *, cached: bool = True) -> DataFrame:
    """Return the rows of a folder of Parquet files, from memory unless `cached` is false."""
    # Each file is a task of its own: packed by size, as Spark does it, some would get twice as many as others.
    largest = max(file.stat().st_size for file in Path(folder).iterdir())
    session.conf.set("spark.sql.files.maxPartitionBytes", str(largest + 1))
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    if not cached:
        return session.read.parquet(folder)
    if folder not in _kept:
        _kept[folder] = session.read.parquet(folder).cache()
        _kept[folder].count()
    return _kept[folder]


def _nothing(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        if not batch.num_rows:  # never so: a generator has to have a `yield`
            yield batch


def _counted(make: Callable[[], DataFrame], *, planned: bool = False) -> Timed:
    """Return the seconds of making a query and counting its rows and, if `planned`, its physical plan."""
    before, begun = processor_seconds(os.getpid()), time.perf_counter()
    frame = make()
    rows = frame.count()
    seconds = time.perf_counter() - begun
    processor = {part: used - before[part] for part, used in processor_seconds(os.getpid()).items()}
    text = StringIO()
    if planned:
        with redirect_stdout(text):
            frame.explain()
    return Timed(seconds, rows, text.getvalue(), processor)


def _change(
    subscriptions: SubscriptionIndex, number: int, heard: list[BatchProgress], stream: Thread
) -> tuple[int, float, float]:
    """Add a subscription; return the micro-batches and the seconds to its effect, and the seconds of `publish`."""
    begun = datetime.now(UTC)
    subscriptions.subscribe(_EVERY, id=f"every-{number}")
    subscriptions.publish()
    published = datetime.now(UTC)
    effect = _wait(
        lambda: next((one for one in heard if one.events and one.notifications > number * one.events), None),
        stream,
    )
    running = next(one for one in heard if one.ended > published or one is effect)
    return (
        effect.batch - running.batch + 1,
        (effect.ended - begun).total_seconds(),
        (published - begun).total_seconds(),
    )


def _wait(found: Callable[[], Found | None], stream: Thread) -> Found:
    """Call `found` until it returns something, and return that."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and stream.is_alive():
        if (one := found()) is not None:
            return one
        time.sleep(_POLL)
    raise SparkError("the stream ended, or no micro-batch had the change")
