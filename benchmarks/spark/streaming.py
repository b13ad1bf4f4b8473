"""A stream whose sequences have their state in shards: a task of a Spark process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from benchmarks.spark.process import Streamed, StreamedBatch
from benchmarks.spark.processor import processor_seconds
from tocsin.model.errors import SparkError
from tocsin.spark import BatchProgress, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def streamed(
    session: SparkSession,
    events: str,
    index: str,
    checkpoint: str,
    *,
    stream: str,
    time: str,
    shards: int,
    files: int,
    tried: int,
) -> Streamed:
    """Run a stream over a folder of Parquet files, `files` a micro-batch, with `shards` shards; the first `tried` are not counted."""
    rmtree(checkpoint, ignore_errors=True)
    schema = session.read.parquet(events).schema
    source = session.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(events)
    pipeline = Pipeline(
        source, index, {"format": "noop"}, checkpoint, time=time, stream=stream, state_shards=shards
    )
    batches: list[StreamedBatch] = []
    used = [processor_seconds(os.getpid())]

    def tell(progress: BatchProgress) -> None:
        batches.append(_batch(progress))
        if len(batches) >= tried:
            used.append(processor_seconds(os.getpid()))

    pipeline.run(available_now=True, on_progress=tell)
    if len(batches) <= tried:
        raise SparkError(f"the stream had {len(batches)} micro-batches, of which {tried} are not counted")
    before, after = used[1] if tried else used[0], used[-1]
    processor = {part: seconds - before[part] for part, seconds in after.items()}
    written = _bytes(Path(checkpoint), lambda file: file.name == f"{len(batches)}.changelog")
    return Streamed(tuple(batches[tried:]), batches[0].seconds, processor, written, _bytes(Path(checkpoint)))


def _batch(progress: BatchProgress) -> StreamedBatch:
    parts = progress.stateful
    if parts is None:
        raise SparkError("the stream has no stage for sequences")
    return StreamedBatch(
        progress.events,
        progress.notifications,
        progress.seconds,
        {
            "match": progress.match_seconds,
            "route": parts.route,
            "restore": parts.restore,
            "run": parts.run,
            "snapshot": parts.snapshot,
            "store": parts.store,
        },
        parts.state_bytes,
    )


def _bytes(checkpoint: Path, chosen: Callable[[Path], bool] = lambda _: True) -> int:
    """Return the bytes of the state's files."""
    files = (checkpoint / "notifications" / "state").rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file() and chosen(file))
