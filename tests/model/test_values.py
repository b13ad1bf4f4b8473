from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tocsin.model import Kind, kind_of, read_value
from tocsin.model.errors import KindError
from tocsin.model.timestamps import format_rfc3339, microseconds, parse_timestamp
from tocsin.model.values import read_time


@pytest.mark.parametrize(
    ("raw", "value", "kind"),
    [
        (1, 1, Kind.NUMBER),
        (2**100, 2**100, Kind.NUMBER),
        (1.5, 1.5, Kind.NUMBER),
        (float("inf"), float("inf"), Kind.NUMBER),
        (Decimal("3"), 3, Kind.NUMBER),
        (Decimal("0.1"), 0.1, Kind.NUMBER),
        (np.int32(7), 7, Kind.NUMBER),
        (np.float32(0.5), 0.5, Kind.NUMBER),
        (np.longdouble(0.5), 0.5, Kind.NUMBER),
        (np.bool_(True), True, Kind.BOOLEAN),
        (np.str_("x"), "x", Kind.STRING),
        (True, True, Kind.BOOLEAN),
        ("ü", "ü", Kind.STRING),
        (Kind.NUMBER, "number", Kind.STRING),
        (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1, tzinfo=UTC), Kind.TIMESTAMP),
        (pd.Timestamp("2026-01-01T00:00:00.123456789Z"), datetime(2026, 1, 1, 0, 0, 0, 123456, UTC), Kind.TIMESTAMP),
        (date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), Kind.TIMESTAMP),
        (datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), Kind.TIMESTAMP),  # noqa: DTZ001 - that is the point
        (np.datetime64("2026-01-02T03:04:05.123456789"), datetime(2026, 1, 2, 3, 4, 5, 123456, UTC), Kind.TIMESTAMP),
    ],
)  # fmt: skip
def test_values_are_kept_by_kind(raw: object, value: object, kind: Kind) -> None:
    read = read_value(raw)
    assert read is not None
    assert read == value
    assert kind_of(read) is kind
    assert type(read) in (int, float, str, bool, datetime)


@pytest.mark.parametrize("raw", [None, pd.NaT, np.datetime64("NaT")])
def test_null_is_absence(raw: object) -> None:
    assert read_value(raw) is None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (float("nan"), "NaN"),
        (np.float64("nan"), "NaN"),
        (Decimal("NaN"), "NaN"),
        ("\udc00", "lone surrogate at position 0"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "outside the years 1 to 9999"),
        (np.timedelta64(1, "s"), "a timedelta64 is neither"),
        (object(), "an object is neither a number"),
        (b"x", "a bytes is neither"),
        (1j, "a complex is neither"),
        (np.clongdouble(1j), "a clongdouble is neither"),
    ],
)
def test_values_of_no_kind_are_refused(raw: object, reason: str) -> None:
    with pytest.raises(KindError, match=reason):
        read_value(raw)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01t00:00:00z", "2026-01-01T00:00:00Z"),
        ("2026-01-01 01:30:00+01:30", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.100000Z"),
        ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456Z"),
        ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00Z"),
        ("2026-01-01", "2026-01-01T00:00:00Z"),
        ("2026-01-01T05:15", "2026-01-01T05:15:00Z"),
        ("2026-01-01T05:15Z", "2026-01-01T05:15:00Z"),
        ("2026-01-01 05:15:07.25", "2026-01-01T05:15:07.250000Z"),
        ("2026-01-01T05:15:07,5+0100", "2026-01-01T04:15:07.500000Z"),
        ("2026-01-01T05:15-05", "2026-01-01T10:15:00Z"),
        ("2026-01-01T05", None),
        ("2026-01-01Z", None),
        ("2026-1-1", None),
        ("20260101", None),
        ("2026-01-01T05:15+25:00", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-01-01T24:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+02:00", None),
        ("9999-12-31T23:59:60Z", None),
        ("٢٠٢٦-01-01T00:00:00Z", None),
        ("2026-01-01T00:00:00Z\n", None),
    ],
)
def test_texts_of_iso_8601(text: str, wanted: str | None) -> None:
    time = parse_timestamp(text)
    assert (None if time is None else format_rfc3339(time)) == wanted


def test_microseconds_are_exact() -> None:
    assert microseconds(datetime(1970, 1, 1, 0, 0, 1, 1, UTC)) == 1_000_001
    assert microseconds(datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)) == 253402300799999999


def test_times_are_ticks_or_microseconds() -> None:
    assert read_time(17) == 17
    assert read_time(np.int64(17)) == 17
    assert read_time("1970-01-01T00:00:01Z") == 1_000_000
    assert read_time(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1_000_000
    for bad in (1.5, True, "soon", 2**63, None):
        with pytest.raises(KindError):
            read_time(bad)
