"""From a subscription's change to its effect on a stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeVar

from benchmarks.spark.process import Changed
from tocsin.index import SubscriptionIndex
from tocsin.model.errors import SparkError
from tocsin.spark import BatchProgress, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY: Final = "value >= 0"  # matches every event of the stream
_WARM: Final = 5  # micro-batches before the first change
_PATIENCE: Final = 300.0  # seconds that are waited for a micro-batch
_POLL: Final = 0.02

Found = TypeVar("Found")


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
    raise SparkError("the stream ended, or no micro-batch told of a change")
