"""Numbers as views hold them: floats of 64 bits, and nothing that these cannot hold exactly."""

from __future__ import annotations

import math
import sys
from datetime import datetime
from typing import Final

from tocsin.model.errors import EventError
from tocsin.model.timestamps import microseconds, parse_rfc3339
from tocsin.model.values import Value

WIDEST: Final = sys.float_info.max
"""Stands for an end that is not bounded, and for an infinite x: no message is bounded by it."""


def is_exact(value: object) -> bool:
    """Tell whether a float holds a number or a timestamp exactly; other kinds of value are no matter."""
    if isinstance(value, datetime):
        value = microseconds(value)
    return isinstance(value, bool) or not isinstance(value, int) or _float(value) == value


def number(value: Value | None, name: str) -> float:
    """Return a number as a float, NaN for what is none; raise `EventError` for one that no float holds."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if kind is not int:
        return math.nan
    found = _float(value)  # type: ignore[arg-type]
    if found != value:
        raise EventError(
            f"a view looks at it, and no float of 64 bits holds {_shown(value)} exactly; "
            "send it as a smaller number, or as text",
            name,
        )
    return found


def moment(value: Value | None, name: str) -> float:
    """Return a timestamp, or a text that names one, in microseconds; NaN for what is none."""
    time = parse_rfc3339(value) if isinstance(value, str) else value
    if not isinstance(time, datetime):
        return math.nan
    ticks = microseconds(time)
    if float(ticks) != ticks:
        raise EventError(
            f"a view looks at it, and no float of 64 bits holds the microseconds of {time.isoformat()}", name
        )
    return float(ticks)


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _shown(value: Value | None) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:8]}… ({len(text)} digits)"
