"""Growable columns: arrays of one length that grow together, in place where the system allows it."""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.reserves import grown_in_place, is_reserved, reserved

State = TypeVar("State", bound=tuple[Any, ...])

_LEAST: Final = 64
_MANY: Final = 1 << 19  # elements from which on idle memory costs more than copying
_LARGE: Final = 1 << 21  # bytes from which on an array reserves addresses


def roomier(capacity: int, needed: int) -> int:
    """Return a capacity of at least `needed` that grows by half, or by a quarter from half a million elements on."""
    return max(needed, capacity + max(capacity // (2 if capacity < _MANY else 4), _LEAST))


def grown(state: State, columns: tuple[str, ...], needed: int) -> State:
    """Return `state` with room for `needed` elements in each of the named columns; the new ones are zero.

    Large columns grow in place, an eighth at a time. Where that is not possible, they are copied into fresh memory with
    the capacity of `roomier`.
    """
    length = len(getattr(state, columns[0]))
    if length >= needed:
        return state
    arrays: dict[str, NDArray[Any]] = {name: getattr(state, name) for name in columns}
    capacity = max(needed, length + length // 8)
    if not all(is_reserved(array, capacity) for array in arrays.values()):
        capacity = roomier(length, needed)
    return state._replace(**{name: _longer(array, capacity) for name, array in arrays.items()})


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the array with this length: grown in place if its addresses are reserved, else copied."""
    if is_reserved(array, length):
        return grown_in_place(array, length)
    shape = (length, *array.shape[1:])
    is_large = math.prod(shape) * array.itemsize >= _LARGE
    longer = reserved(shape, array.dtype) if is_large else np.zeros(shape, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def bytes_of(state: tuple[Any, ...]) -> int:
    """Return the bytes of all arrays in a state and in the states within it."""
    return sum(bytes_of(one) if isinstance(one, tuple) else one.nbytes for one in state)
