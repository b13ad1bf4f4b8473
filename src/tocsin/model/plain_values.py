"""Constants as JSON has them, and back."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from tocsin.model.values import Opaque


def plain_value(value: Any) -> Any:
    """Return a constant as JSON has it; kinds that JSON lacks are objects with one field."""
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    if isinstance(value, Opaque):
        return {"opaque": value.type}
    if isinstance(value, tuple):
        return {"list": [plain_value(one) for one in value]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 63:
        return {"int": hex(value)}  # texts of decimal digits have a limit
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a value of type {type(value).__name__}")


def value_of_plain(plain: Any) -> Any:
    """Return the constant that `plain_value` wrote."""
    if not isinstance(plain, dict):
        return plain
    ((kind, written),) = plain.items()
    if kind == "list":
        return tuple(map(value_of_plain, written))
    if kind == "opaque":
        return Opaque(written)
    if kind == "time":
        return datetime.fromisoformat(written)
    return float(written) if kind == "float" else int(written, 16)
