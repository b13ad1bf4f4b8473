"""Numbers of any size, exactly: which of them are aggregated, how they are summed, and how they are told."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from tocsin.model.values import Value
from tocsin.views.answer_changes import number_answer

Number: TypeAlias = int | float

_FINEST: Final = 1074  # every float is a whole number of 2**-1074


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


def told(number: Number) -> Number | None:
    """Return a number as it is told: a whole float as an integer."""
    return number if isinstance(number, int) else number_answer(number)
