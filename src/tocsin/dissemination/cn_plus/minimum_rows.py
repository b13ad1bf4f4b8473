"""Finding the row that each subscription keeps."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.cn_plus._kernels.broadcasts import count_minima
from tocsin.dissemination.cn_plus.state import BUCKETS, Kept
from tocsin.matching import IdArray
from tocsin.views.changes import Floats


def kept_by(zones: IdArray, number: int, lows: Floats, highs: Floats, rows: tuple[Floats, Floats]) -> Kept:
    """Return what subscriptions of some ranges keep, which are given by zone, of so many, of the rows (x, height)."""
    starts = np.searchsorted(zones, np.arange(number + 1))
    x, height = least_rows(*rows, lows, highs)
    counts = np.zeros((number, BUCKETS), dtype=np.int32)
    kept = Kept(starts.astype(np.int64), lows, highs, x, height, counts, np.empty(number))
    count_minima(kept)
    return kept


def least_rows(x: Floats, height: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Return x and height of the lowest row within each range, of equal ones the first; NaN and inf if there is none."""
    order = np.lexsort((height, x))
    x, height = x[order], height[order]
    begin, end = np.searchsorted(x, lows), np.searchsorted(x, highs, side="right")
    # lowest[k] is, by place, the lowest of 2**k rows from there on; two of these cover any range.
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
