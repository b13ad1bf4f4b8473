"""Arrays that grow in place: addresses are reserved ahead, and the system provides memory on first use."""

from __future__ import annotations

import math
import mmap
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_AHEAD: Final = 16  # reserved addresses, as a multiple of the first size,
_LEAST: Final = (
    1 << 32
)  # and so many, where the system has them: an array that grows past its addresses is copied
_HUGE: Final = 1 << 21  # bytes of a page: the system takes up to milliseconds to provide one
_PLACES: Final = 16  # within a page where arrays begin, so that arrays of one length do not come to their next page together
_turns: Final = count()
_PRIVATE: Final = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_COMMITMENT: Final = Path("/proc/sys/vm/overcommit_memory")
_STRICT: Final = "2"  # the system counts reserved addresses as memory
_HUGE_PAGES: Final = getattr(mmap, "MADV_HUGEPAGE", None)


class _Reserve(mmap.mmap):
    """Zeroed memory of which `used` bytes from `first` on belong to an array."""

    first: int = 0
    used: int = 0


def reserved(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros, with reserved addresses behind them for many more where the system allows it."""
    size = math.prod(shape) * dtype.itemsize
    if not _PRIVATE or not size or is_short_of_addresses():
        return np.zeros(shape, dtype=dtype)
    for length in (max(_AHEAD * size, _LEAST), _AHEAD * size, size):
        try:
            reserve = _Reserve(-1, length, flags=_PRIVATE)
        except (OSError, ValueError, OverflowError):  # no such range of addresses is free or allowed
            continue
        if length >= size + _HUGE:
            reserve.first = next(_turns) % _PLACES * (_HUGE // _PLACES)
        if _HUGE_PAGES is not None:
            _with_huge_pages(reserve)
        reserve.used = size
        return np.ndarray(shape, dtype, buffer=reserve, offset=reserve.first)
    return np.zeros(shape, dtype=dtype)


@cache
def is_short_of_addresses() -> bool:
    """Tell whether addresses are limited for this process or counted as memory; then none are reserved."""
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return True
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return True
    return _COMMITMENT.exists() and _COMMITMENT.read_text().strip() == _STRICT


def _with_huge_pages(reserve: _Reserve) -> None:
    """Ask for huge pages: they make random reads up to twice as fast."""
    try:
        # What is before the first whole page has small ones, so that nothing is lost where an array begins.
        begin = min(reserve.first, 1) * _HUGE
        reserve.madvise(_HUGE_PAGES, begin, len(reserve) - begin)
    except OSError:  # the system has none
        return


def is_reserved(array: NDArray[Any], length: int) -> bool:
    """Tell whether an array can grow to a length in place."""
    reserve = _reserve_of(array)
    return (
        reserve is not None
        and reserve.used == array.nbytes  # else the bytes behind it may belong to another array
        and reserve.first + length * math.prod(array.shape[1:]) * array.itemsize <= len(reserve)
    )


def grown_in_place(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a reserved array with a greater length; the new elements are zero."""
    reserve = _reserve_of(array)
    if reserve is None:
        raise ValueError("the array has no addresses in reserve")
    longer: NDArray[Any] = np.ndarray(
        (length, *array.shape[1:]), array.dtype, buffer=reserve, offset=reserve.first
    )
    reserve.used = longer.nbytes
    return longer


def _reserve_of(array: NDArray[Any]) -> _Reserve | None:
    base: object = array.base
    return base if isinstance(base, _Reserve) else None
