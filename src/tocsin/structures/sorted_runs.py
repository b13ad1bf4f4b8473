"""Many sorted sequences of (key, value) in one memory, with cheap inserts.

A run is a row of leaves in key order, each a short sorted array; a full leaf is split in two. A directory names a run's leaves
in order. So a search costs two binary searches, and an insertion moves at most one leaf's elements and, rarely, one directory.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import free_lists
from tocsin.structures.array_types import Int32s, Int64s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper, kernel

LEAF: Final = 64  # elements in a leaf
_LOW_SHELF: Final = 8


class _Counter(IntEnum):
    TOP_LEAF = 0
    FREE_LEAF = 1
    TOP_SHELF = 2
    TOP_RUN = 3


class SortedRuns(NamedTuple):
    """Leaves, runs and shelves (the words of the directories) grow separately."""

    keys: Int64s  # [leaves, LEAF] ascending
    values: Int32s  # [leaves, LEAF]
    count: Int32s  # [leaves] elements; of a free leaf, the next free one
    shelf: Int64s  # [runs] first word of the directory
    room: Int32s  # [runs] words of the directory
    leaves: Int32s  # [runs] leaves in use
    size: Int64s  # [runs] elements
    words: Int32s  # [shelves] leaf numbers, in key order
    free: Int64s  # [32] by the logarithm of its room: the first free directory, or -1
    counters: Int64s  # [_Counter]


def new_sorted_runs() -> SortedRuns:
    """Return an empty memory for runs."""
    counters = np.zeros(len(_Counter), dtype=np.int64)
    counters[_Counter.FREE_LEAF] = -1
    words, free = np.zeros(64, dtype=np.int32), np.full(32, -1, dtype=np.int64)
    return zeros(SortedRuns, 8, keys=LEAF, values=LEAF, words=words, free=free, counters=counters)


def with_room(runs: SortedRuns, elements: int) -> SortedRuns:
    """Return the memory with room for one more element in any run or a new one, and in a few runs for `elements`.

    Where the elements go into many runs, `has_room` tells when to call it again.
    """
    top = runs.counters
    leaves = elements // (LEAF // 4) + 2
    largest = int(runs.room.max(initial=0))
    runs = grown(runs, ("keys", "values", "count"), int(top[_Counter.TOP_LEAF]) + leaves)
    runs = grown(runs, ("shelf", "room", "leaves", "size"), int(top[_Counter.TOP_RUN]) + leaves)
    shelves = max(2 * largest, _LOW_SHELF) + _LOW_SHELF * leaves
    return grown(runs, ("words",), int(top[_Counter.TOP_SHELF]) + shelves)


@kernel
def has_room(runs: SortedRuns, run: int) -> bool:
    """Tell whether one more element fits into a run, even if its leaf and its directory are full."""
    top = runs.counters
    shelves = np.int64(_LOW_SHELF) if run < 0 else 2 * np.int64(runs.room[run])
    return (
        (top[_Counter.TOP_LEAF] + 2 <= runs.keys.shape[0])
        and top[_Counter.TOP_RUN] < runs.shelf.shape[0]
        and top[_Counter.TOP_SHELF] + shelves <= runs.words.shape[0]
    )


@kernel
def new_run(runs: SortedRuns) -> int:
    """Return the number of a new, empty run; `has_room` must hold."""
    run = runs.counters[_Counter.TOP_RUN]
    runs.counters[_Counter.TOP_RUN] += 1
    runs.room[run] = _LOW_SHELF
    runs.shelf[run] = _new_shelf(runs, np.int64(_LOW_SHELF))
    runs.leaves[run] = 1
    runs.size[run] = 0
    runs.words[runs.shelf[run]] = _new_leaf(runs)
    return run


@helper
def _new_leaf(runs: SortedRuns) -> int:
    leaf = free_lists.take(runs.count, runs.counters, _Counter.FREE_LEAF, _Counter.TOP_LEAF)
    runs.count[leaf] = 0
    return leaf


@helper
def _logarithm(room: int) -> int:
    """Return the least exponent whose power of two is at least `room`."""
    exponent = np.int64(0)
    while (np.int64(1) << exponent) < room:
        exponent += 1
    return exponent


@helper
def _new_shelf(runs: SortedRuns, room: int) -> int:
    """Return the offset of a directory with room for this many leaves: a free one of this size, or new words."""
    position = _logarithm(room)
    shelf = runs.free[position]
    if shelf >= 0:
        runs.free[position] = (np.int64(runs.words[shelf]) << 31) + np.int64(runs.words[shelf + 1])
    else:
        shelf = runs.counters[_Counter.TOP_SHELF]
        runs.counters[_Counter.TOP_SHELF] += room
    return shelf


@kernel
def leaf_for(runs: SortedRuns, run: int, key: int) -> int:
    """Return the position, within the run's directory, of the last leaf that begins at or below `key`."""
    shelf = runs.shelf[run]
    low, high = np.int64(0), np.int64(runs.leaves[run]) - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if runs.keys[runs.words[shelf + middle], 0] <= key:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def position_in(runs: SortedRuns, leaf: int, key: int) -> int:
    """Return how many of a leaf's keys lie below `key`."""
    low, high = np.int64(0), np.int64(runs.count[leaf])
    while low < high:
        middle = (low + high) >> 1
        if runs.keys[leaf, middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def insert(runs: SortedRuns, run: int, key: int, value: int) -> None:
    """Insert (key, value) into a run without this key; `has_room` must hold."""
    at = leaf_for(runs, run, key)
    leaf = np.int64(runs.words[runs.shelf[run] + at])
    if runs.count[leaf] == LEAF:
        _split_leaf(runs, run, at)
        at = leaf_for(runs, run, key)
        leaf = np.int64(runs.words[runs.shelf[run] + at])
    position = position_in(runs, leaf, key)
    for i in range(runs.count[leaf], position, -1):
        runs.keys[leaf, i] = runs.keys[leaf, i - 1]
        runs.values[leaf, i] = runs.values[leaf, i - 1]
    runs.keys[leaf, position] = key
    runs.values[leaf, position] = value
    runs.count[leaf] += 1
    runs.size[run] += 1


@helper
def _split_leaf(runs: SortedRuns, run: int, at: int) -> None:
    """Move the upper half of a full leaf to a new leaf, which follows it in the run's directory."""
    leaf = np.int64(runs.words[runs.shelf[run] + at])
    other = _new_leaf(runs)
    half = LEAF // 2
    for i in range(half, LEAF):
        runs.keys[other, i - half] = runs.keys[leaf, i]
        runs.values[other, i - half] = runs.values[leaf, i]
    runs.count[leaf] = half
    runs.count[other] = LEAF - half
    if runs.leaves[run] == runs.room[run]:
        _double_shelf(runs, run)
    shelf = runs.shelf[run]
    for i in range(runs.leaves[run], at + 1, -1):
        runs.words[shelf + i] = runs.words[shelf + i - 1]
    runs.words[shelf + at + 1] = other
    runs.leaves[run] += 1


@helper
def _double_shelf(runs: SortedRuns, run: int) -> None:
    """Move a run's directory to one of twice the size, and free the old one."""
    old, room = runs.shelf[run], np.int64(runs.room[run])
    new = _new_shelf(runs, 2 * room)
    for i in range(room):
        runs.words[new + i] = runs.words[old + i]
    runs.shelf[run] = new
    runs.room[run] = 2 * room
    position = _logarithm(room)
    following = runs.free[position]
    runs.words[old] = following >> 31
    runs.words[old + 1] = following & 0x7FFFFFFF
    runs.free[position] = old


@kernel
def delete(runs: SortedRuns, run: int, key: int) -> bool:
    """Delete a key from a run and return whether it was there. The run stays, even if it is empty."""
    at = leaf_for(runs, run, key)
    leaf = np.int64(runs.words[runs.shelf[run] + at])
    position = position_in(runs, leaf, key)
    if position == runs.count[leaf] or runs.keys[leaf, position] != key:
        return False
    runs.count[leaf] -= 1
    for i in range(position, runs.count[leaf]):
        runs.keys[leaf, i] = runs.keys[leaf, i + 1]
        runs.values[leaf, i] = runs.values[leaf, i + 1]
    runs.size[run] -= 1
    if runs.count[leaf] == 0 and runs.leaves[run] > 1:
        shelf = runs.shelf[run]
        runs.leaves[run] -= 1
        for i in range(at, runs.leaves[run]):
            runs.words[shelf + i] = runs.words[shelf + i + 1]
        free_lists.give(runs.count, runs.counters, _Counter.FREE_LEAF, leaf)
    return True
