"""Names, kinds, operators and values as integers.

A *field* is an attribute and a kind. Every value has a *key*, and two values of one field are equal iff their keys are; the
keys of numbers, booleans and timestamps also keep their order. Strings, and integers that no float equals, are symbols: their
key is an interned code, and two neighbouring keys bound their place in the order.
"""

from __future__ import annotations

import math
import struct
from datetime import datetime
from enum import IntEnum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.model.conditions import Operator
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Opaque, Value
from tocsin.structures.array_types import Float64s

Keys: TypeAlias = NDArray[np.int64]

FIELDS: Final = 8  # an attribute has this many fields
FIELD_BITS: Final = 40  # a tag is an operator above these bits, and a field below
FIELD_MASK: Final = (1 << FIELD_BITS) - 1
EXACT: Final = 2**53  # all integers up to here are floats
_PREFIX: Final = 7
_SIGN: Final = 0x7FFFFFFFFFFFFFFF
_LARGEST: Final = int(np.finfo(np.float64).max)


class Field(IntEnum):
    """The fields of an attribute."""

    NUMBER = 0
    STRING = 1
    BOOLEAN = 2
    TIMESTAMP = 3
    BIG = 4  # a number that no float equals
    ANY = 5  # whether there is a value at all
    TEXT = 6  # the tests that a string passes: the only field in which an event may have several pairs
    OPAQUE = 7  # a value that cannot be compared; no predicate is on this field


class Op(IntEnum):
    """The operators of encoded predicates."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    BETWEEN = 6
    NOT_BETWEEN = 7
    IN = 8  # its key is the code of a list
    NOT_IN = 9
    PRESENT = 10
    RESIDUAL = 11  # its key is the code of a predicate that Python evaluates
    MISSING = 12


OPS: Final[dict[Operator, Op]] = {Operator[op.name]: op for op in Op if op is not Op.RESIDUAL}
OPERATORS: Final[dict[Op, Operator]] = {op: operator for operator, op in OPS.items()}


def keys_of_numbers(numbers: Float64s) -> Keys:
    """Return the keys of floats: integers in the same order, neighbours next to each other, -0.0 as 0.0."""
    bits = (numbers + 0.0).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & _SIGN))


def key_of_number(number: float) -> int:
    """Return the key of one number that a float equals."""
    bits: int = struct.unpack("<q", struct.pack("<d", number + 0.0))[0]
    return bits if bits >= 0 else bits ^ _SIGN


def number_of(key: int) -> float:
    """Return the float with this key."""
    number: float = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ _SIGN))[0]
    return number


def is_exact(number: float) -> bool:
    """Tell whether a float equals the number."""
    if type(number) is float or -EXACT <= number <= EXACT:
        return True
    return -_LARGEST <= number <= _LARGEST and int(float(number)) == number


def neighbours(number: int) -> tuple[int, int]:
    """Return the keys of the two floats around an integer that no float equals."""
    if number > _LARGEST:
        return key_of_number(float(_LARGEST)), key_of_number(math.inf)
    if number < -_LARGEST:
        return key_of_number(-math.inf), key_of_number(-float(_LARGEST))
    nearest = float(number)
    key = key_of_number(nearest)
    return (key - 1, key) if int(nearest) > number else (key, key + 1)


def string_key_bounds(text: str) -> tuple[int, int]:
    """Return the two keys between which a string lies in the order of strings; equal if it is short.

    Code points are ordered as their UTF-8 bytes. A key holds seven bytes and their number; a longer string lies just
    above the string of its first seven.
    """
    data = text.encode()[: _PREFIX + 1]
    prefix = int.from_bytes(data[:_PREFIX].ljust(_PREFIX, b"\0")) - 2 ** (8 * _PREFIX - 1)
    if len(data) <= _PREFIX:
        key = (prefix << 8) + len(data)
        return key, key
    return (prefix << 8) + _PREFIX, (prefix << 8) + _PREFIX + 1


def field_of(value: Value) -> Field:
    """Return the field of a value."""
    if isinstance(value, bool):
        return Field.BOOLEAN
    if isinstance(value, str):
        return Field.STRING
    if isinstance(value, datetime):
        return Field.TIMESTAMP
    if isinstance(value, Opaque):
        return Field.OPAQUE
    return Field.NUMBER if is_exact(value) else Field.BIG


def key_of(value: Value) -> int | None:
    """Return the key of a value, or None if it is a symbol."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return microseconds(value)
    if isinstance(value, (str, Opaque)) or not is_exact(value):
        return None
    return key_of_number(float(value))
