"""`match`: events and subscriptions in, notifications out, as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Unpack

from pyspark.sql import DataFrame, functions
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, DoubleType, LongType, StringType, StructField, StructType

from tocsin.index import IndexReader
from tocsin.index.storage import LocalStorage
from tocsin.model.errors import SparkError
from tocsin.spark import event_columns, match_worker
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.join import index_remaining, join_notifications
from tocsin.spark.session_kinds import is_speculative, local_tasks, micro_batch
from tocsin.spark.subscription_sources import Report, SubscriptionSource, ensure_index, remaining_folder
from tocsin.spark.worker_python import ensure_worker_python, has_our_files

PLANS: Final = ("index", "join")
"""The plans of `match`: an index that workers open, or a join in Spark SQL."""


def match(
    events: DataFrame,
    subscriptions: SubscriptionSource,
    *,
    keep: Sequence[str] = (),
    values: bool = False,
    faults: bool = False,
    shards: int | None = None,
    generation: int | None = None,
    matcher: str | None = None,
    options: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    plan: str = "index",
    threads: int | None = None,
    on_error: Report | None = None,
    **layout: Unpack[event_columns.LayoutOptions],
) -> DataFrame:
    """Return the notifications: `subscription`, `event_id`, `time`, `generation`, and the columns to keep.

    `events` is a batch or a streaming DataFrame. `layout` says where events stand in it. `event_id` (`"event_id"`
    by default) is the column with ids. The other columns are attributes, unless one of them holds whole events:
    `payload` as JSON, string or binary, `struct` as a struct. `time` is a column of timestamps or ticks with the end
    of each event, or, with `payload`, an attribute of it; without it, events end at the time of the query or
    micro-batch. `stream` is the stream of all events, `stream_column` a column with the stream of each.

    `keep` lists columns of `events` to return with each notification; `values` adds the values that a subscription
    selects, as JSON; `faults` adds a row for each row that is no event, with a `reason` and no subscription, which is
    otherwise skipped.

    `subscriptions` is an index or its folder, or any `SubscriptionSource`, of which an index is built in `folder`,
    with `shards`, a `matcher` and its `options`, such as statistics; invalid subscriptions go to `on_error`, or are
    logged. A stream follows its index: each micro-batch is matched with the generation that was current at its first
    run, also when it is run again; so is a batch of `foreachBatch`. `generation` pins one.

    `threads` is the number of threads that a worker matches with; by default, as many as cores are free for its task.

    `plan="join"` matches by an equi-join in Spark SQL, without Python workers: subscriptions become hashed points, events
    their candidate coordinates. Subscriptions that SQL cannot decide exactly are matched by an index as well, in
    `folder` or a temporary one. A stream is then pinned to the generation that was current when it was planned.
    """
    if plan not in PLANS:
        raise SparkError(f"there is no plan `{plan}`; there are: {', '.join(PLANS)}")
    if plan == "index":
        ensure_worker_python(events.sparkSession)  # before an index is built for nothing
    index = ensure_index(
        subscriptions,
        folder=folder,
        shards=shards,
        matcher=matcher,
        options=options,
        is_local=has_our_files(events.sparkSession),
        on_error=on_error,
    )
    check_threads(threads)
    resolved = event_columns.resolve_layout(events, **layout)
    if plan == "index":
        return match_with_index(
            events,
            index,
            resolved,
            keep=keep,
            values=values,
            faults=faults,
            generation=generation,
            threads=threads,
        )
    event_columns.check_keep(events, keep)
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    match_worker.require_filters(reader.generation(number), index)
    joined = join_notifications(events, reader, number, resolved, keep=keep, values=values, faults=faults)
    if not joined.remaining and not faults:
        return joined.notifications
    rest, newest = index_remaining(
        joined.remaining,
        remaining_folder(folder, is_local=has_our_files(events.sparkSession)),
        matcher,
        options,
    )
    others = match_with_index(
        events,
        rest,
        resolved,
        keep=keep,
        values=values,
        faults=faults,
        generation=newest,
        attributes=reader.generation(number).attributes,
        threads=threads,
    )
    return joined.notifications.union(others.withColumn("generation", functions.lit(number)))


def match_with_index(
    events: DataFrame,
    index: str,
    layout: EventLayout,
    *,
    keep: Sequence[str] = (),
    values: bool = False,
    faults: bool = False,
    generation: int | None = None,
    timed: bool = False,
    attributes: tuple[str, ...] | None = None,
    threads: int | None = None,
) -> DataFrame:
    """Return the notifications of events with a layout, by an existing index.

    Columns are pruned by `attributes`, or by the attributes that the index mentions. With `timed`, each record batch adds a
    row without a subscription, with the seconds that it took in the column `match_worker.SECONDS`.
    """
    ensure_worker_python(events.sparkSession)
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    contents = reader.generation(number)
    match_worker.require_filters(contents, index)
    event_columns.check_keep(events, keep)
    if events.isStreaming and not isinstance(reader.generations.storage, LocalStorage):
        _refuse_speculation(events)
    if not events.isStreaming:
        layout = event_columns.prune_columns(events, layout, attributes or contents.attributes)
    prepared, names = event_columns.select_columns(events, layout, keep)
    time_type = event_columns.time_type_of(events, layout)
    job = match_worker.MatchJob(
        index,
        number,
        generation is not None or not events.isStreaming,
        layout,
        tuple(keep),
        values,
        faults,
        to_arrow_type(time_type, timezone="UTC"),
        timed,
        threads,
        local_tasks(events.sparkSession),
        names,
    )
    schema = _notification_schema(events, job, time_type)
    if len(contents.shards) == 1:
        return prepared.mapInArrow(lambda batches: match_worker.match_batches(job, batches), schema)
    routed = StructType(
        [
            *prepared.schema.fields,
            StructField(match_worker.SHARD, LongType()),
            StructField(match_worker.GENERATION, LongType()),
        ]
    )
    split = prepared.mapInArrow(lambda batches: match_worker.route_batches(job, batches), routed)
    by_shard = split.repartitionById(len(contents.shards), functions.col(match_worker.SHARD).cast("int"))
    match_routed = partial(match_worker.match_batches, job, is_routed=True)
    return by_shard.mapInArrow(match_routed, schema)


def dead_letters(
    events: DataFrame, *, keep: Sequence[str] = (), **layout: Unpack[event_columns.LayoutOptions]
) -> DataFrame:
    """Return the rows that are no events: `event_id`, the `reason`, and the columns to keep; `layout` is that of `match`."""
    ensure_worker_python(events.sparkSession)
    resolved = event_columns.resolve_layout(events, **layout)
    event_columns.check_keep(events, keep)
    prepared, names = event_columns.select_columns(events, resolved, keep)
    job = match_worker.MatchJob("", 0, True, resolved, tuple(keep), names=names)
    id_type = events.schema[resolved.event_id].dataType
    fields = [StructField("event_id", id_type), StructField("reason", StringType())]
    kept = [event_columns.nullable(events.schema[name]) for name in keep]
    return prepared.mapInArrow(
        lambda batches: match_worker.find_dead_letters(job, batches), StructType([*fields, *kept])
    )


def check_threads(threads: Any) -> None:
    """Raise `SparkError` unless workers can match with so many threads."""
    if threads is not None and (type(threads) is not int or threads < 1):
        raise SparkError(f"`threads` is the number of threads of each worker, 1 or more, not {threads!r}")


def _notification_schema(events: DataFrame, job: match_worker.MatchJob, time_type: DataType) -> StructType:
    """Return the schema of the notifications that a job writes."""
    fields = [
        StructField("subscription", StringType(), nullable=job.faults or job.timed),
        StructField("event_id", events.schema[job.layout.event_id].dataType),
        StructField("time", time_type),
        StructField("generation", LongType()),
    ]
    if job.values:
        fields.append(StructField("values", StringType()))
    fields += [event_columns.nullable(events.schema[name]) for name in job.keep]
    if job.faults:
        fields.append(StructField("reason", StringType()))
    if job.timed:
        fields.append(StructField(match_worker.SECONDS, DoubleType()))
    return StructType(fields)


def _current(events: DataFrame, reader: IndexReader) -> int:
    """Return the newest generation, or in `foreachBatch` the generation of the micro-batch."""
    number = reader.current()
    batch = None if events.isStreaming else micro_batch(events.sparkSession)
    return number if batch is None else reader.generations.of_batch(*batch) or number


def _refuse_speculation(events: DataFrame) -> None:
    if is_speculative(events.sparkSession):
        raise SparkError(
            "with an index in an object store, the first task of a micro-batch decides on its generation, and must not "
            "run twice at once: set spark.speculation to false"
        )
