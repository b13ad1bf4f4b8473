"""RFC 3339 timestamps, to the microsecond and in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:)(\d{2})(?:\.(\d+))?(?:[Zz]|([+-]\d{2}:[0-5]\d))", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_rfc3339(text: str) -> datetime | None:
    """Return the UTC time that `text` names, or None if it is not an RFC 3339 timestamp.

    Digits beyond the microsecond are cut off; the leap second `:60` is the first second of the next minute.

    >>> parse_rfc3339("2026-01-01T01:00:00.5+01:00")
    datetime.datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=datetime.timezone.utc)
    >>> parse_rfc3339("2026-01-01") is None
    True
    """
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    day, minute, second, fraction, offset = found.groups()
    leap = second == "60"
    micro = (fraction or "")[:6].ljust(6, "0")
    try:
        local = datetime.fromisoformat(
            f"{day}T{minute}{'59' if leap else second}.{micro}{offset or '+00:00'}"
        )
        return local.astimezone(UTC) + timedelta(seconds=leap)
    except (ValueError, OverflowError):  # a thirteenth month, or a day outside the years 1 to 9999
        return None


def format_rfc3339(time: datetime) -> str:
    """Return `time` as RFC 3339 text in UTC, with a fraction only where it has one."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def microseconds(time: datetime) -> int:
    """Return the microseconds from 1970-01-01T00:00:00Z to `time`, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(ticks: int) -> datetime:
    """Return the time `ticks` microseconds after 1970-01-01T00:00:00Z."""
    return _EPOCH + ticks * _MICROSECOND
