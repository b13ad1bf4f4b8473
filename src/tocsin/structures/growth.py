"""Growable columns: arrays of one length that grow together."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["bytes_of", "grown", "roomier"]

State = TypeVar("State", bound=tuple[Any, ...])

_LEAST: Final = 64
_MANY: Final = 1 << 19  # from which on memory that may never be used is dearer than copying


def roomier(capacity: int, needed: int) -> int:
    """Return a capacity of at least `needed`, and at least half as much again as now, or a quarter of very many."""
    return max(needed, capacity + max(capacity // (2 if capacity < _MANY else 4), _LEAST))


def grown(state: State, columns: tuple[str, ...], needed: int) -> State:
    """Return `state` with room for `needed` elements in each of the named columns; the new ones are zero.

    The columns move to fresh memory. That is copied whenever as much is added as `roomier` says, and it is given huge
    pages by the system, which memory extended in place is not: random reads are up to twice as fast for it.
    """
    current: NDArray[Any] = getattr(state, columns[0])
    if len(current) >= needed:
        return state
    capacity = roomier(len(current), needed)
    changed: dict[str, NDArray[Any]] = {}
    for name in columns:
        array: NDArray[Any] = getattr(state, name)
        changed[name] = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
        changed[name][: len(array)] = array
    return state._replace(**changed)


def bytes_of(state: tuple[Any, ...]) -> int:
    """Return the bytes of all arrays in a state, those of states within it included."""
    return sum(bytes_of(one) if isinstance(one, tuple) else one.nbytes for one in state)
