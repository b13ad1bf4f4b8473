"""`match`: events and subscriptions in, notifications out, as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark import Accumulator
from pyspark.sql import DataFrame, functions
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from tocsin.index import IndexReader
from tocsin.index.storage import LocalStorage
from tocsin.model.errors import SparkError
from tocsin.spark.frames import check_kept, layout_of, nullable, pruned, sent_columns, time_type_of
from tocsin.spark.join import join_notifications, rest_index
from tocsin.spark.layout import Layout
from tocsin.spark.subscriptions import Report, SubscriptionSource, index_of, rest_folder
from tocsin.spark.worker import BATCH, GENERATION, QUERY, SHARD, Job, notifications, routed
from tocsin.spark.worker import dead_letters as dead_letters_of

PLANS: Final = ("index", "join")
"""How `match` goes about it: by an index that workers open, or by a join in Spark SQL."""


def match(
    events: DataFrame,
    subscriptions: SubscriptionSource,
    *,
    event_id: str = "event_id",
    time: str | None = None,
    stream: str | None = None,
    stream_column: str | None = None,
    payload: str | None = None,
    struct: str | None = None,
    keep: Sequence[str] = (),
    values: bool = False,
    faults: bool = False,
    shards: int | None = None,
    generation: int | None = None,
    matcher: str | None = None,
    options: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    plan: str = "index",
    on_error: Report | None = None,
) -> DataFrame:
    """Return who is to be told of which events: `subscription`, `event_id`, `time`, `generation`, and what to keep.

    `events` is a batch or a streaming DataFrame. Its columns are the events' attributes, unless one of them is named
    that holds a whole event: `payload` as JSON, text or binary, `struct` as a struct. `time` is a column, of
    timestamps or of ticks, that says when an event ended, or, with `payload`, an attribute of it; without it, the
    time of the query or of the micro-batch. `stream` is the stream of all events, `stream_column` names a column
    with each one's own. `keep` lists columns of `events` to be returned with each notification; `values` adds what
    a subscription selects, as JSON; `faults` adds a row for each that is no event, with a `reason` and no
    subscription, where otherwise such a row is passed over.

    `subscriptions` is an index or its folder, or whatever one can be made of (see `SubscriptionSource`): that is
    done in `folder`, with `shards`, and with a `matcher` and its `options`, such as statistics; faulty ones are told
    to `on_error` or logged. A stream that matches with an index follows it: each micro-batch is matched with the
    generation that was current when it was first run, also when it is run again; so is a batch that `foreachBatch`
    gives. `generation` holds on to one.

    `plan="join"` matches by an equi-join in Spark SQL, without Python workers: subscriptions become hashed points, events
    their candidate coordinates. Those that SQL cannot decide exactly are matched by an index besides, in `folder` or a
    temporary one. A stream then holds on to the generation that was current when it was planned.
    """
    if plan not in PLANS:
        raise SparkError(f"there is no plan `{plan}`; there are: {', '.join(PLANS)}")
    index = index_of(
        subscriptions,
        folder=folder,
        shards=shards,
        matcher=matcher,
        options=options,
        is_local=_is_local(events),
        on_error=on_error,
    )
    layout = layout_of(
        events,
        event_id=event_id,
        time=time,
        stream=stream,
        stream_column=stream_column,
        payload=payload,
        struct=struct,
    )
    if plan == "index":
        return matched(events, index, layout, keep=keep, values=values, faults=faults, generation=generation)
    check_kept(events, keep)
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    joined = join_notifications(events, reader, number, layout, keep=keep, values=values, faults=faults)
    if not joined.left and not faults:
        return joined.notifications
    rest, newest = rest_index(joined.left, rest_folder(folder, is_local=_is_local(events)), matcher, options)
    others = matched(
        events,
        rest,
        layout,
        keep=keep,
        values=values,
        faults=faults,
        generation=newest,
        attributes=reader.generation(number).attributes,
    )
    return joined.notifications.union(others.withColumn("generation", functions.lit(number)))


def matched(
    events: DataFrame,
    index: str,
    layout: Layout,
    *,
    keep: Sequence[str] = (),
    values: bool = False,
    faults: bool = False,
    generation: int | None = None,
    seconds: Accumulator[dict[int, float]] | None = None,
    attributes: tuple[str, ...] | None = None,
) -> DataFrame:
    """Return the notifications of events that are laid out so, by the index that is there.

    `attributes` are those by which columns are left out, if not those that the index speaks of.
    """
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    made_of = reader.generation(number)
    check_kept(events, keep)
    if events.isStreaming and not isinstance(reader.generations.storage, LocalStorage):
        _refuse_speculation(events)
    if not events.isStreaming:
        layout = pruned(events, layout, attributes or made_of.attributes)
    prepared, names = sent_columns(events, layout, keep)
    time_type = time_type_of(events, layout)
    job = Job(
        index,
        number,
        generation is not None or not events.isStreaming,
        layout,
        tuple(keep),
        values,
        faults,
        to_arrow_type(time_type, timezone="UTC"),
        seconds,
        names,
    )
    told = _told(events, job, time_type)
    if len(made_of.shards) == 1:
        return prepared.mapInArrow(lambda batches: notifications(job, batches), told)
    sent = StructType(
        [*prepared.schema.fields, StructField(SHARD, LongType()), StructField(GENERATION, LongType())]
    )
    split = prepared.mapInArrow(lambda batches: routed(job, batches), sent)
    by_shard = split.repartitionById(len(made_of.shards), functions.col(SHARD).cast("int"))
    return by_shard.mapInArrow(lambda batches: notifications(job, batches, is_routed=True), told)


def dead_letters(
    events: DataFrame,
    *,
    event_id: str = "event_id",
    time: str | None = None,
    stream: str | None = None,
    stream_column: str | None = None,
    payload: str | None = None,
    struct: str | None = None,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Return the rows that are no events and match nothing: `event_id`, the `reason`, and the columns to keep."""
    layout = layout_of(
        events,
        event_id=event_id,
        time=time,
        stream=stream,
        stream_column=stream_column,
        payload=payload,
        struct=struct,
    )
    check_kept(events, keep)
    prepared, names = sent_columns(events, layout, keep)
    job = Job("", 0, True, layout, tuple(keep), names=names)
    fields = [
        StructField("event_id", events.schema[layout.event_id].dataType),
        StructField("reason", StringType()),
    ]
    kept = [nullable(events.schema[name]) for name in keep]
    return prepared.mapInArrow(lambda batches: dead_letters_of(job, batches), StructType([*fields, *kept]))


def _told(events: DataFrame, job: Job, time_type: DataType) -> StructType:
    fields = [
        StructField("subscription", StringType(), nullable=job.faults),
        StructField("event_id", events.schema[job.layout.event_id].dataType),
        StructField("time", time_type),
        StructField("generation", LongType()),
    ]
    if job.values:
        fields.append(StructField("values", StringType()))
    fields += [nullable(events.schema[name]) for name in job.keep]
    if job.faults:
        fields.append(StructField("reason", StringType()))
    return StructType(fields)


def _current(events: DataFrame, reader: IndexReader) -> int:
    """Return the newest generation, or in `foreachBatch` that of the micro-batch, also when it is run again."""
    number = reader.current()
    context = events.sparkSession.sparkContext
    query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
    if events.isStreaming or query is None or batch is None:
        return number
    return reader.generations.of_batch(query, int(batch)) or number


def _is_local(events: DataFrame) -> bool:
    return str(events.sparkSession.sparkContext.master).startswith("local")


def _refuse_speculation(events: DataFrame) -> None:
    if events.sparkSession.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise SparkError(
            "with an index in an object store, the first task of a micro-batch decides on its generation, and must not "
            "run twice at once: set spark.speculation to false"
        )
