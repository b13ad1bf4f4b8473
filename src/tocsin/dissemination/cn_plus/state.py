"""Arrays of the minimum rows of subscriptions, and of the broadcasts of changes."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.can.state import SpreadTrees, Zones
from tocsin.dissemination.ds_cn.state import RowChanges

BUCKETS: Final = 512  # a power of two


class BroadcastKind(IntEnum):
    """The kind of change that a broadcast announces."""

    DECREASE = 0  # a row falls at its x: the broadcast carries a tag and ends where nothing can change
    ARRIVAL = 1  # a row comes to x, or stays as it is
    LOSS = 2  # a row leaves x, or rises there


class MinimumRows(NamedTuple):
    """Subscriptions by zone, those of zone z from starts[z] on, and the minimum row of each.

    `counts` is, by zone, the number of subscriptions whose minimum row has an x in a bucket. Where that is 0, no row with
    such an x is a minimum, and the zone's subscriptions are skipped.
    """

    starts: NDArray[np.int64]  # [zones + 1]
    low: NDArray[np.float64]  # [subscriptions]
    high: NDArray[np.float64]
    x: NDArray[np.float64]  # NaN if the range has no row
    height: NDArray[np.float64]  # inf if the range has no row
    counts: NDArray[np.int32]  # [zones, BUCKETS]
    highest: NDArray[np.float64]  # [zones] an upper bound of the heights; -inf where there is no subscription


class Broadcasts(NamedTuple):
    """Broadcasts over the quadrant of one x; those of a change stand next to each other."""

    change: NDArray[np.int64]  # [broadcasts]
    x: NDArray[np.float64]
    height: NDArray[np.float64]  # of the row that goes, else of the row that comes
    kind: NDArray[np.int64]


class BroadcastPlan(NamedTuple):
    """The broadcasts of a batch, and the zones that they can reach."""

    changes: RowChanges
    broadcasts: Broadcasts
    trees: SpreadTrees  # over the whole quadrant of each broadcast
    zones: Zones


class ReachedZones(NamedTuple):
    """By entry of the trees: whether the broadcast got there, and its tag; `entry` is each zone's latest entry."""

    is_reached: NDArray[np.bool_]  # [entries]
    above: NDArray[np.float64]  # [entries] c1: ranges that begin above it, but not above x
    below: NDArray[np.float64]  # [entries] c2: and end below it
    entry: NDArray[np.int64]  # [zones]
