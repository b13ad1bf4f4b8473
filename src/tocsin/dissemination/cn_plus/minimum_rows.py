"""Finding the minimum row of each subscription."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.cn_plus._kernels.broadcasts import count_minima
from tocsin.dissemination.cn_plus.state import BUCKETS, MinimumRows
from tocsin.matching import IdArray
from tocsin.views.changes import Floats


def minimum_rows(
    zones: IdArray, number: int, lows: Floats, highs: Floats, rows: tuple[Floats, Floats]
) -> MinimumRows:
    """Return the minimum rows, among rows (x, height), of subscriptions sorted by zone; there are `number` zones."""
    starts = np.searchsorted(zones, np.arange(number + 1))
    x, height = lowest_in_ranges(*rows, lows, highs)
    counts = np.zeros((number, BUCKETS), dtype=np.int32)
    minima = MinimumRows(starts.astype(np.int64), lows, highs, x, height, counts, np.empty(number))
    count_minima(minima)
    return minima


def lowest_in_ranges(x: Floats, height: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Return x and height of the lowest row within each range, the first of equal ones; NaN and inf if there is none."""
    order = np.lexsort((height, x))
    x, height = x[order], height[order]
    begin, end = np.searchsorted(x, lows), np.searchsorted(x, highs, side="right")
    # A sparse table: lowest[k][i] is the lowest of the 2**k rows from i on; two of these cover any range.
    lowest = [np.arange(len(x))]
    while (width := 1 << len(lowest)) <= len(x):
        one = lowest[-1][: len(x) - width + 1]
        other = lowest[-1][width // 2 : width // 2 + len(one)]
        lowest.append(np.where(height[one] <= height[other], one, other))
    found_x, found = np.full(len(lows), np.nan), np.full(len(lows), np.inf)
    sizes = np.frexp(np.maximum(end - begin, 0))[1] - 1
    for size, among in enumerate(lowest):
        these = np.flatnonzero(sizes == size)
        one, other = among[begin[these]], among[end[these] - (1 << size)]
        least = np.where(height[one] <= height[other], one, other)
        found_x[these], found[these] = x[least], height[least]
    return found_x, found
