"""Timestamps as texts of ISO 8601, to the microsecond and in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from tocsin.model.errors import KindError

SHORTEST: Final = len("2026-01-01")
"""The fewest characters of a text that names a time."""

_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d+))?)? ?([Zz]|[+-]\d{2}(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_timestamp(text: str, zone: tzinfo = UTC) -> datetime | None:
    """Return the UTC time that `text` names, or None if it is no timestamp of ISO 8601.

    A day alone is its first moment; the seconds may be left out. A text without an offset is a time of `zone`. Digits beyond
    the microsecond are cut off; the leap second `:60` is the first second of the next minute.

    >>> parse_timestamp("2026-01-01T01:00:00.5+01:00")
    datetime.datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=datetime.timezone.utc)
    >>> parse_timestamp("2026-01-01"), parse_timestamp("2026-01-01 09:30") == parse_timestamp("2026-01-01T09:30:00Z")
    (datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), True)
    >>> parse_timestamp("20260101") is None
    True
    """
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day, minute, second, fraction, offset = found.groups()
    leap = second == "60"
    micro = (fraction or "")[:6].ljust(6, "0")
    try:
        read = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{'59' if leap else second or '00'}.{micro}")
        return in_utc(read.replace(tzinfo=_offset(offset) if offset else zone)) + timedelta(seconds=leap)
    except (ValueError, OverflowError):  # a thirteenth month, or a day outside the years 1 to 9999
        return None


@lru_cache(maxsize=256)
def _offset(text: str) -> tzinfo:
    """Return the offset that ends a timestamp: `Z`, `+01:00`, `+0100` or `+01`."""
    if text in "Zz":
        return UTC
    return datetime.strptime(text if len(text) > 3 else f"{text}00", "%z").tzinfo or UTC


def in_utc(time: datetime) -> datetime:
    """Return a time that has a zone in UTC; raise `OverflowError` outside the years 1 to 9999."""
    if time.tzinfo is UTC:
        return time
    offset = time.utcoffset()
    assert offset is not None  # noqa: S101 - it has a zone
    # `astimezone` fails for some zones at the ends of the calendar with other errors.
    return time.replace(tzinfo=UTC, fold=0) - offset


def read_zone(name: str | tzinfo) -> tzinfo:
    """Return the time zone of a name such as `Europe/Oslo`, `UTC` or `+01:00`, or raise `KindError`.

    >>> read_zone("+02:00").utcoffset(None)
    datetime.timedelta(seconds=7200)
    """
    if isinstance(name, tzinfo):
        return name
    if isinstance(name, str):
        if name.upper() in ("UTC", "Z"):
            return UTC
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - seldom needed

        try:
            return _offset(name) if name[:1] in ("+", "-") else ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # `ZoneInfoNotFoundError` is a KeyError
            pass
    raise KindError(
        f"{name!r} is no time zone; write a name such as `Europe/Oslo`, `UTC`, or an offset such as `+01:00`"
    )


def zone_name(zone: tzinfo) -> str:
    """Return a name of a time zone that `read_zone` reads: its key, or its offset.

    >>> zone_name(read_zone("+02:00")), zone_name(UTC)
    ('+02:00', 'UTC')
    """
    if zone is UTC:
        return "UTC"
    key = getattr(zone, "key", None)
    return key if isinstance(key, str) else datetime(2000, 1, 1, tzinfo=zone).isoformat()[19:]


def format_rfc3339(time: datetime) -> str:
    """Return `time` as RFC 3339 text in UTC, with a fraction only where it has one."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def microseconds(time: datetime) -> int:
    """Return the microseconds from 1970-01-01T00:00:00Z to `time`, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(ticks: int) -> datetime:
    """Return the time `ticks` microseconds after 1970-01-01T00:00:00Z."""
    return _EPOCH + ticks * _MICROSECOND
