"""Growable columns: arrays of one length that grow together."""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.reserves import grown_in_place, is_reserved, reserved

State = TypeVar("State", bound=tuple[Any, ...])

_LEAST: Final = 64
_MANY: Final = 1 << 19  # from which on memory that may never be used is dearer than copying
_LARGE: Final = 1 << 21  # bytes from which on an array has addresses in reserve


def roomier(capacity: int, needed: int) -> int:
    """Return a capacity of at least `needed`, and at least half as much again as now, or a quarter of very many."""
    return max(needed, capacity + max(capacity // (2 if capacity < _MANY else 4), _LEAST))


def grown(state: State, columns: tuple[str, ...], needed: int) -> State:
    """Return `state` with room for `needed` elements in each of the named columns; the new ones are zero.

    Large columns grow where they are, an eighth at a time. Where that cannot be, they move to fresh memory, and that
    is copied whenever as much is added as `roomier` says.
    """
    arrays: dict[str, NDArray[Any]] = {name: getattr(state, name) for name in columns}
    length = len(arrays[columns[0]])
    if length >= needed:
        return state
    capacity = max(needed, length + length // 8)
    if not all(is_reserved(array, capacity) for array in arrays.values()):
        capacity = roomier(length, needed)
    return state._replace(**{name: _longer(array, capacity) for name, array in arrays.items()})


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    if is_reserved(array, length):
        return grown_in_place(array, length)
    shape = (length, *array.shape[1:])
    is_large = math.prod(shape) * array.itemsize >= _LARGE
    longer = reserved(shape, array.dtype) if is_large else np.zeros(shape, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def bytes_of(state: tuple[Any, ...]) -> int:
    """Return the bytes of all arrays in a state, those of states within it included."""
    return sum(bytes_of(one) if isinstance(one, tuple) else one.nbytes for one in state)
