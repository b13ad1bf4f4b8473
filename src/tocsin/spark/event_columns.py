"""The columns of a DataFrame of events: which hold what, and which of them a match needs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, TypedDict

from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions, types
from pyspark.sql.pandas.types import to_arrow_type

from tocsin.language.parsing.cursor import closest
from tocsin.model.errors import SparkError
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.match_worker import GENERATION, SHARD

CLOCK: Final = "__tocsin_time"  # the column with the time of the query, where events have none
_log = logging.getLogger("tocsin")
_TIMES: Final = (types.TimestampType, types.TimestampNTZType, types.DateType)
_PLAIN: Final = (
    types.IntegralType,
    types.BooleanType,
    types.StringType,
)  # no value of these types makes a row invalid
_OWN: Final = ("subscription", "event_id", "time", "generation", "values", "reason")
_PREFIX: Final = "__tocsin"  # of columns that Tocsin adds, and nobody else knows
STATEFUL_COLUMNS: Final = ("event_ids", "start", "old", "new")
"""The columns that notifications have besides, where there are sequences and views."""


class LayoutOptions(TypedDict, total=False):
    """The keywords of `match` that say where events stand in a DataFrame; see `resolve_layout`."""

    event_id: str
    time: str | None
    stream: str | None
    stream_column: str | None
    payload: str | None
    struct: str | None
    valid_until: str | None


def resolve_layout(
    events: DataFrame,
    *,
    event_id: str = "event_id",
    time: str | None = None,
    stream: str | None = None,
    stream_column: str | None = None,
    payload: str | None = None,
    struct: str | None = None,
    valid_until: str | None = None,
) -> EventLayout:
    """Return where the parts of an event stand in a DataFrame; raise `SparkError` if a column is missing or unfit."""
    _check_columns(events, event_id=event_id, stream_column=stream_column, payload=payload, struct=struct)
    if payload is not None and struct is not None:
        raise SparkError("an event is either a `payload` or a `struct`; give one of them")
    if stream is not None and stream_column is not None:
        raise SparkError("give either `stream`, for all events, or `stream_column`, for each one's own")
    texts = (types.StringType, types.BinaryType)
    _check_type(events, payload, texts, "the payload is JSON in a column of strings or binary; `{}` is {}")
    _check_type(events, struct, types.StructType, "`{}` is {}, not a struct")
    column, inside = _time_column(events, "time", time, payload)
    until, until_inside = _time_column(events, "valid_until", valid_until, payload)
    unfit = "a stream's name is a string; `{}` is {}: cast it to string"
    _check_type(events, stream_column, types.StringType, unfit)
    own = payload is None and struct is None
    return EventLayout(
        event_id,
        column or CLOCK,
        time is None,
        inside,
        _own_columns(events) if own else None,
        struct,
        payload,
        stream,
        stream_column,
        until,
        until_inside,
    )


def _time_column(
    events: DataFrame, what: str, name: str | None, payload: str | None
) -> tuple[str | None, str | None]:
    """Return the column of a time, or else the attribute of the payload that holds it; neither if there is no name."""
    if name is None:
        return None, None
    if payload is not None and name not in events.columns:
        return None, name
    _check_columns(events, **{what: name})
    remedy = f"convert it, for example with to_timestamp({name})"
    reason = f"`{{}}` is {{}}; a time is a timestamp, or an integer that counts ticks: {remedy}"
    _check_type(events, name, (types.IntegralType, *_TIMES), reason)
    return name, None


def _check_type(events: DataFrame, name: str | None, kinds: Any, reason: str) -> None:
    """Raise `SparkError` for a column of another type; the reason has places for its name and its type."""
    if name is not None and not isinstance(kind := events.schema[name].dataType, kinds):
        raise SparkError(reason.format(name, kind.simpleString()))


def _own_columns(events: DataFrame) -> tuple[str, ...]:
    """Return the columns that are attributes; a type that Spark cannot send to Python is no kind of value either."""
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


def _is_sendable(kind: types.DataType) -> bool:
    """Return whether Spark sends values of a type to Python."""
    try:
        to_arrow_type(kind, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
    except PySparkException:
        return False
    return True


def _check_columns(events: DataFrame, **named: str | None) -> None:
    """Raise `SparkError` unless each named column exists once and can be sent to a worker."""
    for own in (CLOCK, SHARD, GENERATION):
        if own in events.columns:
            raise SparkError(f"the events have a column `{own}`, a name of Tocsin's own; rename it")
    for what, name in named.items():
        if name is None:
            continue
        if name not in events.columns:
            known = tuple(column for column in events.columns if not column.startswith(_PREFIX))
            near = closest(name, known)
            hint = f"; did you mean `{near}`?" if near else ";"
            raise SparkError(
                f"the events have no column `{name}`, which `{what}` names{hint} there are: {', '.join(known)}"
            )
        if events.columns.count(name) > 1:
            raise SparkError(f"two columns of the events are called `{name}`; rename one of them")
        kind = events.schema[name].dataType
        if not _is_sendable(kind):
            text = kind.simpleString()
            raise SparkError(f"Spark does not hand {text} to Python: cast `{name}` to another type")


def check_keep(events: DataFrame, keep: Sequence[str], *, is_stateful: bool = False) -> None:
    """Raise `SparkError` unless these columns can be returned with notifications."""
    own = (*_OWN, *STATEFUL_COLUMNS) if is_stateful else _OWN
    if isinstance(keep, str):
        raise SparkError(f"`keep` lists columns: give [{keep!r}]")
    for name in keep:
        _check_columns(events, keep=name)
        if name.lower() in own or [one.lower() for one in keep].count(name.lower()) > 1:
            raise SparkError(f"a notification has a column `{name}` already; rename the one to keep")


def select_columns(
    events: DataFrame, layout: EventLayout, keep: Sequence[str]
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the columns that workers need, with the query's time where events have none, and their names.

    Columns get positional names: Spark reads dots in names as paths and ignores case.
    """
    parts = layout.event_id, layout.struct, layout.payload, layout.stream_column, layout.kept_until
    needed = [*(layout.columns or ()), *parts, *keep]
    if layout.time != CLOCK:
        needed.append(layout.time)
    names = list(dict.fromkeys(name for name in needed if name is not None))
    columns = [functions.col(f"c{events.columns.index(name)}") for name in names]
    if layout.time == CLOCK:
        # Spark writes a number into the code that it generates, and so would generate and compile it anew for each query and
        # micro-batch; a text it refers to.
        now = functions.unix_micros(functions.current_timestamp())
        columns.append(now.cast("string").alias(CLOCK))
        names.append(CLOCK)
    return with_positional_names(events).select(*columns), tuple(names)


def with_positional_names(events: DataFrame) -> DataFrame:
    """Return the events with the column names `c0`, `c1` and so on."""
    return events.toDF(*(f"c{position}" for position in range(len(events.columns))))


def prune_columns(events: DataFrame, layout: EventLayout, attributes: tuple[str, ...] | None) -> EventLayout:
    """Return a layout without columns that no subscription mentions and that cannot make a row invalid."""
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


def nullable(field: types.StructField) -> types.StructField:
    """Return a field that may be null."""
    return types.StructField(field.name, field.dataType, nullable=True)


def time_type_of(events: DataFrame, layout: EventLayout) -> types.DataType:
    """Return the type of the notifications' column `time`."""
    if layout.time_inside is not None:
        return types.LongType()
    is_ticks = layout.time != CLOCK and isinstance(events.schema[layout.time].dataType, types.IntegralType)
    return types.LongType() if is_ticks else types.TimestampType()
