"""A hash index from keys of up to three integers to entry numbers, which grows one bucket at a time.

Linear hashing (Litwin 1980) with chains: when entries outnumber buckets, one bucket is split, so that no insertion pays
for a whole table. The number of a removed entry is reused by the next key.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import free_lists
from tocsin.structures.array_types import Int32s, Int64s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper, kernel, wrapping_helper

NONE: Final = -1


class HashCounter(IntEnum):
    """Positions in the counters of a hash index."""

    LIVE = 0  # entries in use
    TOP = 1  # entries ever in use: numbers from here on are new
    FREE = 2  # the first entry of the free list, or NONE
    MASK = 3  # buckets at the last doubling, less one
    SPLIT = 4  # the bucket to be split next
    WIDTH = 5  # integers in a key


class HashIndex(NamedTuple):
    """All arrays but `counters` have one length, the capacity in entries and in buckets."""

    heads: Int32s  # [capacity] by bucket: its first entry
    chain: Int32s  # [capacity] by entry: the next in its bucket, or in the free list
    keys: Int64s  # [capacity, width + extra] by entry: its key, then the user's columns
    counters: Int64s  # [HashCounter]


def new_hash_index(width: int, extra: int = 0, capacity: int = 64) -> HashIndex:
    """Return an empty index whose keys have `width` integers, followed by `extra` columns for the user."""
    counters = np.zeros(len(HashCounter), dtype=np.int64)
    counters[HashCounter.WIDTH] = width
    counters[HashCounter.FREE] = NONE
    index = zeros(HashIndex, capacity, keys=width + extra, counters=counters)
    index.heads[0] = NONE
    return index


def with_room(index: HashIndex, more: int) -> HashIndex:
    """Return the index with room for `more` further entries."""
    return grown(index, ("heads", "chain", "keys"), top_entry(index) + more + 1)


def live_entries(index: HashIndex) -> int:
    """Return the number of keys in the index."""
    return int(index.counters[HashCounter.LIVE])


def top_entry(index: HashIndex) -> int:
    """Return the number above every entry number ever in use."""
    return int(index.counters[HashCounter.TOP])


@helper
def has_room(index: HashIndex, more: int) -> bool:
    """Tell whether there is room for `more` further entries."""
    return index.counters[HashCounter.TOP] + more < index.chain.shape[0]


@wrapping_helper
def _hashed(a: int, b: int, c: int) -> int:
    """Return a non-negative hash of three integers: a product and a shift for each."""
    # Through int64, because NumPy refuses to turn a negative Python integer into a uint64.
    mixed = np.uint64(np.int64(a)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed + np.uint64(np.int64(b))) * np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed + np.uint64(np.int64(c))) * np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(0x7FFFFFFFFFFFFFFF))


@helper
def _bucket(counters: Int64s, hashed: int) -> int:
    mask = counters[HashCounter.MASK]
    bucket = hashed & mask
    if bucket < counters[HashCounter.SPLIT]:
        bucket = hashed & (2 * mask + 1)
    return bucket


@helper
def _equal(index: HashIndex, entry: int, a: int, b: int, c: int) -> bool:
    width, keys = index.counters[HashCounter.WIDTH], index.keys
    return keys[entry, 0] == a and (width < 2 or keys[entry, 1] == b) and (width < 3 or keys[entry, 2] == c)


@helper
def _hash_of(index: HashIndex, entry: int) -> int:
    width, keys = index.counters[HashCounter.WIDTH], index.keys
    b = keys[entry, 1] if width > 1 else np.int64(0)
    c = keys[entry, 2] if width > 2 else np.int64(0)
    return _hashed(keys[entry, 0], b, c)


@helper
def bucket_of(index: HashIndex, a: int, b: int, c: int) -> int:
    """Return the bucket of a key, for callers that prefetch `heads[bucket]` before they call `find_in`."""
    return _bucket(index.counters, _hashed(a, b, c))


@helper
def find_in(index: HashIndex, bucket: int, a: int, b: int, c: int) -> int:
    """Return the entry of a key whose bucket is known, or NONE."""
    entry = np.int64(index.heads[bucket])
    while entry >= 0 and not _equal(index, entry, a, b, c):
        entry = np.int64(index.chain[entry])
    return entry


@kernel
def find(index: HashIndex, a: int, b: int, c: int) -> int:
    """Return the entry of a key, or NONE. Integers beyond the width must be zero."""
    return find_in(index, bucket_of(index, a, b, c), a, b, c)


@kernel
def insert(index: HashIndex, a: int, b: int, c: int) -> int:
    """Insert a key that is not in the index and return its entry; `has_room` must hold."""
    heads, chain, keys, counters = index.heads, index.chain, index.keys, index.counters
    entry = free_lists.take(chain, counters, HashCounter.FREE, HashCounter.TOP)
    keys[entry, 0] = a
    if counters[HashCounter.WIDTH] > 1:
        keys[entry, 1] = b
    if counters[HashCounter.WIDTH] > 2:
        keys[entry, 2] = c
    counters[HashCounter.LIVE] += 1
    if counters[HashCounter.LIVE] > counters[HashCounter.MASK] + 1 + counters[HashCounter.SPLIT]:
        _split(index)
    bucket = _bucket(counters, _hashed(a, b, c))
    chain[entry] = heads[bucket]
    heads[bucket] = entry
    return entry


@helper
def _split(index: HashIndex) -> None:
    """Divide the chain of the next bucket between it and a new one."""
    heads, chain, counters = index.heads, index.chain, index.counters
    mask, old = counters[HashCounter.MASK], counters[HashCounter.SPLIT]
    new = old + mask + 1
    entry = np.int64(heads[old])
    heads[old] = NONE
    heads[new] = NONE
    while entry >= 0:
        following = np.int64(chain[entry])
        bucket = _hash_of(index, entry) & (2 * mask + 1)
        chain[entry] = heads[bucket]
        heads[bucket] = entry
        entry = following
    counters[HashCounter.SPLIT] += 1
    if counters[HashCounter.SPLIT] > mask:
        counters[HashCounter.MASK] = 2 * mask + 1
        counters[HashCounter.SPLIT] = 0


@kernel
def remove(index: HashIndex, entry: int) -> None:
    """Remove an entry; its number goes to the free list."""
    heads, chain, counters = index.heads, index.chain, index.counters
    bucket = _bucket(counters, _hash_of(index, entry))
    if heads[bucket] == entry:
        heads[bucket] = chain[entry]
    else:
        before = np.int64(heads[bucket])
        while chain[before] != entry:
            before = np.int64(chain[before])
        chain[before] = chain[entry]
    free_lists.give(chain, counters, HashCounter.FREE, entry)
    counters[HashCounter.LIVE] -= 1
