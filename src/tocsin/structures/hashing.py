"""Hashes of integers: two that are independent of each other."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.jit import wrapping_helper

_FIRST: Final = 0x9E3779B97F4A7C15  # odd numbers whose bits look random
_SECOND: Final = 0xD6E8FEB86659FD93


@wrapping_helper
def hashed(number: int) -> int:
    """Return 64 bits, each of which depends on all bits of a number."""
    mixed = (np.uint64(number) + np.uint64(1)) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_SECOND)
    return mixed ^ (mixed >> np.uint64(32))


@wrapping_helper
def hashed_again(number: int) -> int:
    """Return another 64 bits: two numbers with one hash by `hashed` have different ones here, most probably."""
    mixed = (np.uint64(number) + np.uint64(1)) * np.uint64(_SECOND)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_FIRST)
    return mixed ^ (mixed >> np.uint64(32))
