"""Constants that Python and the kernels of views share."""

from __future__ import annotations

from enum import IntEnum


class Influence(IntEnum):
    """What a change of a point can do to ranges that ask for the least y (database/network interface, §2.3.1, Corollary 1).

    An insertion that is not ignorable is good, and such a deletion is bad. A point that moves in x is bad if ranges without
    its new x lose it, or if its y rises for ranges with both.
    """

    IGNORABLE = 0  # it changes no range's minimum
    GOOD = 1  # its new y is the new minimum of every range it changes
    BAD = 2  # it may expose other points, or a point that goes may leave ranges with none
