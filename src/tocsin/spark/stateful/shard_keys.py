"""Keys of shards that Spark's hash partitioning spreads evenly."""

from __future__ import annotations

from typing import Final

_SEED: Final = 42  # of Spark's hash of grouping keys
_LOW: Final = 0xFFFFFFFF


def shard_keys(shards: int) -> tuple[int, ...]:
    """Return a key for each shard, such that each has a partition of its own where there are as many partitions.

    The keys are part of a checkpoint: the same number of shards always has the same ones.

    >>> shard_keys(4), sorted(spark_hash(key) % 4 for key in shard_keys(4))
    ((2, 0, 14, 3), [0, 1, 2, 3])
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < shards:
        found.setdefault(spark_hash(key) % shards, key)
        key += 1
    return tuple(found[place] for place in range(shards))


def spark_hash(key: int) -> int:
    """Return Spark's hash of a long, as Java has it (Murmur3 over its two halves, x86, 32 bits).

    Spark takes the remainder as Python does: it is never negative.
    """
    state = _SEED
    for half in (key & _LOW, key >> 32 & _LOW):
        mixed = half * 0xCC9E2D51 & _LOW
        mixed = (mixed << 15 | mixed >> 17) & _LOW
        state ^= mixed * 0x1B873593 & _LOW
        state = (state << 13 | state >> 19) & _LOW
        state = (state * 5 + 0xE6546B64) & _LOW
    state ^= 8
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = (state ^ state >> shift) * factor & _LOW
    return state - (1 << 32) if state >> 31 else state
