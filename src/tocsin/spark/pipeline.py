"""`Pipeline`: matches a stream of events for as long as it runs."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, TypeAlias

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tocsin.index import SubscriptionIndex
from tocsin.model.errors import SparkError, TocsinError
from tocsin.model.ticks import Tick
from tocsin.spark.event_columns import LayoutOptions, resolve_layout
from tocsin.spark.matching import check_threads, dead_letters, match_with_index
from tocsin.spark.progress import BatchProgress, ProgressObserver
from tocsin.spark.sinks.kafka import kafka_messages, kafka_options
from tocsin.spark.stateful.job import StatefulOptions
from tocsin.spark.subscription_sources import (
    Report,
    SubscriptionSource,
    Tables,
    Ticks,
    ensure_index,
    fill_index,
    is_index,
    log_error,
)
from tocsin.spark.worker_python import ensure_worker_python

Sink: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Callable[[DataFrame], DataStreamWriter]
"""A folder for Parquet files, or a Kafka topic as `kafka://host:9092/topic`; a format with its options, such as
`{"format": "kafka", "topic": "notes", …}`; or a function that makes a writer of the notifications."""

_POLL: Final = 0.2
_LAYOUT: Final = tuple(LayoutOptions.__annotations__)


class Pipeline:
    """Matches a stream with subscriptions that may change, and sends the notifications to a sink.

    `source` is a streaming DataFrame. `subscriptions` is any source that `match` takes. The folder of an index is
    followed as others publish to it. A file of subscriptions is followed too: when it changes, its contents become
    the next generation of an index that the pipeline keeps in `folder`, by default beside the checkpoint. The same
    happens to the result of a function, which is called every `refresh` seconds.

    `dead_letters` is a sink for rows that are no events. `layout` are the keywords of `match` that say where events
    stand in a row: `event_id`, `time`, `payload` and so on. `trigger` is the interval of micro-batches; without it, a
    micro-batch begins as soon as the one before has ended. `keep`, `values`, `tables`, `ticks`, `out_of_orderness`, `late`,
    `state_shards`, `threads` and `explain` are those of `match`.
    """

    def __init__(
        self,
        source: DataFrame,
        subscriptions: SubscriptionSource | Callable[[], SubscriptionSource],
        sink: Sink,
        checkpoint: str | os.PathLike[str],
        *,
        keep: Sequence[str] = (),
        values: bool = False,
        late: bool = False,
        shards: int | None = None,
        matcher: str | None = None,
        options: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
        tables: Tables | None = None,
        ticks: Ticks | None = None,
        out_of_orderness: Tick = 0,
        state_shards: int | None = None,
        dead_letters: Sink | None = None,
        trigger: str | None = None,
        threads: int | None = None,
        explain: bool = False,
        refresh: float = 2.0,
        on_error: Report | None = None,
        **layout: str | None,
    ) -> None:
        if not source.isStreaming:
            raise SparkError(
                "a pipeline needs a streaming DataFrame, from `readStream`; for a batch, use `match`"
            )
        unknown = [name for name in layout if name not in _LAYOUT]
        if unknown:
            raise SparkError(
                f"`{unknown[0]}` is no option of a pipeline; where events stand is said by {', '.join(_LAYOUT)}"
            )
        ensure_worker_python(source.sparkSession)
        self._source = source
        self._subscriptions = subscriptions
        self._sink = sink
        self._checkpoint = os.fspath(checkpoint)
        self._keep, self._values = keep, values
        self._dead_letters = dead_letters
        check_threads(threads)
        self._trigger, self._threads = trigger, threads
        self._stateful = StatefulOptions(state_shards, out_of_orderness, late)
        self._stateful.check()
        self._declared: dict[str, Any] = {"tables": tables, "ticks": ticks}
        self._explain = explain
        self._refresh = refresh
        self._report = on_error or log_error
        self._layout: dict[str, Any] = layout
        self._observer = ProgressObserver()
        self._ended = Event()
        self._changing = Lock()
        self._refresher: Thread | None = None
        self._queries: list[StreamingQuery] = []
        self._index: SubscriptionIndex | None = None
        self._seen: object = None
        self._made_with: dict[str, Any] = {"shards": shards, "matcher": matcher, "options": options}
        self.index = self._open(folder)

    def start(self, *, available_now: bool = False) -> StreamingQuery:
        """Start the stream and return its query; with `available_now` it ends after the events that are there now."""
        if any(one.isActive for one in self._queries):
            raise SparkError("the pipeline runs already; `stop` it first, or make another")
        self.stop()  # the rest of an earlier run
        self._ended.clear()
        layout = resolve_layout(self._source, **self._layout)
        time = None if layout.is_clock or layout.time_inside is not None else layout.time
        notifications = match_with_index(
            self._observer.events(self._source, time),
            self.index,
            layout,
            keep=self._keep,
            values=self._values,
            timed=True,
            threads=self._threads,
            stateful=self._stateful,
            explain=self._explain,
        )
        observed = self._observer.notifications(notifications)
        query = self._begin(observed, self._sink, "notifications", available_now)
        if self._dead_letters is not None:
            kept = [name for name in (layout.payload,) if name is not None]
            rows = dead_letters(self._source, **self._layout, keep=kept)
            self._begin(rows, self._dead_letters, "dead-letters", available_now)
        if self._index is not None and self._is_refreshed():
            self._refresher = Thread(target=self._refresh_on_change, name="tocsin-subscriptions", daemon=True)
            self._refresher.start()
        return query

    def run(
        self,
        *,
        available_now: bool = False,
        on_progress: Callable[[BatchProgress], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Run until the stream ends, is stopped, or `timeout` seconds have passed; `on_progress` gets each micro-batch."""
        query = self.start(available_now=available_now)
        queries = tuple(self._queries)
        until = None if timeout is None else clock.monotonic() + timeout
        try:
            while any(one.isActive for one in queries) and (until is None or clock.monotonic() < until):
                if not all(one.isActive or one.exception() is None for one in queries):
                    break
                self._report_progress(query, on_progress)
                self._ended.wait(_POLL)
                if self._ended.is_set():
                    break
            self._report_progress(query, on_progress)
            for one in queries:
                if (fault := one.exception()) is not None:
                    raise SparkError(f"the stream failed: {_cause(fault)}") from fault
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the stream; an unfinished micro-batch is repeated at the next start."""
        self._ended.set()
        for query in self._queries:
            with suppress(Exception):  # a failed query has reported its error already
                query.stop()
        if self._refresher is not None:
            self._refresher.join()
        self._queries, self._refresher = [], None

    def refresh(self) -> int:
        """Publish the present subscriptions, and return their generation.

        Raise `SparkError` if there are none, as in a file that is just being written; the earlier ones stay.
        """
        if self._index is None:
            raise SparkError(
                "the pipeline follows an index that others publish to; it has nothing to refresh"
            )
        source = self._subscriptions() if callable(self._subscriptions) else self._subscriptions
        with self._changing:
            before = self._index.generation
            fill_index(self._index, source, self._report, **self._declared)
            if not len(self._index):
                raise SparkError("no subscription could be read")
            number = self._index.publish()
            if number > before:
                self._index.vacuum()
            return number

    def _open(self, folder: str | os.PathLike[str] | None) -> str:
        """Return the address of the index; build or update it if it is the pipeline's own."""
        source = self._subscriptions
        if not callable(source) and is_index(source):
            return ensure_index(source, **self._declared)
        place = folder or f"{self._checkpoint.rstrip('/')}/tocsin-index"
        self._index = SubscriptionIndex(place, **self._made_with)
        self._seen = self._state()
        self.refresh()
        return self._index.generations.storage.uri

    def _begin(self, frame: DataFrame, sink: Sink, name: str, available_now: bool) -> StreamingQuery:
        """Start a query with its own checkpoint; if it fails, stop the queries started before."""
        writer = _writer(frame, sink).option("checkpointLocation", f"{self._checkpoint.rstrip('/')}/{name}")
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif self._trigger is not None:
            writer = writer.trigger(processingTime=self._trigger)
        try:
            self._queries.append(writer.start())
        except Exception as fault:
            self.stop()  # the queries started before
            raise SparkError(f"the stream of {name} cannot be started: {_reason(fault)}") from fault
        return self._queries[-1]

    def _is_refreshed(self) -> bool:
        return callable(self._subscriptions) or isinstance(self._subscriptions, (str, os.PathLike))

    def _state(self) -> object:
        """Return a value that changes with the file of subscriptions."""
        if callable(self._subscriptions):
            return object()
        if isinstance(self._subscriptions, (str, os.PathLike)):
            with suppress(OSError):
                found = Path(self._subscriptions).stat()
                return found.st_mtime_ns, found.st_size, found.st_ino
        return None

    def _refresh_on_change(self) -> None:
        """Refresh the subscriptions whenever their source changes, until the pipeline ends; report errors."""
        while not self._ended.wait(self._refresh):
            state = self._state()
            if state is None or state == self._seen:
                continue
            try:
                self.refresh()
            except TocsinError as error:  # the stream goes on with the earlier subscriptions
                self._report(error)
            except Exception as fault:  # noqa: BLE001 - whatever a caller's function or a disk may do
                self._report(SparkError(f"the subscriptions cannot be read now: {fault}"))
            self._seen = state

    def _report_progress(
        self, query: StreamingQuery, on_progress: Callable[[BatchProgress], object] | None
    ) -> None:
        for one in self._observer.new(query):
            if on_progress is not None:
                on_progress(one)


def _writer(frame: DataFrame, sink: Sink) -> DataStreamWriter:
    """Return a stream writer for a sink: a function, a mapping with a format, a topic, or a folder of Parquet."""
    if callable(sink):
        return sink(frame)
    if not isinstance(sink, Mapping):
        path = os.fspath(sink)
        is_topic = path.startswith("kafka://")
        sink = {"format": "kafka", **kafka_options(path)} if is_topic else {"format": "parquet", "path": path}
    options = {str(key): value for key, value in sink.items() if key != "format"}
    if "format" not in sink:
        raise SparkError('a sink names its format: {"format": "kafka", …}')
    if sink["format"] == "kafka":
        frame = kafka_messages(frame)
    return frame.writeStream.format(sink["format"]).options(**options)


def _reason(fault: Exception) -> str:
    """Return the reason why Spark does not start a query, without Java's stack."""
    java = getattr(fault, "java_exception", None)
    return str(fault if java is None else java.getMessage()).strip().partition("\n")[0]


def _cause(fault: StreamingQueryException) -> str:
    """Return the cause of a failure, without Spark's plan and Java's stack."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    causes = [line for line in lines if "Error: " in line and not line.startswith(("at ", "File "))]
    return (causes or lines or ["no reason was given"])[-1 if causes else 0]
