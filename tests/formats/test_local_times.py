"""Times of Arrow tables that have no zone are read in a zone as datetimes are."""

# ruff: noqa: DTZ001 - times without a zone are the point

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.formats.local_times import in_zone
from tocsin.model.timestamps import read_zone
from tocsin.model.values import read_value

ZONES = ["Europe/Oslo", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "-03:30"]
# Around changes of the clock, and before there were time zones.
CHANGES = [
    datetime(2026, 3, 29, 2),
    datetime(2026, 10, 25, 2),
    datetime(2026, 11, 1, 1),
    datetime(1880, 1, 1),
]
TIMES = st.one_of(
    st.builds(
        lambda at, seconds: at + timedelta(seconds=seconds), st.sampled_from(CHANGES), st.floats(-7200, 7200)
    ),
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    st.none(),
)


@pytest.mark.parametrize("zone", ZONES)
@given(times=st.lists(TIMES, min_size=1, max_size=12), unit=st.sampled_from(["s", "ms", "us"]))
def test_each_time_is_what_a_datetime_is(zone: str, times: list[datetime | None], unit: str) -> None:
    column = pa.array(times, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    read = in_zone(pa.table({"t": column}), read_zone(zone)).column("t").to_pylist()
    assert read == [None if one is None else read_value(one, read_zone(zone)) for one in column.to_pylist()]


def test_dates_structs_dictionaries_and_nanoseconds_are_read_too() -> None:
    oslo, noon = read_zone("Europe/Oslo"), datetime(2026, 7, 1, 12)
    ten, midnight = datetime(2026, 7, 1, 10, tzinfo=UTC), datetime(2026, 6, 30, 22, tzinfo=UTC)
    table = pa.table(
        {
            "day": pa.array([date(2026, 7, 1), None]),
            "inner": pa.array([{"at": noon, "n": 1}, None]),
            "word": pa.array([noon, None], pa.timestamp("us")).dictionary_encode(),
            "nano": pa.array([noon, None], pa.timestamp("us")).cast(pa.timestamp("ns")),
            "zoned": pa.array([ten, None], pa.timestamp("us", "UTC")),
            "n": [1, 2],
        }
    )
    expected: list[dict[str, Any]] = [
        {"day": midnight, "inner": {"at": ten, "n": 1}, "word": ten, "nano": ten, "zoned": ten, "n": 1},
        {"day": None, "inner": None, "word": None, "nano": None, "zoned": None, "n": 2},
    ]
    assert in_zone(table, oslo).to_pylist() == expected
    assert in_zone(table.to_batches()[0].slice(1), oslo).to_pylist() == expected[1:]
    assert in_zone(table.slice(0, 0), oslo).num_rows == 0


def test_a_table_with_nothing_to_change_is_returned_itself() -> None:
    table, naive = pa.table({"n": [1]}), pa.table({"t": [datetime(2026, 1, 1)]})
    assert in_zone(table, read_zone("Europe/Oslo")) is table
    assert in_zone(naive, UTC) is naive


def test_times_outside_the_calendar_stay() -> None:
    table = pa.table({"t": pa.array([2**62, -(2**62)], pa.timestamp("us"))})
    assert in_zone(table, read_zone("Europe/Oslo")).column("t").cast(pa.int64()).to_pylist() == [
        2**62,
        -(2**62),
    ]
