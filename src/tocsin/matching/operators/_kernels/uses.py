"""Counts of the predicates that use a test of an attribute, and whether the test is in its operator's index."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import kernel

# The state of a test after a use of it ended
STAYS: Final = 0
UNSEEN: Final = 1  # removed, and it was in no index
GONE: Final = 2  # removed, and to be removed from its index


class Uses(NamedTuple):
    """Tests by entry."""

    entries: HashIndex  # keys: attribute, code
    count: NDArray[np.int32]  # predicates that use it
    indexed: NDArray[np.uint8]  # whether it is in an index


@kernel
def add_uses(
    uses: Uses,
    attributes: NDArray[np.int64],
    codes: NDArray[np.int64],
    more: NDArray[np.int64],
    fresh: NDArray[np.uint8],
) -> None:
    """Count `more` uses of each test and mark the new ones in `fresh`; there must be room for all."""
    for i in range(codes.shape[0]):
        entry = hash_index.find(uses.entries, attributes[i], codes[i], 0)
        if entry < 0:
            entry = hash_index.insert(uses.entries, attributes[i], codes[i], 0)
            uses.count[entry] = 0
            uses.indexed[entry] = 0
            fresh[i] = 1
        uses.count[entry] += more[i]


@kernel
def take_uses(
    uses: Uses, attributes: NDArray[np.int64], codes: NDArray[np.int64], fate: NDArray[np.uint8]
) -> None:
    """Count one use less of each test and write its state to `fate`."""
    for i in range(codes.shape[0]):
        entry = hash_index.find(uses.entries, attributes[i], codes[i], 0)
        uses.count[entry] -= 1
        fate[i] = STAYS
        if uses.count[entry] == 0:
            fate[i] = GONE if uses.indexed[entry] else UNSEEN
            hash_index.remove(uses.entries, entry)


@kernel
def claim(
    uses: Uses, attributes: NDArray[np.int64], codes: NDArray[np.int64], wanted: NDArray[np.uint8]
) -> None:
    """Mark the tests that are present and in no index, and set them to be in one."""
    for i in range(codes.shape[0]):
        entry = hash_index.find(uses.entries, attributes[i], codes[i], 0)
        wanted[i] = entry >= 0 and not uses.indexed[entry]
        if wanted[i]:
            uses.indexed[entry] = 1
