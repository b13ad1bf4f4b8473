"""`match`: events and subscriptions in, notifications out, as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Unpack

from msgspec.structs import replace
from pyspark.sql import DataFrame, functions
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, DoubleType, LongType, StringType, StructField, StructType

from tocsin.index import Generation, IndexReader
from tocsin.index.storage import LocalStorage
from tocsin.model.errors import SparkError
from tocsin.model.ticks import Tick
from tocsin.spark import event_columns, match_worker
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.join import index_remaining, join_notifications
from tocsin.spark.session_kinds import is_speculative, local_tasks, micro_batch
from tocsin.spark.stateful.description import show_stages
from tocsin.spark.stateful.job import FILTERS_ONLY, PlannedShards, StatefulOptions
from tocsin.spark.stateful.shard_notes import PART
from tocsin.spark.stateful.stage import DEFAULT_SHARDS, history_shards, run_batch, run_stream, stateful_job
from tocsin.spark.subscription_sources import (
    Report,
    SubscriptionSource,
    Tables,
    Ticks,
    ensure_index,
    remaining_folder,
)
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
    late: bool = False,
    shards: int | None = None,
    generation: int | None = None,
    matcher: str | None = None,
    options: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    tables: Tables | None = None,
    ticks: Ticks | None = None,
    out_of_orderness: Tick = 0,
    state_shards: int | None = None,
    plan: str = "index",
    threads: int | None = None,
    explain: bool = False,
    on_error: Report | None = None,
    **layout: Unpack[event_columns.LayoutOptions],
) -> DataFrame:
    """Return the notifications of filters, sequences and views.

    Their columns are `subscription`, `event_id`, `time`, `generation`, those to keep, and where there are sequences or views also
    `event_ids`, `start`, `old` and `new`.

    `events` is a batch or a streaming DataFrame. `layout` says where events stand in it. `event_id` (`"event_id"`
    by default) is the column with ids. The other columns are attributes, unless one of them holds whole events:
    `payload` as JSON, string or binary, `struct` as a struct. `time` is a column of timestamps or ticks with the end
    of each event, or, with `payload`, an attribute of it; without it, events end at the time of the query or
    micro-batch, and there can be no sequences. `stream` is the stream of all events, `stream_column` a column with the stream
    of each. `valid_until` is a column, or an attribute of the payload, with the time until which a stream keeps an event for
    filters that are added later.

    `keep` lists columns of `events` to return with each notification; `values` adds the values that a subscription
    selects, as JSON; `faults` adds a row for each row that is no event, with a `reason` and no subscription, which is
    otherwise skipped; `late` adds such a row for each event of a stream that came too late for sequences.

    `subscriptions` is an index or its folder, or any `SubscriptionSource`, of which an index is built in `folder`,
    with `shards`, a `matcher` and its `options`, such as statistics, with the keys of `tables` that views read and the `ticks` of
    streams; invalid subscriptions go to `on_error`, or are logged. A stream follows its index: each micro-batch is matched with
    the generation that was current at its first run, also when it is run again; so is a batch of `foreachBatch`.
    `generation` pins one.

    A history is processed in the order of the events' ends. A stream processes each micro-batch in that order; an event is late
    for sequences if one that ends more than `out_of_orderness` after it came with an earlier micro-batch, and those that are
    not so far behind wait. `state_shards` is the number of shards that sequences and views are spread over; a stream's stays the
    same as long as its checkpoint. A stream that is to follow its index to its first sequence or view needs it from the start.

    `threads` is the number of threads that a worker matches with; by default, as many as cores are free for its task.
    `explain` prints the stages of the plan, the shards, and what travels between them.

    `plan="join"` matches by an equi-join in Spark SQL, without Python workers: subscriptions become hashed points, events
    their candidate coordinates. Subscriptions that SQL cannot decide exactly are matched by an index as well, in
    `folder` or a temporary one. A stream is then pinned to the generation that was current when it was planned. There can be
    no sequences and views.
    """
    if plan not in PLANS:
        raise SparkError(f"there is no plan `{plan}`; there are: {', '.join(PLANS)}")
    if plan == "index":
        ensure_worker_python(events.sparkSession)  # before an index is built for nothing
    check_threads(threads)
    stateful = StatefulOptions(state_shards, out_of_orderness, late)
    stateful.check()
    index = ensure_index(
        subscriptions,
        folder=folder,
        shards=shards,
        matcher=matcher,
        options=options,
        tables=tables,
        ticks=ticks,
        is_local=has_our_files(events.sparkSession),
        on_error=on_error,
    )
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
            stateful=stateful,
            explain=explain,
        )
    event_columns.check_keep(events, keep)
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    _refuse_stateful_join(reader, number, resolved, stateful)
    if explain:
        show_stages(reader.generation(number), None, is_stream=events.isStreaming, plan=plan)
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
    stateful: StatefulOptions = FILTERS_ONLY,
    explain: bool = False,
) -> DataFrame:
    """Return the notifications of events with a layout, by an existing index.

    Columns are pruned by `attributes`, or by the attributes that the index mentions. With `timed`, each record batch adds a
    row without a subscription, with the seconds that it took in the column `match_worker.SECONDS`.
    """
    ensure_worker_python(events.sparkSession)
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    contents = reader.generation(number)
    is_stateful = match_worker.has_stateful(contents) or stateful.is_asked_for(
        layout, is_stream=events.isStreaming
    )
    event_columns.check_keep(events, keep, is_stateful=is_stateful)
    if events.isStreaming and not isinstance(reader.generations.storage, LocalStorage):
        _refuse_speculation(events)
    if not events.isStreaming and not is_stateful:
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
    if is_stateful:
        match_all = _match_stream if events.isStreaming else _match_history
        return match_all(
            events, prepared, reader, job, options=stateful, time_type=time_type, explain=explain
        )
    if explain:
        show_stages(contents, None, is_stream=events.isStreaming)
    return _match_filters(prepared, contents, job, _notification_schema(events, job, time_type))


def _match_filters(
    prepared: DataFrame, contents: Generation, job: match_worker.MatchJob, schema: StructType
) -> DataFrame:
    """Return the notifications of filters: events are matched where they are, or sent to the shards that may match them."""
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


def _match_stream(
    events: DataFrame,
    prepared: DataFrame,
    reader: IndexReader,
    job: match_worker.MatchJob,
    *,
    options: StatefulOptions,
    time_type: DataType,
    explain: bool,
) -> DataFrame:
    """Return the notifications of a stream: one stage matches filters and routes events, the next has the shards."""
    schema = _notification_schema(events, job, time_type, is_stateful=True, late=options.late)
    shards = options.shards or DEFAULT_SHARDS
    stateful = stateful_job(job, schema, shards=shards, options=options, is_stream=True)
    planned = stateful.planned(reader, job.generation)
    _require_times(job.layout, planned)
    if explain:
        show_stages(reader.generation(job.generation), planned, is_stream=True)
    return run_stream(prepared, stateful, schema)


def _match_history(
    events: DataFrame,
    prepared: DataFrame,
    reader: IndexReader,
    job: match_worker.MatchJob,
    *,
    options: StatefulOptions,
    time_type: DataType,
    explain: bool,
) -> DataFrame:
    """Return the notifications of a history: of filters by the index, of sequences and views in the order of events."""
    schema = _notification_schema(events, job, time_type, is_stateful=True, late=options.late)
    stateful = stateful_job(
        job, schema, shards=options.shards or history_shards(events), options=options, is_stream=False
    )
    contents = reader.generation(job.generation)
    planned = stateful.planned(reader, job.generation)
    _require_times(job.layout, planned)
    if explain:
        show_stages(contents, planned, is_stream=False)
    filtered = _match_filters(
        prepared, contents, replace(job, with_stateful=True), _notification_schema(events, job, time_type)
    )
    own = functions.col("event_id").cast("string")
    is_note = functions.col("subscription").isNotNull()
    more = {
        "event_ids": functions.when(is_note, functions.array(own)),
        "start": functions.when(is_note, functions.col("time")),
    }
    columns = [
        more.get(
            field.name,
            functions.col(f"`{field.name}`") if field.name in filtered.columns else functions.lit(None),
        )
        .cast(field.dataType)
        .alias(field.name)
        for field in schema.fields
    ]
    return filtered.select(*columns).union(run_batch(prepared, stateful, job.generation, schema))


def _require_times(layout: EventLayout, planned: PlannedShards) -> None:
    """Raise `SparkError` if there are sequences, and events have no time."""
    if planned.plan.reads and layout.is_clock:
        raise SparkError(
            "sequences depend on when events happened: name the column with the end of each event with `time` (`--time-field`)"
            + (
                ", or the attribute of the payload (`time='time'` for CloudEvents)"
                if layout.payload is not None
                else ""
            )
        )


def _refuse_stateful_join(
    reader: IndexReader, generation: int, layout: EventLayout, stateful: StatefulOptions
) -> None:
    """Raise `SparkError` if something needs a stage that a join does not have."""
    if match_worker.has_stateful(reader.generation(generation)) or stateful.is_asked_for(
        layout, is_stream=True
    ):
        raise SparkError(
            "plan='join' matches filters alone, without state; leave `plan` out for sequences, views, `state_shards` and "
            "`valid_until`"
        )


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


def _notification_schema(
    events: DataFrame,
    job: match_worker.MatchJob,
    time_type: DataType,
    *,
    is_stateful: bool = False,
    late: bool = False,
) -> StructType:
    """Return the schema of the notifications that a job writes."""
    has_reason = job.faults or late
    fields = [
        StructField("subscription", StringType(), nullable=has_reason or job.timed),
        StructField("event_id", events.schema[job.layout.event_id].dataType, nullable=True),
        StructField("time", time_type),
        StructField("generation", LongType()),
    ]
    if is_stateful:
        own = ArrayType(StringType()), time_type, StringType(), StringType()
        fields += map(StructField, event_columns.STATEFUL_COLUMNS, own)
    if job.values:
        fields.append(StructField("values", StringType()))
    fields += [event_columns.nullable(events.schema[name]) for name in job.keep]
    if has_reason:
        fields.append(StructField("reason", StringType()))
    if job.timed:
        fields.append(StructField(match_worker.SECONDS, DoubleType()))
        if is_stateful:
            fields.append(StructField(PART, StringType()))
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
