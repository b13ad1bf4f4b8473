"""The arrays of the rows along the diagonal, and of the changes that they go through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """Rows by place on the diagonal; those of place p stand from starts[p] on, by x, then height.

    A height is y, or -y where the greatest is asked for: low ones count. Behind a place's rows is room for more, up to
    where the next place's begin.
    """

    starts: NDArray[np.int64]  # [places + 1]
    counts: NDArray[np.int64]  # [places]
    least: NDArray[np.float64]  # [places] the least height; inf where there is no row
    x: NDArray[np.float64]  # [room]
    height: NDArray[np.float64]  # [room]


class Moves(NamedTuple):
    """Changes of rows, in order; where there is no row, x and height are NaN and the place is -1."""

    old_x: NDArray[np.float64]  # [changes]
    old_height: NDArray[np.float64]
    new_x: NDArray[np.float64]
    new_height: NDArray[np.float64]
    old_place: NDArray[np.int64]
    new_place: NDArray[np.int64]
