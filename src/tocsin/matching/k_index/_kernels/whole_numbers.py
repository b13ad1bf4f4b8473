"""Whole numbers and the keys that numbers have: the bits of a float, in an order that integers keep."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.jit import helper

LARGEST: Final = 1 << 53  # up to here every whole number is a float


@helper
def key_of_whole(number: int) -> int:
    """Return the key of a whole number up to 2**53."""
    bits = np.float64(abs(number)).view(np.int64)
    return bits if number >= 0 else ~bits


@helper
def is_whole(key: int) -> bool:
    """Tell whether a key is that of a whole number up to 2**53."""
    magnitude = np.int64(key if key >= 0 else ~key).view(np.float64)
    return magnitude <= LARGEST and magnitude == np.floor(
        magnitude
    )  # an infinity is beyond, and so is no number


@helper
def whole_of(key: int) -> int:
    """Return the whole number that has this key."""
    magnitude = np.int64(np.int64(key if key >= 0 else ~key).view(np.float64))
    return magnitude if key >= 0 else -magnitude
