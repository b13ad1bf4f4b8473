"""`match`: events and subscriptions in, notifications out, as DataFrames."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from pyspark import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tocsin.index import IndexReader
from tocsin.index.storage import LocalStorage
from tocsin.language.parsing.cursor import closest
from tocsin.model.errors import SparkError
from tocsin.spark.layout import Layout
from tocsin.spark.subscriptions import Report, SubscriptionSource, index_of
from tocsin.spark.worker import BATCH, GENERATION, QUERY, SHARD, Job, notifications, routed
from tocsin.spark.worker import dead_letters as dead_letters_of

__all__ = ["dead_letters", "layout_of", "match", "matched"]

_log = logging.getLogger("tocsin")
_CLOCK: Final = "__tocsin_time"
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_TIMES: Final = (TimestampType, TimestampNTZType, DateType)
_PLAIN: Final = (*_WHOLE, BooleanType, StringType)  # nothing of these types keeps a row from being an event
_OWN: Final = ("subscription", "event_id", "time", "generation", "values", "reason")


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
    """
    return matched(
        events,
        index_of(
            subscriptions,
            folder=folder,
            shards=shards,
            matcher=matcher,
            options=options,
            is_local=_is_local(events),
            on_error=on_error,
        ),
        layout_of(
            events,
            event_id=event_id,
            time=time,
            stream=stream,
            stream_column=stream_column,
            payload=payload,
            struct=struct,
        ),
        keep=keep,
        values=values,
        faults=faults,
        generation=generation,
    )


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
) -> DataFrame:
    """Return the notifications of events that are laid out so, by the index that is there."""
    reader = IndexReader(index)
    number = _current(events, reader) if generation is None else generation
    made_of = reader.generation(number)
    _check_kept(events, keep)
    if events.isStreaming and not isinstance(reader.generations.storage, LocalStorage):
        _refuse_speculation(events)
    if not events.isStreaming:
        layout = _pruned(events, layout, made_of.attributes)
    prepared, names = _prepared(events, layout, keep)
    time_type = _time_type(events, layout)
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
    _check_kept(events, keep)
    prepared, names = _prepared(events, layout, keep)
    job = Job("", 0, True, layout, tuple(keep), names=names)
    fields = [
        StructField("event_id", events.schema[layout.event_id].dataType),
        StructField("reason", StringType()),
    ]
    kept = [_nullable(events.schema[name]) for name in keep]
    return prepared.mapInArrow(lambda batches: dead_letters_of(job, batches), StructType([*fields, *kept]))


def layout_of(
    events: DataFrame,
    *,
    event_id: str = "event_id",
    time: str | None = None,
    stream: str | None = None,
    stream_column: str | None = None,
    payload: str | None = None,
    struct: str | None = None,
) -> Layout:
    """Return where the parts of an event stand in a DataFrame; raise `SparkError` if they cannot stand there."""
    _check_columns(events, event_id=event_id, stream_column=stream_column, payload=payload, struct=struct)
    if payload is not None and struct is not None:
        raise SparkError("an event is either a `payload` or a `struct`; give one of them")
    if stream is not None and stream_column is not None:
        raise SparkError("give either `stream`, for all events, or `stream_column`, for each one's own")
    if payload is not None and not isinstance(events.schema[payload].dataType, (StringType, BinaryType)):
        kind = events.schema[payload].dataType.simpleString()
        raise SparkError(f"the payload is JSON in a column of strings or binary; `{payload}` is {kind}")
    if struct is not None and not isinstance(events.schema[struct].dataType, StructType):
        kind = events.schema[struct].dataType.simpleString()
        raise SparkError(f"`{struct}` is {kind}, not a struct")
    inside = time if time is not None and payload is not None and time not in events.columns else None
    if time is not None and inside is None:
        _check_columns(events, time=time)
        typed = events.schema[time].dataType
        if not isinstance(typed, (*_WHOLE, *_TIMES)):
            raise SparkError(
                f"`{time}` is {typed.simpleString()}; a time is a timestamp, or an integer that counts ticks: convert it, "
                f"for example with to_timestamp({time})"
            )
    if stream_column is not None and not isinstance(events.schema[stream_column].dataType, StringType):
        kind = events.schema[stream_column].dataType.simpleString()
        raise SparkError(f"a stream's name is a string; `{stream_column}` is {kind}: cast it to string")
    own = payload is None and struct is None
    return Layout(
        event_id,
        _CLOCK if time is None or inside is not None else time,
        time is None,
        inside,
        _own_columns(events) if own else None,
        struct,
        payload,
        stream,
        stream_column,
    )


def _own_columns(events: DataFrame) -> tuple[str, ...]:
    """Return the columns that are attributes; one that cannot be sent to a worker is no kind of value either."""
    names = []
    for name, field in zip(events.columns, events.schema.fields, strict=True):
        if events.columns.count(name) > 1:
            raise SparkError(f"two columns of the events are called `{name}`; rename one of them")
        if _is_sendable(field.dataType):
            names.append(name)
        else:
            kind = field.dataType.simpleString()
            _log.warning("column `%s` is left out: Spark does not hand %s to Python", name, kind)
    return tuple(names)


def _is_sendable(kind: DataType) -> bool:
    """Tell whether Spark hands values of a type to Python."""
    try:
        to_arrow_type(kind, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
    except PySparkException:
        return False
    return True


def _check_columns(events: DataFrame, **named: str | None) -> None:
    """Raise `SparkError` unless the named columns are there, once each, and can be sent to a worker."""
    for own in (_CLOCK, SHARD, GENERATION):
        if own in events.columns:
            raise SparkError(f"the events have a column `{own}`, a name of Tocsin's own; rename it")
    for what, name in named.items():
        if name is None:
            continue
        if name not in events.columns:
            near = closest(name, tuple(events.columns))
            hint = f"; did you mean `{near}`?" if near else ";"
            raise SparkError(
                f"the events have no column `{name}`, which `{what}` names{hint} there are: {', '.join(events.columns)}"
            )
        if events.columns.count(name) > 1:
            raise SparkError(f"two columns of the events are called `{name}`; rename one of them")
        kind = events.schema[name].dataType
        if not _is_sendable(kind):
            raise SparkError(
                f"Spark does not hand {kind.simpleString()} to Python: cast `{name}` to another type"
            )


def _check_kept(events: DataFrame, keep: Sequence[str]) -> None:
    if isinstance(keep, str):
        raise SparkError(f"`keep` lists columns: give [{keep!r}]")
    for name in keep:
        _check_columns(events, keep=name)
        if name.lower() in _OWN or [one.lower() for one in keep].count(name.lower()) > 1:
            raise SparkError(f"a notification has a column `{name}` already; rename the one to keep")


def _prepared(events: DataFrame, layout: Layout, keep: Sequence[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Return only the columns that workers need, with the time where the events have none, and their names.

    Columns are called by their places, since Spark takes dots in names for paths and minds no upper case.
    """
    needed = [
        *(layout.columns or ()),
        layout.event_id,
        layout.struct,
        layout.payload,
        layout.stream_column,
        *keep,
    ]
    if layout.time != _CLOCK:
        needed.append(layout.time)
    names = list(dict.fromkeys(name for name in needed if name is not None))
    columns = [functions.col(f"c{events.columns.index(name)}") for name in names]
    if layout.time == _CLOCK:
        columns.append(functions.current_timestamp().alias(_CLOCK))
        names.append(_CLOCK)
    by_place = events.toDF(*(f"c{place}" for place in range(len(events.columns))))
    return by_place.select(*columns), tuple(names)


def _pruned(events: DataFrame, layout: Layout, attributes: tuple[str, ...] | None) -> Layout:
    """Return a layout without the columns that no subscription speaks of, and that cannot make a row faulty."""
    if layout.columns is None or attributes is None:
        return layout
    named = {attribute.partition(".")[0] for attribute in attributes} | set(attributes)
    kept = tuple(
        name
        for name in layout.columns
        if name in named
        or not isinstance(events.schema[name].dataType, _PLAIN)
        or name.startswith(("$", "_"))
        or name == "specversion"
    )
    return replace(layout, columns=kept or (layout.event_id,))


def _told(events: DataFrame, job: Job, time_type: DataType) -> StructType:
    fields = [
        StructField("subscription", StringType(), nullable=job.faults),
        StructField("event_id", events.schema[job.layout.event_id].dataType),
        StructField("time", time_type),
        StructField("generation", LongType()),
    ]
    if job.values:
        fields.append(StructField("values", StringType()))
    fields += [_nullable(events.schema[name]) for name in job.keep]
    if job.faults:
        fields.append(StructField("reason", StringType()))
    return StructType(fields)


def _nullable(field: StructField) -> StructField:
    return StructField(field.name, field.dataType, nullable=True)


def _time_type(events: DataFrame, layout: Layout) -> DataType:
    if layout.time_inside is not None:
        return LongType()
    is_ticks = layout.time != _CLOCK and isinstance(events.schema[layout.time].dataType, _WHOLE)
    return LongType() if is_ticks else TimestampType()


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
