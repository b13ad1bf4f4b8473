"""Values in kernels: comparing them, computing with them, searching strings."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences.running.state import Bigs, Texts
from tocsin.structures.jit import helper

UNKNOWN: Final = 2
MISSING: Final = 0
INTEGER: Final = 1
FLOAT: Final = 2
STRING: Final = 3
BIG: Final = 6
_ADD: Final = 0
_SUBTRACT: Final = 1
_MULTIPLY: Final = 2
_LIMIT: Final = 9223372036854775808.0


@helper
def _float(bits: int) -> float:
    return np.int64(bits).view(np.float64)


@helper
def _bits(number: float) -> int:
    return np.float64(number).view(np.int64)


@helper
def _sign(a: float, b: float) -> int:
    return np.int64(a > b) - np.int64(a < b)


@helper
def _integer_beside_float(a: int, b: float) -> int:
    if b >= _LIMIT:
        return np.int64(-1)
    if b < -_LIMIT:
        return np.int64(1)
    whole = np.int64(b)  # towards zero
    if a != whole:
        return np.int64(a > whole) - np.int64(a < whole)
    rest = b - np.float64(whole)
    return np.int64(rest < 0.0) - np.int64(rest > 0.0)


@helper
def _text_order(texts: Texts, a: int, b: int) -> int:
    if a == b:
        return np.int64(0)
    first, second = texts.offsets[a], texts.offsets[b]
    length, other = texts.lengths[a], texts.lengths[b]
    for i in range(min(length, other)):
        x, y = texts.bytes[first + i], texts.bytes[second + i]
        if x != y:
            return np.int64(x > y) - np.int64(x < y)
    return np.int64(length > other) - np.int64(length < other)


@helper
def compare(texts: Texts, bigs: Bigs, kind: int, a: int, other: int, b: int) -> int:
    """Return -1, 0 or 1 as the first value is less, equal or greater; UNKNOWN if they cannot be compared."""
    if kind == other:
        if kind == FLOAT:
            return _sign(_float(a), _float(b))
        if kind == STRING:
            return _text_order(texts, a, b)
        if kind == MISSING:
            return np.int64(UNKNOWN)
        if kind == BIG:
            a, b = bigs.rank[a], bigs.rank[b]
        return np.int64(a > b) - np.int64(a < b)
    if kind == INTEGER:
        if other == FLOAT:
            return _integer_beside_float(a, _float(b))
        if other == BIG:
            return np.int64(1) if bigs.low[b] < 0.0 else np.int64(-1)
    elif kind == FLOAT:
        if other == INTEGER:
            return -_integer_beside_float(b, _float(a))
        if other == BIG:
            return np.int64(1) if _float(a) >= bigs.high[b] else np.int64(-1)
    elif kind == BIG:
        if other == INTEGER:
            return np.int64(-1) if bigs.low[a] < 0.0 else np.int64(1)
        if other == FLOAT:
            return np.int64(-1) if _float(b) >= bigs.high[a] else np.int64(1)
    return np.int64(UNKNOWN)


@helper
def is_number(kind: int) -> bool:
    """Tell whether one can compute with it."""
    return kind in (INTEGER, FLOAT, BIG)


@helper
def number_of(bigs: Bigs, kind: int, value: int) -> float:
    """Return the nearest float of a number."""
    if kind == INTEGER:
        return np.float64(value)
    if kind == FLOAT:
        return _float(value)
    return bigs.nearest[value]


@helper
def _fits(operation: int, a: int, b: int, result: int) -> bool:
    """Tell whether 64 bits hold the result of an operation on integers, which was computed by wrapping around."""
    if operation == _ADD:
        return ((a ^ result) & (b ^ result)) >= 0
    if operation == _SUBTRACT:
        return ((a ^ b) & (a ^ result)) >= 0
    about = np.float64(a) * np.float64(b)
    if about >= _LIMIT * 1.5 or about <= -_LIMIT * 1.5:
        return False
    # Between, the sign tells whether it wrapped around: less than twice the range away, it must have changed.
    return abs(about) < _LIMIT * 0.5 or ((result >= 0) == (about >= 0.0))


@helper
def computed(bigs: Bigs, operation: int, kind: int, a: int, other: int, b: int) -> tuple[int, int]:
    """Return the kind and value of two values added, subtracted, multiplied or divided."""
    if not (is_number(kind) and is_number(other)):
        return np.int64(MISSING), np.int64(0)
    if kind == INTEGER and other == INTEGER and operation <= _MULTIPLY:
        if operation == _ADD:
            result = a + b
        elif operation == _SUBTRACT:
            result = a - b
        else:
            result = a * b
        if _fits(operation, a, b, result):
            return np.int64(INTEGER), result
    x, y = number_of(bigs, kind, a), number_of(bigs, other, b)
    if operation == _ADD:
        number = x + y
    elif operation == _SUBTRACT:
        number = x - y
    elif operation == _MULTIPLY:
        number = x * y
    else:
        if y == 0.0:
            return np.int64(MISSING), np.int64(0)
        number = x / y
    if number != number:  # noqa: PLR0124 - NaN differs from itself
        return np.int64(MISSING), np.int64(0)
    return np.int64(FLOAT), _bits(number)


@helper
def is_found(texts: Texts, text: int, part: int, where: int) -> bool:
    """Tell whether a string has another in it (0), begins with it (1) or ends with it (2)."""
    length, size = texts.lengths[text], texts.lengths[part]
    if size > length:
        return False
    begin, wanted = texts.offsets[text], texts.offsets[part]
    first, last = np.int64(0), length - size
    if where == 1:
        last = np.int64(0)
    elif where == 2:
        first = last
    data: NDArray[np.uint8] = texts.bytes
    for at in range(first, last + 1):
        i = np.int64(0)
        while i < size and data[begin + at + i] == data[wanted + i]:
            i += 1
        if i == size:
            return True
    return False


@helper
def key_kind(kind: int, value: int) -> int:
    """Return the kind of a value's key: equal values have equal keys."""
    if kind == FLOAT:
        number = _float(value)
        if -_LIMIT <= number < _LIMIT and np.float64(np.int64(number)) == number:
            return np.int64(INTEGER)
    return np.int64(kind)


@helper
def key_value(kind: int, value: int) -> int:
    """Return a value's key: equal values have equal keys."""
    if kind == FLOAT:
        number = _float(value)
        if -_LIMIT <= number < _LIMIT and np.float64(np.int64(number)) == number:
            return np.int64(number)
    return np.int64(value)
