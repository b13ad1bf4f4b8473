"""Exact numbers: which of them a float of 64 bits holds, and sums of any size."""

from __future__ import annotations

import math
import sys
from datetime import datetime
from typing import Final, TypeAlias

from tocsin.model.errors import EventError
from tocsin.model.timestamps import microseconds, parse_timestamp
from tocsin.model.values import Value

Number: TypeAlias = int | float

WIDEST: Final = sys.float_info.max
"""Stands for an end that is not bounded, and for an infinite x: no message is bounded by it."""

_EXACT: Final = 2**53  # a float holds every integer up to it
_FINEST: Final = 1074  # every float is a whole number of 2**-1074


def is_exact(value: object) -> bool:
    """Tell whether a float holds a number or a timestamp exactly; other kinds of value are no matter."""
    if isinstance(value, datetime):
        value = microseconds(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return True
    try:
        return float(value) == value
    except OverflowError:
        return False


def number(value: Value | None, name: str) -> float:
    """Return a number as a float, NaN for other values; raise `EventError` for an integer that no float equals."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if kind is not int:
        return math.nan
    if not -_EXACT <= value <= _EXACT and not is_exact(value):  # type: ignore[operator]
        raise EventError(
            f"a view reads it, and no float of 64 bits holds {_shown(value)} exactly; "
            "send it as a smaller number, or as text",
            name,
        )
    return float(value)  # type: ignore[arg-type]


def moment(value: Value | None, name: str) -> float:
    """Return a timestamp, or a text that names one, in microseconds; NaN for other values."""
    time = parse_timestamp(value) if isinstance(value, str) else value
    if not isinstance(time, datetime):
        return math.nan
    ticks = microseconds(time)
    if float(ticks) != ticks:
        raise EventError(
            f"a view reads it, and no float of 64 bits holds the microseconds of {time.isoformat()}", name
        )
    return float(ticks)


def _shown(value: Value | None) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:8]}… ({len(text)} digits)"


def finite(value: Value | None) -> Number | None:
    """Return a value if it is a finite number, else None."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    return value if type(value) is int else None


def parts(number: Number) -> int:
    """Return how many of the finest parts that any float has make up a number: sums of them are exact."""
    if isinstance(number, int):
        return number << _FINEST
    numerator, denominator = number.as_integer_ratio()
    return numerator << (_FINEST + 1 - denominator.bit_length())


def rounded(total: int) -> float:
    """Return parts as the nearest float, infinite beyond the largest.

    >>> rounded(parts(0.1) + parts(0.2) + parts(-0.3)), rounded(parts(1e308) + parts(1e308))
    (2.7755575615628914e-17, inf)
    """
    try:
        return total / (1 << _FINEST)  # a quotient of integers is rounded once
    except OverflowError:
        return math.inf if total > 0 else -math.inf
