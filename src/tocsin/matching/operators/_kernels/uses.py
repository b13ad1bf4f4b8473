"""Counts of the predicates that use a test of an attribute, and whether the test is in its operator's index."""

from __future__ import annotations

from typing import Final, NamedTuple

from tocsin.structures import hash_index
from tocsin.structures.array_types import Int32s, Int64s, UInt8s
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import kernel

# The state of a test after a use of it ended
STAYS: Final = 0
UNSEEN: Final = 1  # removed, and it was in no index
GONE: Final = 2  # removed, and to be removed from its index


class Uses(NamedTuple):
    """Tests by entry."""

    entries: HashIndex  # keys: attribute, code
    count: Int32s  # predicates that use it
    indexed: UInt8s  # whether it is in an index


@kernel
def add_uses(uses: Uses, attributes: Int64s, codes: Int64s, more: Int64s, fresh: UInt8s) -> None:
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
def take_uses(uses: Uses, attributes: Int64s, codes: Int64s, fate: UInt8s) -> None:
    """Count one use less of each test and write its state to `fate`."""
    for i in range(codes.shape[0]):
        entry = hash_index.find(uses.entries, attributes[i], codes[i], 0)
        uses.count[entry] -= 1
        fate[i] = STAYS
        if uses.count[entry] == 0:
            fate[i] = GONE if uses.indexed[entry] else UNSEEN
            hash_index.remove(uses.entries, entry)


@kernel
def claim(uses: Uses, attributes: Int64s, codes: Int64s, wanted: UInt8s) -> None:
    """Mark the tests that are present and in no index, and set them to be in one."""
    for i in range(codes.shape[0]):
        entry = hash_index.find(uses.entries, attributes[i], codes[i], 0)
        wanted[i] = entry >= 0 and not uses.indexed[entry]
        if wanted[i]:
            uses.indexed[entry] = 1
