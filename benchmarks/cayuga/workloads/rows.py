"""Many subscriptions of few shapes: a template for each, and its parameters by the column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language import Template
from tocsin.matching import IdArray


class Rows(Struct, frozen=True):
    """Subscriptions of one template: their numbers, and a column of constants for each parameter."""

    text: str
    numbers: IdArray  # int64[rows]
    columns: Mapping[str, NDArray[Any]]  # name -> [rows]

    def __len__(self) -> int:
        return len(self.numbers)

    def template(self) -> Template:
        """Return the text, read."""
        return Template(self.text)


def split(keys: NDArray[np.integer[Any]]) -> list[NDArray[np.int64]]:
    """Return the places of equal rows of a matrix, each group in ascending order."""
    if not len(keys):
        return []
    _, groups = np.unique(keys, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
