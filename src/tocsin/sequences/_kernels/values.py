"""Values in kernels: comparing them, computing with them, searching strings."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.sequences._kernels.instructions import Do, Tag
from tocsin.sequences.running.state import Bigs, Texts
from tocsin.structures.array_types import UInt8s
from tocsin.structures.jit import helper

UNKNOWN: Final = 2
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
    """Return -1, 0 or 1 as integer `a` is below, equal to or above float `b`, without rounding `a`."""
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
def _compare_strings(texts: Texts, a: int, b: int) -> int:
    """Return -1, 0 or 1 by UTF-8 bytes, which order as code points do."""
    if a == b:
        return np.int64(0)
    offset_a, offset_b = texts.offsets[a], texts.offsets[b]
    length_a, length_b = texts.lengths[a], texts.lengths[b]
    for i in range(min(length_a, length_b)):
        x, y = texts.bytes[offset_a + i], texts.bytes[offset_b + i]
        if x != y:
            return np.int64(x > y) - np.int64(x < y)
    return np.int64(length_a > length_b) - np.int64(length_a < length_b)


@helper
def compare(texts: Texts, bigs: Bigs, kind: int, a: int, other: int, b: int) -> int:
    """Return -1, 0 or 1 as the first value is less, equal or greater; UNKNOWN if they cannot be compared."""
    if kind == other:
        if kind == Tag.FLOAT:
            return _sign(_float(a), _float(b))
        if kind == Tag.STRING:
            return _compare_strings(texts, a, b)
        if kind == Tag.MISSING or kind == Tag.OPAQUE:  # noqa: PLR1714 - Numba compiles this to less
            return np.int64(UNKNOWN)
        if kind == Tag.BIG:
            a, b = bigs.rank[a], bigs.rank[b]
        return np.int64(a > b) - np.int64(a < b)
    if kind == Tag.INTEGER:
        if other == Tag.FLOAT:
            return _integer_beside_float(a, _float(b))
        if other == Tag.BIG:
            return np.int64(1) if bigs.low[b] < 0.0 else np.int64(-1)
    elif kind == Tag.FLOAT:
        if other == Tag.INTEGER:
            return -_integer_beside_float(b, _float(a))
        if other == Tag.BIG:
            return np.int64(1) if _float(a) >= bigs.high[b] else np.int64(-1)
    elif kind == Tag.BIG:
        if other == Tag.INTEGER:
            return np.int64(-1) if bigs.low[a] < 0.0 else np.int64(1)
        if other == Tag.FLOAT:
            return np.int64(-1) if _float(b) >= bigs.high[a] else np.int64(1)
    return np.int64(UNKNOWN)


@helper
def is_number(kind: int) -> bool:
    """Tell whether a value of this kind is a number."""
    return kind == Tag.INTEGER or kind == Tag.FLOAT or kind == Tag.BIG  # noqa: PLR1714 - Numba compiles this to less


@helper
def number_of(bigs: Bigs, kind: int, value: int) -> float:
    """Return the nearest float of a number."""
    if kind == Tag.INTEGER:
        return np.float64(value)
    if kind == Tag.FLOAT:
        return _float(value)
    return bigs.nearest[value]


@helper
def _fits(operation: int, a: int, b: int, result: int) -> bool:
    """Tell whether 64 bits hold the result of an operation on integers, which was computed by wrapping around."""
    if operation == Do.ADD:
        return ((a ^ result) & (b ^ result)) >= 0
    if operation == Do.SUBTRACT:
        return ((a ^ b) & (a ^ result)) >= 0
    about = np.float64(a) * np.float64(b)
    if about >= _LIMIT * 1.5 or about <= -_LIMIT * 1.5:
        return False
    # In between, the product has wrapped around at most once, which changes its sign.
    return abs(about) < _LIMIT * 0.5 or ((result >= 0) == (about >= 0.0))


@helper
def compute(bigs: Bigs, operation: int, kind: int, a: int, other: int, b: int) -> tuple[int, int]:
    """Return the kind and value of two values added, subtracted, multiplied or divided."""
    if not (is_number(kind) and is_number(other)):
        return np.int64(Tag.MISSING), np.int64(0)
    if kind == Tag.INTEGER and other == Tag.INTEGER and operation <= Do.MULTIPLY:
        if operation == Do.ADD:
            result = a + b
        elif operation == Do.SUBTRACT:
            result = a - b
        else:
            result = a * b
        if _fits(operation, a, b, result):
            return np.int64(Tag.INTEGER), result
    x, y = number_of(bigs, kind, a), number_of(bigs, other, b)
    if operation == Do.ADD:
        number = x + y
    elif operation == Do.SUBTRACT:
        number = x - y
    elif operation == Do.MULTIPLY:
        number = x * y
    else:
        if y == 0.0:
            return np.int64(Tag.MISSING), np.int64(0)
        number = x / y
    if number != number:  # noqa: PLR0124 - NaN differs from itself
        return np.int64(Tag.MISSING), np.int64(0)
    return np.int64(Tag.FLOAT), _bits(number)


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
    data: UInt8s = texts.bytes
    for at in range(first, last + 1):
        i = np.int64(0)
        while i < size and data[begin + at + i] == data[wanted + i]:
            i += 1
        if i == size:
            return True
    return False


@helper
def key_of(kind: int, value: int) -> tuple[int, int]:
    """Return the kind and the value of a value's key: equal values have equal keys, 1 and 1.0 among them."""
    if kind == Tag.FLOAT:
        number = _float(value)
        if -_LIMIT <= number < _LIMIT and np.float64(np.int64(number)) == number:
            return np.int64(Tag.INTEGER), np.int64(number)
    return np.int64(kind), np.int64(value)
