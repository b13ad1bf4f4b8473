"""What a change can do to ranges that ask for the least y (database/network interface, §2.3.1, Corollary 1)."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tocsin.views._kernels.influence import BAD, GOOD, IGNORABLE
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.extremes import Extremes


class Influence(IntEnum):
    """How much of the table is needed to tell whom a change reaches, and what to tell them."""

    IGNORABLE = IGNORABLE  # it alters no range's minimum
    GOOD = GOOD  # its new y is the new minimum of every range it alters
    BAD = BAD  # it may expose other points, or a point that goes may leave ranges with none


def classify(x: Floats, y: Floats, changes: PointChanges) -> NDArray[np.int8]:
    """Return the `Influence` of each change, made one after another to a table of the points (x, y).

    A point that comes is good, if it is not ignorable; one that goes is bad. One that moves in x is bad if ranges without
    its new x lose it, or if its y rises for ranges with both.
    """
    reformulator = Extremes()
    reformulator.load(x, y)
    return reformulator.follow(changes)[1]
