"""From the conjunctions that events satisfy to the ids of their subscriptions."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import helper, kernel, prefetch

__all__ = ["UNSURE", "gather_ids"]

UNSURE: Final = 1 << 40  # added to a conjunction that holds if Python says so of its residual predicates
_SHORT: Final = 256  # ids for which gaps are quicker than a heap


@kernel
def gather_ids(
    keys: NDArray[np.int64],
    owner: NDArray[np.int32],
    found: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ids: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Turn conjunctions into their subscriptions' ids, per event ascending and without repeats.

    `keys` are the ids by entry, `owner` the entry by conjunction. Those of event i are `ids[ends[i]:ends[i + 1]]`.
    A negative conjunction was refused, and is left out.
    """
    count = np.int64(0)
    ends[0] = 0
    for event in range(offsets.shape[0] - 1):
        begin = count
        # Where there are many subscriptions, each look-up waits for memory: ask for all of an event's before any.
        for i in range(offsets[event], offsets[event + 1]):
            prefetch(owner, max(found[i], np.int64(0)))
        for i in range(offsets[event], offsets[event + 1]):
            prefetch(keys, np.int64(owner[max(found[i], np.int64(0))]) * keys.shape[1])
        for i in range(offsets[event], offsets[event + 1]):
            if found[i] >= 0:
                ids[count] = keys[owner[found[i]], 0]
                count += 1
        _sort(ids, begin, count)
        kept = begin
        for i in range(begin, count):
            if kept == begin or ids[kept - 1] != ids[i]:
                ids[kept] = ids[i]
                kept += 1
        count = kept
        ends[event + 1] = count


@helper
def _sort(values: NDArray[np.int64], begin: int, end: int) -> None:
    """Sort a stretch in place: heap sort, or insertion over shrinking gaps where it is short."""
    size = end - begin
    if size <= _SHORT:
        for gap in (57, 23, 10, 4, 1):
            for i in range(begin + gap, end):
                value = values[i]
                k = i
                while k >= begin + gap and values[k - gap] > value:
                    values[k] = values[k - gap]
                    k -= gap
                values[k] = value
        return
    for root in range(size // 2 - 1, -1, -1):
        _sift(values, begin, root, size)
    for last in range(size - 1, 0, -1):
        values[begin], values[begin + last] = values[begin + last], values[begin]
        _sift(values, begin, np.int64(0), last)


@helper
def _sift(values: NDArray[np.int64], begin: int, root: int, size: int) -> None:
    value = values[begin + root]
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and values[begin + child + 1] > values[begin + child]:
            child += 1
        if values[begin + child] <= value:
            break
        values[begin + root] = values[begin + child]
        root = child
    values[begin + root] = value
