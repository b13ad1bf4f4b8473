"""The progress of a stream, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from pyspark.sql import DataFrame, functions
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import TimestampType

from tocsin.spark.match_worker import SecondsByBatch

_EVENTS: Final = "tocsin_events"
_NOTES: Final = "tocsin_notifications"


class BatchProgress(Struct, frozen=True):
    """One micro-batch: its events, notifications and times.

    `match_seconds` are the seconds of all tasks spent on decoding and matching events. `lag` is the age in seconds of
    the newest event when the batch ended; None where events have no time.
    """

    batch: int
    ended: datetime
    events: int
    notifications: int
    seconds: float
    match_seconds: float
    generation: int | None
    lag: float | None

    @property
    def events_per_second(self) -> float:
        """Return the events per second of this batch."""
        return self.events / self.seconds if self.seconds else 0.0

    @property
    def notifications_per_second(self) -> float:
        """Return the notifications per second of this batch."""
        return self.notifications / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        lag = "" if self.lag is None else f", {self.lag:,.1f} s behind"
        return (
            f"batch {self.batch}: {self.events:,} events at {self.events_per_second:,.0f}/s, {self.notifications:,} "
            f"notifications at {self.notifications_per_second:,.0f}/s, matched in {self.match_seconds:.2f} s, "
            f"generation {self.generation if self.generation is not None else '-'}{lag}"
        )


class ProgressObserver:
    """Counts the events and notifications of a stream, and reports each micro-batch once."""

    def __init__(self, frame: DataFrame) -> None:
        context = frame.sparkSession.sparkContext
        self.seconds = context.accumulator({}, SecondsByBatch())
        self._reported = -1

    def events(self, frame: DataFrame, time: str | None) -> DataFrame:
        """Return the events with their newest time observed."""
        if time is None or not isinstance(frame.schema[time].dataType, TimestampType):
            return frame
        newest = functions.max(functions.unix_micros(functions.col(f"`{time.replace('`', '``')}`")))
        return frame.observe(_EVENTS, newest.alias("newest"))

    def notifications(self, frame: DataFrame) -> DataFrame:
        """Return the notifications with their number observed."""
        count, newest = functions.count("subscription"), functions.max("generation")
        return frame.observe(_NOTES, count.alias("count"), newest.alias("generation"))

    def new(self, query: StreamingQuery) -> Iterator[BatchProgress]:
        """Yield the micro-batches that have ended since the last call."""
        recent = (one for one in query.recentProgress if one.batchId > self._reported)
        ended = [one for one in recent if "addBatch" in one.durationMs]
        for one in ended:
            self._reported = one.batchId
            yield _read(one, self.seconds.value.get(one.batchId, 0.0))


def _read(progress: Any, match_seconds: float) -> BatchProgress:
    """Return Spark's progress of a micro-batch with its times, counts, generation and lag."""
    seconds = progress.durationMs.get("triggerExecution", 0) / 1000
    begun = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).astimezone(UTC)
    ended = begun + timedelta(seconds=seconds)
    notes, newest = progress.observedMetrics.get(_NOTES), progress.observedMetrics.get(_EVENTS)
    lag = None
    if newest is not None and newest["newest"] is not None:
        lag = ended.timestamp() - newest["newest"] / 1e6
    return BatchProgress(
        progress.batchId,
        ended,
        progress.numInputRows,
        0 if notes is None else notes["count"],
        seconds,
        match_seconds,
        None if notes is None else notes["generation"],
        lag,
    )
