"""Arrays of the rows along the diagonal, and of their changes."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ended(IntEnum):
    """Why a kernel that applies changes returned."""

    DONE = 0
    NO_ROOM = 1  # for output
    NO_ROOM_FOR_ROWS = 2
    ABSENT = 3  # the next change's old row is not stored


class DiagonalRows(NamedTuple):
    """Rows by position on the diagonal; those of position p stand from starts[p] on, sorted by x, then height.

    A height is y, or -y for `max`, so the lowest row always wins. The rest of a position's block, up to the start of the
    next, is free.
    """

    starts: NDArray[np.int64]  # [positions + 1]
    counts: NDArray[np.int64]  # [positions]
    lowest: NDArray[np.float64]  # [positions] the lowest height; inf where there is no row
    x: NDArray[np.float64]  # [room]
    height: NDArray[np.float64]  # [room]


class RowChanges(NamedTuple):
    """Changes of rows, in order; where there is no row, x and height are NaN and the position is -1."""

    old_x: NDArray[np.float64]  # [changes]
    old_height: NDArray[np.float64]
    new_x: NDArray[np.float64]
    new_height: NDArray[np.float64]
    old_position: NDArray[np.int64]
    new_position: NDArray[np.int64]
