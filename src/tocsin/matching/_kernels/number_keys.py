"""Numbers and their keys: the bits of a float, changed so that integers keep the order of the numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.jit import helper

_SIGN: Final = 0x7FFFFFFFFFFFFFFF
_LARGEST: Final = 1 << 53  # up to here every whole number is a float


@helper
def key_of_number(number: float) -> int:
    """Return the key of a number."""
    bits = np.float64(number).view(np.int64)
    return bits ^ ((bits >> 63) & _SIGN)


@helper
def number_of_key(key: int) -> float:
    """Return the number with a key; not a number if no number has it."""
    return np.int64(key ^ ((key >> 63) & _SIGN)).view(np.float64)


@helper
def is_whole(key: int) -> bool:
    """Tell whether a key is that of a whole number up to 2**53."""
    number = abs(number_of_key(key))
    return number <= _LARGEST and number == np.floor(number)  # false for infinities and for no number


@helper
def whole_of(key: int) -> int:
    """Return the whole number with a key."""
    return np.int64(number_of_key(key))
