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
from tocsin.spark.stateful.packed_rows import Work
from tocsin.spark.stateful.shard_notes import PART

_EVENTS: Final = "tocsin_events"
_NOTES: Final = "tocsin_notifications"


class StatefulProgress(Struct, frozen=True):
    """What sequences and views took of a micro-batch, in processor seconds of all Python workers, and the bytes of their state.

    `route` is finding the shards of events, `restore` taking up the state (nothing where a worker still has it), `run` the
    processing, `snapshot` making the state's bytes, `store` handing to the state store what has changed of them.
    """

    route: float = 0.0
    restore: float = 0.0
    run: float = 0.0
    snapshot: float = 0.0
    store: float = 0.0
    state_bytes: int = 0
    written_bytes: int = 0

    def __str__(self) -> str:
        seconds = self.restore + self.run + self.snapshot + self.store
        return (
            f"routed in {self.route:.2f} s, sequences and views in {seconds:.2f} s, state {self.state_bytes / 1e6:,.1f} MB of which "
            f"{self.written_bytes / 1e6:,.1f} were written"
        )


class BatchProgress(Struct, frozen=True):
    """One micro-batch: its events, notifications and times.

    `match_seconds` are the seconds of all tasks spent on decoding and matching events. `lag` is the age in seconds of
    the newest event when the batch ended; None where events have no time. `stateful` is what sequences and views took, None
    where there is no stage for them.
    """

    batch: int
    ended: datetime
    events: int
    notifications: int
    seconds: float
    match_seconds: float
    generation: int | None
    lag: float | None
    stateful: StatefulProgress | None = None

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
            + ("" if self.stateful is None else f"; {self.stateful}")
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
        metrics = [count.alias("count"), newest.alias("generation")]
        if PART not in frame.columns:
            metrics.append(functions.sum(SECONDS).alias(Work.MATCH))
        else:
            part = functions.coalesce(functions.col(PART), functions.lit(Work.MATCH.value))
            metrics += [
                functions.sum(functions.when(part == one.value, functions.col(SECONDS))).alias(one)
                for one in Work
            ]
        observed = frame.observe(_NOTES, *metrics)
        return observed.where(functions.col(SECONDS).isNull()).drop(SECONDS, PART)

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
        notes.get(Work.MATCH) or 0.0,
        notes.get("generation"),
        lag,
        _stateful(notes),
    )


def _stateful(notes: dict[str, Any]) -> StatefulProgress | None:
    """Return what the stages of sequences and views took, if they have reported it."""
    parts = {part: notes.get(part) or 0.0 for part in Work if part is not Work.MATCH}
    if Work.ROUTE not in notes:
        return None
    return StatefulProgress(
        parts[Work.ROUTE],
        parts[Work.RESTORE],
        parts[Work.RUN],
        parts[Work.SNAPSHOT],
        parts[Work.STORE],
        int(parts[Work.STATE_BYTES]),
        int(parts[Work.WRITTEN_BYTES]),
    )


def _observed(progress: Any, name: str) -> dict[str, Any]:
    """Return the metrics of one name, empty if none were observed."""
    row = progress.observedMetrics.get(name)
    metrics: dict[str, Any] = {} if row is None else row.asDict()
    if metrics.keys() == {"values", "schema"}:  # Spark Connect reads a row's JSON form as if it were a row
        names = [field["name"] for field in metrics["schema"]["fields"]]
        return dict(zip(names, metrics["values"], strict=True))
    return metrics
