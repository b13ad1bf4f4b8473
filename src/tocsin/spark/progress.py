"""The progress of a stream, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from pyspark.sql import DataFrame, functions
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import TimestampType

from tocsin.spark.match_worker import SECONDS

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

    def __init__(self) -> None:
        self._reported = -1

    def events(self, frame: DataFrame, time: str | None) -> DataFrame:
        """Return the events with their newest time observed."""
        if time is None or not isinstance(frame.schema[time].dataType, TimestampType):
            return frame
        newest = functions.max(functions.unix_micros(functions.col(f"`{time.replace('`', '``')}`")))
        return frame.observe(_EVENTS, newest.alias("newest"))

    def notifications(self, frame: DataFrame) -> DataFrame:
        """Return the notifications of a timed match, with their number and the seconds observed, without the rows of times."""
        count, newest = functions.count("subscription"), functions.max("generation")
        seconds = functions.sum(SECONDS)
        observed = frame.observe(
            _NOTES, count.alias("count"), newest.alias("generation"), seconds.alias("seconds")
        )
        return observed.where(functions.col("subscription").isNotNull()).drop(SECONDS)

    def new(self, query: StreamingQuery) -> Iterator[BatchProgress]:
        """Yield the micro-batches that have ended since the last call."""
        recent = (one for one in query.recentProgress if one.batchId > self._reported)
        ended = [one for one in recent if "addBatch" in one.durationMs]
        for one in ended:
            self._reported = one.batchId
            yield _read(one)


def _read(progress: Any) -> BatchProgress:
    """Return Spark's progress of a micro-batch with its times, counts, generation and lag."""
    seconds = progress.durationMs.get("triggerExecution", 0) / 1000
    begun = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).astimezone(UTC)
    ended = begun + timedelta(seconds=seconds)
    notes, newest = _observed(progress, _NOTES), _observed(progress, _EVENTS).get("newest")
    lag = None if newest is None else ended.timestamp() - newest / 1e6
    return BatchProgress(
        progress.batchId,
        ended,
        progress.numInputRows,
        notes.get("count") or 0,
        seconds,
        notes.get("seconds") or 0.0,
        notes.get("generation"),
        lag,
    )


def _observed(progress: Any, name: str) -> dict[str, Any]:
    """Return the metrics of one name, empty if none were observed."""
    row = progress.observedMetrics.get(name)
    metrics: dict[str, Any] = {} if row is None else row.asDict()
    if metrics.keys() == {"values", "schema"}:  # Spark Connect reads a row's JSON form as if it were a row
        names = [field["name"] for field in metrics["schema"]["fields"]]
        return dict(zip(names, metrics["values"], strict=True))
    return metrics
