"""The arrays of the rows that subscriptions keep, and of the changes that go through the network."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import SpreadTrees, Zones
from tocsin.dissemination.ds_cn.state import Moves

BUCKETS: Final = 512  # a power of two

# sorts of passes
CUT: Final = 0  # a row falls at its x: the pass goes no further than it may alter anything
COMES: Final = 1  # a row comes to x, or stays as it is
GOES: Final = 2  # a row goes from x, or rises there


class Kept(NamedTuple):
    """Subscriptions by zone, those of zone z from starts[z] on, and the minimum row of each.

    `counts` says, by zone, how many of its subscriptions have a minimum row whose x falls into a bucket: where that is none,
    no row of such an x is anybody's minimum, and nobody has to be looked at.
    """

    starts: NDArray[np.int64]  # [zones + 1]
    low: NDArray[np.float64]  # [subscriptions]
    high: NDArray[np.float64]
    x: NDArray[np.float64]  # NaN if the range has no row
    height: NDArray[np.float64]  # inf if the range has no row
    counts: NDArray[np.int32]  # [zones, BUCKETS]
    most: NDArray[np.float64]  # [zones] no subscription's height is greater; -inf where there is none


class Passes(NamedTuple):
    """Ways of a change through the network, over the quadrant of one x; those of a change one after another."""

    change: NDArray[np.int64]  # [passes]
    x: NDArray[np.float64]
    height: NDArray[np.float64]  # of what goes, or else of what comes
    sort: NDArray[np.int64]


class Passing(NamedTuple):
    """What a batch's passes go by."""

    moves: Moves
    passes: Passes
    spread: SpreadTrees  # over the whole quadrant of each pass
    zones: Zones


class Reached(NamedTuple):
    """By entry of the spread: whether the pass got there, and how far it may go on; `entry` is each zone's latest entry."""

    is_reached: NDArray[np.bool_]  # [entries]
    above: NDArray[np.float64]  # [entries] only ranges that begin above it, but not above x
    below: NDArray[np.float64]  # [entries] and end below it
    entry: NDArray[np.int64]  # [zones]
