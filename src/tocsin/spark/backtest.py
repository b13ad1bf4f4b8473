"""`backtest`: what a subscription would have sent, had it been there, so that one sees the noise before subscribing."""

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

_EVERY: Final = "__tocsin_every"  # a subscription that counts the events


class Day(Struct, frozen=True):
    """How many events a day had, and how many notifications each subscription would have sent of them."""

    day: date
    events: int
    notifications: Mapping[str, int]

    @property
    def total(self) -> int:
        """Return how many notifications there would have been in all."""
        return sum(self.notifications.values())


class Backtest(Struct, frozen=True):
    """What subscriptions would have sent, by day and in all; a day without an event is left out.

    `faults` counts the rows that are no events, or whose time no calendar has.
    """

    days: tuple[Day, ...]
    subscriptions: tuple[str, ...]
    faults: int

    @property
    def events(self) -> int:
        """Return how many events were looked at."""
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
    """Return what a subscription, or each of several by id, would have sent of a history of events.

    `time` names the column of timestamps by which days are told; ticks are taken for microseconds. Further options
    are those of `match`: `payload`, `struct`, `stream`, and so on.
    """
    if history.isStreaming:
        raise SparkError("a stream has no end: give `backtest` a batch DataFrame")
    asked = _asked(text)
    if event_id is None:  # none is needed to count
        event_id = "__tocsin_row"
        history = history.withColumn(event_id, functions.monotonically_increasing_id())
    told = match(
        history,
        {**asked, _EVERY: "true"},
        event_id=event_id,
        time=time,
        faults=True,
        on_error=_refuse,
        **options,
    )
    ticks = not isinstance(told.schema["time"].dataType, TimestampType)
    moment = functions.timestamp_micros("time") if ticks else functions.col("time")
    is_fault = functions.col("subscription").isNull()
    is_dated = functions.year(moment).between(date.min.year, date.max.year)
    day = functions.when(~is_fault & is_dated, functions.to_date(moment)).alias("day")
    days: dict[date, dict[str, int]] = {}
    faults = 0
    for row in told.groupBy(day, "subscription").count().collect():
        if row["day"] is None:
            faults += row["count"] if row["subscription"] in (None, _EVERY) else 0
        else:
            days.setdefault(row["day"], {})[row["subscription"]] = row["count"]
    return Backtest(
        tuple(Day(one, days[one].pop(_EVERY, 0), days[one]) for one in sorted(days)), tuple(asked), faults
    )


def _asked(text: QuerySource | Mapping[str, QuerySource]) -> dict[str, Any]:
    """Return the subscriptions by id; the JSON form of one is a mapping too, from an operator to a list or a condition."""
    if not isinstance(text, Mapping):
        return {"backtest": text}
    try:
        read_query(text)
    except TocsinError:
        return dict(text)
    return {"backtest": text}


def _refuse(error: TocsinError) -> None:
    raise error
