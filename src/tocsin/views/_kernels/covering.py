"""How many subscriptions have each range."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures import hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import kernel

USES: Final = 2  # the column behind a range's two ends


@kernel
def cover(index: HashIndex, ends: Int64s, entries: Int64s) -> int:
    """Count ranges, given by the bits of their ends; there must be room for all of them.

    Write the entries of those that are new, and their positions behind; return how many.
    """
    fresh, half = np.int64(0), entries.shape[0] // 2
    for i in range(ends.shape[0]):
        entry = np.int64(hash_index.find(index, ends[i, 0], ends[i, 1], 0))
        if entry < 0:
            entry = np.int64(hash_index.insert(index, ends[i, 0], ends[i, 1], 0))
            index.keys[entry, USES] = 0
            entries[fresh] = entry
            entries[half + fresh] = i
            fresh += 1
        index.keys[entry, USES] += 1
    return fresh


@kernel
def uncover(index: HashIndex, ends: Int64s, entries: Int64s) -> int:
    """Count ranges off; write the entries of those that nobody has any more, and return how many."""
    gone = np.int64(0)
    for i in range(ends.shape[0]):
        entry = np.int64(hash_index.find(index, ends[i, 0], ends[i, 1], 0))
        if entry < 0:
            continue
        index.keys[entry, USES] -= 1
        if index.keys[entry, USES] == 0:
            hash_index.remove(index, entry)
            entries[gone] = entry
            gone += 1
    return gone
