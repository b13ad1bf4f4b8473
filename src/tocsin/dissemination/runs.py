"""Runs of equal lines in columns that are in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_first(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the lines that differ from the one before in some column, the first line among them."""
    found = np.zeros(len(columns[0]), dtype=np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found
