"""`backtest`: the notifications that a subscription would have sent over a history of events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from msgspec import Struct
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import TimestampType

from tocsin.language.check import QuerySource, read_query
from tocsin.model.errors import SparkError, TocsinError
from tocsin.spark.matching import match

_EVERY: Final = "__tocsin_every"  # a subscription to all events, which counts them


class Day(Struct, frozen=True):
    """The events of a day, and the notifications that each subscription would have sent."""

    day: date
    events: int
    notifications: Mapping[str, int]

    @property
    def total(self) -> int:
        """Return how many notifications there would have been in all."""
        return sum(self.notifications.values())


class Backtest(Struct, frozen=True):
    """The notifications that subscriptions would have sent, by day; days without events are left out.

    `faults` counts the rows that are no events, or whose time is outside the calendar.
    """

    days: tuple[Day, ...]
    subscriptions: tuple[str, ...]
    faults: int

    @property
    def events(self) -> int:
        """Return how many events there were."""
        return sum(day.events for day in self.days)

    @property
    def total(self) -> int:
        """Return how many notifications there would have been."""
        return sum(day.total for day in self.days)

    @property
    def busiest(self) -> Day | None:
        """Return the day with most notifications."""
        return max(self.days, key=lambda day: day.total, default=None)

    def counts(self) -> dict[str, int]:
        """Return how many notifications each subscription would have sent."""
        return {name: sum(day.notifications.get(name, 0) for day in self.days) for name in self.subscriptions}

    def __str__(self) -> str:
        lines = [f"{'day':<12}{'events':>12}{'notifications':>16}"]
        most = max((day.total for day in self.days), default=0) or 1
        for day in self.days:
            bar = "▇" * (-(-24 * day.total // most))
            lines.append(f"{day.day.isoformat():<12}{day.events:>12,}{day.total:>16,}  {bar}".rstrip())
        per_day = self.total / max(len(self.days), 1)
        left_out = f"; {self.faults:,} rows are no events" if self.faults else ""
        lines.append(
            f"{self.total:,} notifications of {self.events:,} events in {len(self.days):,} "
            f"day{'s' if len(self.days) != 1 else ''}, {per_day:,.1f} a day{left_out}"
        )
        return "\n".join(lines)


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
    watched = {**queries, _EVERY: "true"}
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
            faults += row["count"] if row["subscription"] in (None, _EVERY) else 0
        else:
            days.setdefault(row["day"], {})[row["subscription"]] = row["count"]
    return Backtest(
        tuple(Day(one, days[one].pop(_EVERY, 0), days[one]) for one in sorted(days)), tuple(queries), faults
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
