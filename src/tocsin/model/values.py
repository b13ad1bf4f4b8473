"""Values and their kinds, and the checks that every value passes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from tocsin.model.errors import KindError
from tocsin.model.timestamps import microseconds, parse_rfc3339

Value: TypeAlias = bool | int | float | str | datetime

_TICKS = 2**63
_DIGITS = 4300  # the longest integer that Python converts to and from text
HUGE = 10**_DIGITS


class Kind(StrEnum):
    """The four kinds of value. A comparison across kinds is unknown, and `true` is not 1."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"


def kind_of(value: Value) -> Kind:
    """Return the kind of a value that has passed `read_value`."""
    return _KINDS[type(value)]


def read_value(raw: object) -> Value | None:
    """Return `raw` as a value, or None if it is null; raise `KindError` if it is of no kind.

    Python's numbers stay as they are; a `Decimal` becomes an integer or the nearest float. A datetime needs a time
    zone and is converted to UTC; a date becomes its first instant in UTC.

    >>> read_value(Decimal("2.50")), read_value(7), read_value(None)
    (2.5, 7, None)
    """
    kind = type(raw)
    if kind is str:
        return _read_string(raw)  # type: ignore[arg-type]
    if kind is bool or raw is None:
        return raw  # type: ignore[return-value]
    if kind is int:
        return _read_integer(raw)  # type: ignore[arg-type]
    if kind is float:
        return _read_float(raw)  # type: ignore[arg-type]
    return _read_foreign(raw)


def read_time(raw: object) -> int:
    """Return a time in ticks: a datetime or RFC 3339 text in microseconds, an integer unchanged."""
    value = raw.item() if isinstance(raw, np.integer) else raw
    if isinstance(value, str):
        parsed = parse_rfc3339(value)
        if parsed is None:
            raise KindError(f"`{value}` is not an RFC 3339 time such as `2026-01-01T00:00:00Z`")
        value = parsed
    if isinstance(value, datetime):
        return microseconds(_read_datetime(value))
    if isinstance(value, bool) or not isinstance(value, int):
        raise KindError(
            f"a time is a whole number of ticks, a datetime or an RFC 3339 text, not {_type_with_article(raw)}"
        )
    if not -_TICKS <= value < _TICKS:
        raise KindError(f"the time {value} does not fit into 64 bits")
    return value


_KINDS = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIMESTAMP,
}


def _read_string(raw: str) -> str:
    """Return the string, or raise if it is not valid Unicode."""
    if not raw.isascii():
        try:
            raw.encode()
        except UnicodeEncodeError as fault:
            raise KindError(
                f"the string is not valid Unicode: a lone surrogate at position {fault.start}"
            ) from None
    return raw


def _read_integer(raw: int) -> int:
    if abs(raw) >= HUGE:
        raise KindError(f"the integer has more than {_DIGITS:,} digits")
    return raw


def _read_float(raw: float) -> float:
    if math.isnan(raw):
        raise KindError("NaN is not a number that can be compared; leave the attribute out, or send null")
    return raw


def _read_datetime(raw: datetime) -> datetime:
    """Return the time in UTC, or raise if it has no time zone."""
    if raw.tzinfo is UTC and type(raw) is datetime:
        return raw
    if raw.tzinfo is None:
        raise KindError(f"the datetime {raw.isoformat()} has no time zone; give it one, for example UTC")
    try:
        utc = raw.astimezone(UTC)
        # A subclass, such as the one of pandas, is converted: the kind of a value depends on its type.
        return datetime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC)
    except OverflowError:
        raise KindError(f"the datetime {raw.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def _read_foreign(raw: object) -> Value | None:
    """Return a value of another library, or of a subclass of Python's types."""
    if isinstance(raw, datetime):
        return _read_datetime(raw) if raw == raw else None  # noqa: PLR0124 - pandas' NaT is a null
    if isinstance(raw, date):
        return datetime(raw.year, raw.month, raw.day, tzinfo=UTC)
    if isinstance(raw, Decimal):
        if raw.is_nan():
            return _read_float(math.nan)
        if raw.is_finite() and raw.adjusted() >= _DIGITS:
            raise KindError(f"the decimal has more than {_DIGITS:,} digits")
        return int(raw) if raw.is_finite() and raw == raw.to_integral_value() else float(raw)
    if isinstance(raw, (np.datetime64, np.timedelta64)):
        raise KindError(f"{_type_with_article(raw)} has no time zone; convert it to a datetime with one")
    if isinstance(raw, np.generic):
        return read_value(raw.item())
    if isinstance(raw, str):
        return _read_string(str.__str__(raw))  # the string of an enum's member, not its name
    if isinstance(raw, int):
        return _read_integer(int(raw))
    if isinstance(raw, float):
        return _read_float(float(raw))
    if type(raw).__name__ == "NAType":  # pandas' null
        return None
    raise KindError(f"{_type_with_article(raw)} is neither a number, a string, a boolean nor a timestamp")


def json_type(decoded: object) -> str:
    """Return the JSON type of a decoded value, with its article, as error messages name it."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    number = "a number" if isinstance(decoded, (int, float)) else type(decoded).__name__
    return names.get(type(decoded), number)


def _type_with_article(raw: object) -> str:
    name = type(raw).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
