"""Values and their kinds, and the checks that every value passes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias, cast

import numpy as np

from tocsin.model.errors import KindError
from tocsin.model.timestamps import from_microseconds, in_utc, microseconds, parse_timestamp


class Opaque:
    """A value that no predicate can compare: bytes, an array, a length of time. Only its presence is known.

    >>> Opaque("bytes")
    Opaque('bytes')
    """

    __slots__ = ("type",)

    def __init__(self, type_: str) -> None:
        self.type = type_  # the name of the Python type that it was

    @classmethod
    def of(cls, raw: object) -> Opaque:
        """Return what stands for a value of any type."""
        return raw if isinstance(raw, Opaque) else cls(type(raw).__name__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.type == other.type

    def __hash__(self) -> int:
        return hash((Opaque, self.type))

    def __repr__(self) -> str:
        return f"Opaque({self.type!r})"


Value: TypeAlias = bool | int | float | str | datetime | Opaque

_TICKS = 2**63
_DIGITS = 4300  # the longest integer that Python converts to and from text
HUGE = 10**_DIGITS


class Kind(StrEnum):
    """The kinds of value. A comparison across kinds is unknown, and `true` is not 1; no predicate compares opaque values."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    OPAQUE = "opaque"


def kind_of(value: Value) -> Kind:
    """Return the kind of a value that has passed `read_value`."""
    return _KINDS[type(value)]


def read_value(raw: object, zone: tzinfo = UTC) -> Value | None:
    """Return `raw` as a value, or None if it is null; raise `KindError` if it is of no kind.

    Python's numbers stay as they are; a `Decimal` becomes an integer or the nearest float. A datetime is converted to UTC;
    one without a time zone is a time of `zone`, and a date is its first moment there.

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
    return _read_foreign(raw, zone)


def read_attribute(raw: object, zone: tzinfo = UTC) -> Value | None:
    """Return `raw` as the value of an event's attribute: null and NaN are None, and what is of no kind is `Opaque`.

    >>> read_attribute(7), read_attribute(float("nan")), read_attribute(b"raw")
    (7, None, Opaque('bytes'))
    """
    if type(raw) is Opaque:
        return raw
    try:
        return read_value(raw, zone)
    except _NanError:
        return None
    except _IncomparableError:
        return Opaque.of(raw)


def read_moment(raw: object, zone: tzinfo = UTC) -> int | None:
    """Return the microseconds since 1970 that a datetime, a date or a text of ISO 8601 names; None for anything else.

    A time without a zone is one of `zone`. A text that is no time is an error.
    """
    if isinstance(raw, str):
        parsed = parse_timestamp(raw, zone)
        if parsed is None:
            raise KindError(f"`{raw}` is not a time such as `2026-01-01T00:00:00Z` or `2026-01-01`")
        return microseconds(parsed)
    if isinstance(raw, (date, np.datetime64)):
        value = _read_foreign(raw, zone)
        if value is None:
            raise KindError(f"{raw} is no time")
        return microseconds(cast("datetime", value))
    return None


def read_ticks(raw: object) -> int:
    """Return a whole number of ticks, or raise `KindError`."""
    value = raw.item() if isinstance(raw, np.generic) else raw
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise KindError(
            f"a time is a whole number of ticks, a datetime or a text of ISO 8601, not {_described(raw)}"
        )
    if not -_TICKS <= value < _TICKS:
        shown = f" {value}" if -HUGE < value < HUGE else ""  # Python refuses to write longer ones
        raise KindError(f"the time{shown} does not fit into 64 bits")
    return value


def read_time(raw: object, zone: tzinfo = UTC) -> int:
    """Return a time in ticks: a datetime or a text of ISO 8601 in microseconds, a whole number unchanged."""
    moment = read_moment(raw, zone)
    return read_ticks(raw) if moment is None else moment


class _NanError(KindError):
    """NaN stands where a value is needed; in an event it is an absent attribute."""


class _IncomparableError(KindError):
    """A value is of no kind; in an event it is opaque."""


_KINDS = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIMESTAMP,
    Opaque: Kind.OPAQUE,
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
        raise _NanError("NaN is not a number that can be compared")
    return raw


def _read_datetime(raw: datetime, zone: tzinfo) -> datetime:
    """Return the time in UTC; without a time zone, it is one of `zone`."""
    if raw.tzinfo is UTC and type(raw) is datetime:
        return raw
    try:
        utc = in_utc(raw if raw.utcoffset() is not None else raw.replace(tzinfo=zone))
        # A subclass, such as the one of pandas, is converted: the kind of a value depends on its type.
        return datetime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC)
    except OverflowError:
        raise KindError(f"the datetime {raw.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def _read_foreign(raw: object, zone: tzinfo) -> Value | None:
    """Return a value of another library, or of a subclass of Python's types."""
    if isinstance(raw, datetime):
        return _read_datetime(raw, zone) if raw == raw else None  # noqa: PLR0124 - pandas' NaT is a null
    if isinstance(raw, date):
        return _read_datetime(datetime(raw.year, raw.month, raw.day), zone)  # noqa: DTZ001 - the zone follows
    if isinstance(raw, Decimal):
        if raw.is_nan():
            return _read_float(math.nan)
        if raw.is_finite() and raw.adjusted() >= _DIGITS:
            raise KindError(f"the decimal has more than {_DIGITS:,} digits")
        return int(raw) if raw.is_finite() and raw == raw.to_integral_value() else float(raw)
    if isinstance(raw, np.datetime64):
        return _read_datetime64(raw, zone)
    if isinstance(raw, np.longdouble):
        return _read_float(float(raw))
    if isinstance(raw, np.generic) and not isinstance(raw, (np.timedelta64, np.clongdouble)):
        return read_value(raw.item())
    if isinstance(raw, str):
        return _read_string(str.__str__(raw))  # the string of an enum's member, not its name
    if isinstance(raw, int):
        return _read_integer(int(raw))
    if isinstance(raw, float):
        return _read_float(float(raw))
    if type(raw).__name__ == "NAType":  # pandas' null
        return None
    if isinstance(raw, np.timedelta64) and np.isnat(raw):
        return None
    raise _IncomparableError(
        f"{_type_with_article(raw)} is neither a number, a string, a boolean nor a timestamp"
    )


def _read_datetime64(raw: np.datetime64, zone: tzinfo) -> datetime | None:
    """Return NumPy's time, which has no zone; digits beyond the microsecond are cut off."""
    if np.isnat(raw):
        return None
    try:
        ticks = int(raw.astype("datetime64[us]").astype(np.int64))
        return _read_datetime(from_microseconds(ticks).replace(tzinfo=None), zone)
    except OverflowError:
        raise KindError(f"the time {raw} lies outside the years 1 to 9999 in UTC") from None


def json_of_opaque(value: object) -> None:
    """Return null for an opaque value: the hook for encoders of JSON."""
    if not isinstance(value, Opaque):
        raise NotImplementedError(f"a value of type {type(value).__name__}")


def json_type(decoded: object) -> str:
    """Return the JSON type of a decoded value, with its article, as error messages name it."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    number = "a number" if isinstance(decoded, (int, float)) else type(decoded).__name__
    return names.get(type(decoded), number)


def _described(raw: object) -> str:
    """Return a number as it is written, and anything else by its type."""
    is_number = isinstance(raw, (int, float, np.number)) and not isinstance(raw, bool)
    return str(raw) if is_number else _type_with_article(raw)


def _type_with_article(raw: object) -> str:
    name = raw.type if isinstance(raw, Opaque) else type(raw).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
