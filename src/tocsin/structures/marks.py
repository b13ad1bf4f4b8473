"""A vector of bytes that is cleared in the time of the bytes touched, not of its length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.structures.array_types import Int32s, Int64s, UInt8s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.jit import kernel


class Marks(NamedTuple):
    """All arrays but `count` have one length. Every byte outside `touched[:count]` equals its resting value."""

    value: UInt8s  # [size]
    rest: UInt8s  # [size] the resting value, to which it is cleared
    touched: Int32s  # [size]
    count: Int64s  # [1] bytes touched


def new_marks(size: int = 64) -> Marks:
    """Return a vector of zeros."""
    return zeros(Marks, size, count=np.zeros(1, dtype=np.int64))


def with_room(marks: Marks, size: int) -> Marks:
    """Return the vector with at least `size` bytes."""
    return grown(marks, ("value", "rest", "touched"), size)


@kernel
def mark(marks: Marks, index: int, value: int) -> bool:
    """Set an untouched byte away from its resting value; return False if it was set before."""
    if marks.value[index] != marks.rest[index]:
        return False
    marks.count[0] = touch(marks, index, value, marks.count[0])
    return True


@kernel
def touch(marks: Marks, index: int, value: int, count: int) -> int:
    """Set a byte that is at rest, when `count` are touched already; return `count + 1`."""
    marks.value[index] = value
    marks.touched[count] = index
    return count + 1


@kernel
def clear(marks: Marks) -> None:
    """Reset every touched byte to its resting value."""
    for i in range(marks.count[0]):
        index = np.int64(marks.touched[i])
        marks.value[index] = marks.rest[index]
    marks.count[0] = 0


@kernel
def set_rest(marks: Marks, index: int, value: int) -> None:
    """Change the resting value of a byte; call it while nothing is touched."""
    marks.rest[index] = value
    marks.value[index] = value
