"""`backtest`: the notifications that a subscription would have sent over a history of events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import TimestampType

from tocsin.engine.backtest import EVERY, Backtest, Day
from tocsin.language.check import QuerySource, read_query
from tocsin.model.errors import SparkError, TocsinError
from tocsin.spark.matching import match


def backtest(
    text: QuerySource | Mapping[str, QuerySource],
    history: DataFrame,
    *,
    time: str,
    event_id: str | None = None,
    **options: Any,
) -> Backtest:
    """Return the notifications that a subscription, or each of several by id, would have sent over a history.

    `time` names the column of timestamps that days are counted by; ticks are taken for microseconds. Further options
    are those of `match`: `payload`, `struct`, `stream`, and so on.
    """
    if history.isStreaming:
        raise SparkError("a stream has no end: give `backtest` a batch DataFrame")
    queries = _queries(text)
    if event_id is None:  # counting needs none
        event_id = "__tocsin_row"
        history = history.withColumn(event_id, functions.monotonically_increasing_id())
    watched = {**queries, EVERY: "true"}
    options |= {"event_id": event_id, "time": time, "faults": True, "on_error": _refuse}
    notifications = match(history, watched, **options)
    ticks = not isinstance(notifications.schema["time"].dataType, TimestampType)
    moment = functions.timestamp_micros("time") if ticks else functions.col("time")
    is_fault = functions.col("subscription").isNull()
    is_dated = functions.year(moment).between(date.min.year, date.max.year)
    day = functions.when(~is_fault & is_dated, functions.to_date(moment)).alias("day")
    days: dict[date, dict[str, int]] = {}
    faults = 0
    for row in notifications.groupBy(day, "subscription").count().collect():
        if row["day"] is None:
            faults += row["count"] if row["subscription"] in (None, EVERY) else 0
        else:
            days.setdefault(row["day"], {})[row["subscription"]] = row["count"]
    return Backtest(
        tuple(Day(one, days[one].pop(EVERY, 0), days[one]) for one in sorted(days)), tuple(queries), faults
    )


def _queries(text: QuerySource | Mapping[str, QuerySource]) -> dict[str, Any]:
    """Return the subscriptions by id; the JSON form of a query is a mapping, too."""
    if not isinstance(text, Mapping):
        return {"backtest": text}
    try:
        read_query(text)
    except TocsinError:
        return dict(text)
    return {"backtest": text}


def _refuse(error: TocsinError) -> None:
    raise error
