"""Tallies of the points within ranges, from the tallies of blocks and of a few points at both ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import helper, kernel
from tocsin.structures.sorted_blocks import BLOCK, SortedBlocks, lower_bound
from tocsin.structures.tallies import add_number, add_tally


@kernel
def refresh_tallies(
    points: SortedBlocks, tallies: NDArray[np.int64], sums: NDArray[np.int64], bottom: int
) -> None:
    """Tally anew the blocks that changed, and write the tally of all blocks before each entry, and after the last.

    `tallies` are by block; the second of each pair is what is summed.
    """
    width = tallies.shape[1]
    for j in range(width):
        sums[0, j] = 0
    for entry in range(points.used[0]):
        block = points.block[entry]
        if points.stale[block]:
            for j in range(width):
                tallies[block, j] = 0
            for place in range(points.size[entry]):
                add_number(tallies, block, bottom, points.second[block, place], 1)
            points.stale[block] = False
        for j in range(width):
            sums[entry + 1, j] = sums[entry, j]
        add_tally(sums, entry + 1, tallies, block, 1)


@kernel
def tally_ranges(
    points: SortedBlocks,
    sums: NDArray[np.int64],
    bottom: int,
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    found: NDArray[np.int64],
) -> None:
    """Write the tally of the points whose first lies within each range, both ends included."""
    for i in range(lows.shape[0]):
        for j in range(found.shape[1]):
            found[i, j] = 0
        for sign, first, second in ((-1, lows[i], -np.inf), (1, highs[i], np.inf)):
            _add_below(points, sums, bottom, lower_bound(points, first, second), found, i, sign)


@helper
def _add_below(
    points: SortedBlocks,
    sums: NDArray[np.int64],
    bottom: int,
    end: int,
    found: NDArray[np.int64],
    row: int,
    sign: int,
) -> None:
    """Add the tally of all points before a place to a row, or if `sign` is -1 take it away."""
    entry, places = end // BLOCK, end % BLOCK
    add_tally(found, row, sums, entry, sign)
    block = points.block[entry]
    for place in range(places):
        add_number(found, row, bottom, points.second[block, place], sign)
