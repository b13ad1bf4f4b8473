"""A multiset of pairs of floats in order, in blocks of bounded size, with cheap inserts and deletes.

A directory names the blocks in order, with the first pair of each beside it, so that a search costs two binary searches
and an insertion moves at most one block's pairs and, once in many, the directory. A user that keeps
something for each block learns from `stale` which blocks have changed.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np

from tocsin.structures.array_types import Bools, Float64s, Int64s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper, kernel

BLOCK: Final = 256  # pairs in a block; a power of two, so that one integer gives a block and an offset
_COLUMNS: Final = ("first", "second", "low_first", "low_second", "block", "size", "stale")


PairChanges: TypeAlias = Float64s
"""[4, changes] first and second of the old pair, then of the new: a change deletes the old pair, then inserts the new; NaN
stands for no pair."""


class SortedBlocks(NamedTuple):
    """Entries of the directory are in the order of their pairs; blocks lie anywhere."""

    first: Float64s  # [blocks, BLOCK]
    second: Float64s  # [blocks, BLOCK]
    low_first: Float64s  # [entries] the first pair of each block
    low_second: Float64s  # [entries]
    block: Int64s  # [entries] the number of each block; beyond those in use, the free ones
    size: Int64s  # [entries] pairs, less than BLOCK; only a sole block is ever empty
    stale: Bools  # [blocks] whether it changed since the user set it to False
    used: Int64s  # [1] entries in use


def new_sorted_blocks() -> SortedBlocks:
    """Return an empty multiset: one block with no pair."""
    whole = np.ones(1, dtype=np.bool_)
    empty = zeros(SortedBlocks, 1, first=BLOCK, second=BLOCK, stale=whole, used=np.ones(1, dtype=np.int64))
    return with_room(empty, 1)


def with_room(blocks: SortedBlocks, pairs: int) -> SortedBlocks:
    """Return the multiset with room for one more pair anywhere, and for `pairs` if they come in order."""
    before = len(blocks.block)
    blocks = grown(blocks, _COLUMNS, int(blocks.used[0]) + 1 + pairs // (BLOCK // 2))
    blocks.block[before:] = np.arange(before, len(blocks.block))
    return blocks


def of_pairs(first: Float64s, second: Float64s) -> SortedBlocks:
    """Return a multiset of pairs, which must be in order."""
    none = np.full(len(first), np.nan)
    changes = np.array((none, none, first, second))
    blocks, reached = new_sorted_blocks(), 0
    while reached < len(first):
        blocks, reached = with_changes(blocks, changes, reached)
    return blocks


def with_changes(blocks: SortedBlocks, changes: PairChanges, begin: int) -> tuple[SortedBlocks, int]:
    """Make changes from `begin` on; return the multiset and the number made, or -1 - i.

    Fewer than all are made where there was no room; the multiset then has room for the rest. -1 - i says that change i
    deletes a pair that is not there; the changes before it are made. Use only the returned multiset afterwards.
    """
    reached = change_pairs(blocks, changes, begin)
    if 0 <= reached < changes.shape[1]:
        blocks = with_room(blocks, changes.shape[1] - reached)
    return blocks, reached


@helper
def has_room(blocks: SortedBlocks) -> bool:
    """Tell whether one more pair fits, even if it fills its block, which is split then."""
    return blocks.used[0] < blocks.block.shape[0]


@kernel
def lower_bound(blocks: SortedBlocks, first: float, second: float) -> int:
    """Return the position of the first pair that is not below this one: its entry times BLOCK plus its offset in the block.

    Without such a pair it is the position after the last pair, in the last entry, since no block is full. The pair before
    it is at the offset before, or the last of the entry before.
    """
    low, high = np.int64(0), blocks.used[0] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        there = blocks.low_first[middle]
        if there < first or (there == first and blocks.low_second[middle] < second):
            low = middle
        else:
            high = middle - 1
    entry, block = low, blocks.block[low]
    low, high = np.int64(0), blocks.size[entry]
    while low < high:
        middle = (low + high) >> 1
        there = blocks.first[block, middle]
        if there < first or (there == first and blocks.second[block, middle] < second):
            low = middle + 1
        else:
            high = middle
    if low == blocks.size[entry] and entry + 1 < blocks.used[0]:
        return (entry + 1) * BLOCK
    return entry * BLOCK + low


@helper
def insert(blocks: SortedBlocks, first: float, second: float) -> None:
    """Insert a pair; `has_room` must hold."""
    at = np.int64(lower_bound(blocks, first, second))
    entry, offset = at // BLOCK, at % BLOCK
    # Behind the pair before it, not in front of the next one: so the last block, too, fills from its end.
    if offset == 0 and entry > 0:
        entry -= 1
        offset = blocks.size[entry]
    block = blocks.block[entry]
    for i in range(blocks.size[entry], offset, -1):
        blocks.first[block, i] = blocks.first[block, i - 1]
        blocks.second[block, i] = blocks.second[block, i - 1]
    blocks.first[block, offset] = first
    blocks.second[block, offset] = second
    blocks.size[entry] += 1
    blocks.stale[block] = True
    if offset == 0:
        blocks.low_first[entry] = first
        blocks.low_second[entry] = second
    if blocks.size[entry] == BLOCK:
        # Pairs that come in order leave their blocks three quarters full.
        is_last = offset + 1 == BLOCK and entry + 1 == blocks.used[0]
        _split(blocks, entry, np.int64(BLOCK - BLOCK // 4 if is_last else BLOCK // 2))


@helper
def _split(blocks: SortedBlocks, entry: int, half: int) -> None:
    """Move the pairs of a full block from `half` on to a free block behind it."""
    used = blocks.used[0]
    block, other = blocks.block[entry], blocks.block[used]
    for i in range(half, BLOCK):
        blocks.first[other, i - half] = blocks.first[block, i]
        blocks.second[other, i - half] = blocks.second[block, i]
    for i in range(used, entry + 1, -1):
        blocks.low_first[i] = blocks.low_first[i - 1]
        blocks.low_second[i] = blocks.low_second[i - 1]
        blocks.block[i] = blocks.block[i - 1]
        blocks.size[i] = blocks.size[i - 1]
    blocks.low_first[entry + 1] = blocks.first[other, 0]
    blocks.low_second[entry + 1] = blocks.second[other, 0]
    blocks.block[entry + 1] = other
    blocks.size[entry + 1] = BLOCK - half
    blocks.size[entry] = half
    blocks.stale[block] = blocks.stale[other] = True
    blocks.used[0] = used + 1


@helper
def delete(blocks: SortedBlocks, first: float, second: float) -> bool:
    """Delete one pair that equals this one; return whether there was any."""
    at = np.int64(lower_bound(blocks, first, second))
    entry, offset = at // BLOCK, at % BLOCK
    block = blocks.block[entry]
    if (
        offset == blocks.size[entry]
        or blocks.first[block, offset] != first
        or blocks.second[block, offset] != second
    ):
        return False
    blocks.size[entry] -= 1
    for i in range(offset, blocks.size[entry]):
        blocks.first[block, i] = blocks.first[block, i + 1]
        blocks.second[block, i] = blocks.second[block, i + 1]
    blocks.low_first[entry] = blocks.first[block, 0]
    blocks.low_second[entry] = blocks.second[block, 0]
    blocks.stale[block] = True
    left = _mergeable_entry(blocks, entry)
    if left >= 0:
        _merge(blocks, left)
    return True


@helper
def _mergeable_entry(blocks: SortedBlocks, entry: int) -> int:
    """Return the left one of two neighbours, one of them `entry`, whose pairs fit in half a block; -1 if there are none."""
    used = blocks.used[0]
    if entry + 1 < used and blocks.size[entry] + blocks.size[entry + 1] <= BLOCK // 2:
        return entry
    if entry > 0 and blocks.size[entry - 1] + blocks.size[entry] <= BLOCK // 2:
        return entry - 1
    # An empty block is merged whatever its neighbour holds; a lone one (used - 2 is -1) stays.
    return min(entry, used - 2) if blocks.size[entry] == 0 else np.int64(-1)


@helper
def _merge(blocks: SortedBlocks, left: int) -> None:
    """Append the pairs of entry `left + 1` to the block of `left`, and free the other block."""
    block, other = blocks.block[left], blocks.block[left + 1]
    begin = blocks.size[left]
    for i in range(blocks.size[left + 1]):
        blocks.first[block, begin + i] = blocks.first[other, i]
        blocks.second[block, begin + i] = blocks.second[other, i]
    blocks.size[left] += blocks.size[left + 1]
    blocks.low_first[left] = blocks.first[block, 0]
    blocks.low_second[left] = blocks.second[block, 0]
    blocks.stale[block] = True
    used = blocks.used[0] - 1
    for i in range(left + 1, used):
        blocks.low_first[i] = blocks.low_first[i + 1]
        blocks.low_second[i] = blocks.low_second[i + 1]
        blocks.block[i] = blocks.block[i + 1]
        blocks.size[i] = blocks.size[i + 1]
    blocks.block[used] = other  # free blocks are numbered behind those in use
    blocks.used[0] = used


@kernel
def change_pairs(blocks: SortedBlocks, changes: PairChanges, begin: int) -> int:
    """Make changes from `begin` on and return the number made; -1 - i if change i deletes a pair that is not there."""
    for i in range(begin, changes.shape[1]):
        if not has_room(blocks):
            return i
        old, new = changes[0, i], changes[2, i]
        if not np.isnan(old) and not delete(blocks, old, changes[1, i]):
            return -1 - i
        if not np.isnan(new):
            insert(blocks, new, changes[3, i])
    return changes.shape[1]
