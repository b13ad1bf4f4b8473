"""Counts by day, by the hour and by the tick."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from tocsin.display.charts import bar_chart, bars_over_time
from tocsin.model.timestamps import microseconds


def ticks(*texts: str, length: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    moments = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts)
    return np.array([microseconds(moment) // length for moment in moments], dtype=np.int64)


DAYS = ("2026-03-01", "2026-03-01T23:59:59", "2026-03-02", "2026-03-04T12:00")


@pytest.mark.parametrize("length", [1, 1_000, 1_000_000, 60_000_000])
def test_days_are_counted_in_utc_whatever_a_tick_is(length: int) -> None:
    bars = bars_over_time(ticks(*DAYS, length=length), length)
    assert bars.labels == ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
    assert (bars.counts, bars.unit) == ([2, 1, 0, 1], "by day")


@pytest.mark.parametrize("length", [7_000_000, 5 * 3_600_000_000, 7 * 86_400_000_000])
def test_ticks_that_divide_no_day_are_counted_on_theirs(length: int) -> None:
    moments = ["2026-03-01", "2026-03-08T12:00", "2026-03-29"]
    times = ticks(*moments, length=length)
    days = [datetime.fromtimestamp(time * length // 10**6, UTC).date().isoformat() for time in times.tolist()]
    bars = bars_over_time(times, length)
    assert [label for label, count in zip(bars.labels, bars.counts, strict=True) if count] == days
    assert (bars.labels[0], bars.labels[-1], bars.unit) == (days[0], days[-1], "by day")


def test_short_spans_are_counted_by_the_hour_and_long_ones_by_several_days() -> None:
    hours = bars_over_time(ticks("1969-12-31T22:30", "1970-01-01T00:10"), 1)
    assert (hours.labels[0], hours.counts, hours.unit) == ("1969-12-31 22:00", [1, 0, 1], "by hour")
    long = bars_over_time(ticks("2020-01-01", "2026-01-01"), 1)
    assert long.unit == "by 25 days"
    assert len(long.counts) <= 90
    assert (sum(long.counts), long.labels[0]) == (2, "2020-01-01")


def test_ticks_without_a_time_of_day_are_counted_as_such() -> None:
    bars = bars_over_time(np.array([5, 7, 7]), None)
    assert bars == (["5", "6", "7"], [1, 0, 2], "by tick")
    assert bars_over_time(np.array([-(2**62), 2**62]), 1).unit.endswith("ticks")
    assert bars_over_time(np.empty(0, dtype=np.int64), 1).counts == []


def test_a_chart_is_xml_with_a_bar_for_each_count() -> None:
    chart = fromstring(bar_chart(bars_over_time(ticks(*DAYS), 1), "match"))  # noqa: S314 - it is our own
    titles = [one.text for one in chart.iter("title")][1:]
    assert titles == [
        "2026-03-01: 2 matches",
        "2026-03-02: 1 match",
        "2026-03-03: 0 matches",
        "2026-03-04: 1 match",
    ]
    heights = [float(bar.get("height", "")) for bar in chart.iter("rect")]
    assert heights == [120, 60, 0, 60]
    assert bar_chart(bars_over_time(np.empty(0, dtype=np.int64), 1), "match") == ""
