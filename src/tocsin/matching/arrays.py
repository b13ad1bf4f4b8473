"""A matcher's state, nested tuples of arrays, as arrays by name and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tocsin.model.errors import SavedMatcherError

Nested = TypeVar("Nested", bound=tuple[Any, ...] | NDArray[Any])


def arrays_of(state: tuple[Any, ...] | NDArray[Any], name: str = "") -> dict[str, NDArray[Any]]:
    """Return every array of a state by its dotted name; an array alone is a state too."""
    if isinstance(state, np.ndarray):
        return {name: state}
    found: dict[str, NDArray[Any]] = {}
    for field, part in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        found |= arrays_of(part, f"{name}.{field}" if name else field)
    return found


def rebuilt(like: Nested, arrays: Mapping[str, NDArray[Any]], name: str = "") -> Nested:
    """Return a state made of the arrays that `arrays_of` named.

    `like` is a state of the same kind, which has the dtype and all but the first length of each array.
    """
    if isinstance(like, np.ndarray):
        array = arrays.get(name)
        if array is None:
            raise SavedMatcherError(f"it has no array `{name}`; save the matcher anew")
        if array.dtype != like.dtype or array.shape[1:] != like.shape[1:]:
            raise SavedMatcherError(
                f"its array `{name}` is {array.dtype}{list(array.shape)}, which is not what this version of "
                "Tocsin keeps there; save the matcher anew"
            )
        return array  # type: ignore[return-value]
    parts = {
        field: rebuilt(part, arrays, f"{name}.{field}" if name else field)
        for field, part in zip(like._fields, like, strict=True)  # type: ignore[attr-defined]
    }
    return type(like)(**parts)
