"""Which numbers belong to a subscription's id: a chain of them, the newest first.

A matcher gives a number to each thing that a subscription has in it, and keeps a row for each number. The row's first
column names the next number of the same id, or, of a number that nobody has, the next free one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import helper, kernel

SIBLING: Final = 0  # the column


@helper
def new_number(rows: NDArray[np.int32], tops: NDArray[np.int64], free: int, top: int) -> int:
    """Return a number that nobody has; `tops` has the first free one at `free`, and how many were ever used at `top`."""
    number = tops[free]
    if number >= 0:
        tops[free] = rows[number, SIBLING]
    else:
        number = tops[top]
        tops[top] += 1
    return number


@helper
def free_number(rows: NDArray[np.int32], tops: NDArray[np.int64], free: int, number: int) -> None:
    """Let a number be given again."""
    rows[number, SIBLING] = tops[free]
    tops[free] = number


@helper
def enter(
    index: HashIndex,
    first: NDArray[np.int32],
    rows: NDArray[np.int32],
    owner: NDArray[np.int32],
    id_: int,
    number: int,
) -> None:
    """Let a number belong to an id; there must be room for the id."""
    entry = hash_index.find(index, id_, 0, 0)
    if entry < 0:
        entry = hash_index.insert(index, id_, 0, 0)
        first[entry] = -1
    rows[number, SIBLING] = first[entry]
    owner[number] = entry
    first[entry] = number


@kernel
def take_from(
    index: HashIndex,
    first: NDArray[np.int32],
    rows: NDArray[np.int32],
    ids: NDArray[np.int64],
    start: int,
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Take the ids from `start` on out of the index, and write the numbers that belonged to them.

    As many as there is room for; return the ids and the numbers done. An id that comes twice has none the second time.
    """
    count = np.int64(0)
    for i in range(start, ids.shape[0]):
        entry = hash_index.find(index, ids[i], 0, 0)
        if entry < 0:
            continue
        size, number = np.int64(0), np.int64(first[entry])
        while number >= 0:
            size += 1
            number = np.int64(rows[number, SIBLING])
        if count + size > numbers.shape[0]:
            return np.int64(i), count
        number = np.int64(first[entry])
        while number >= 0:
            numbers[count] = number
            count += 1
            number = np.int64(rows[number, SIBLING])
        hash_index.remove(index, entry)
    return ids.shape[0], count


@kernel
def unlink(
    index: HashIndex,
    first: NDArray[np.int32],
    rows: NDArray[np.int32],
    owner: NDArray[np.int32],
    numbers: NDArray[np.int64],
) -> None:
    """Take numbers from their ids, and ids that have no other out of the index."""
    for i in range(numbers.shape[0] - 1, -1, -1):  # the newest first: they are in front
        entry = np.int64(owner[numbers[i]])
        before, number = np.int64(-1), np.int64(first[entry])
        while number != numbers[i]:
            before = number
            number = np.int64(rows[number, SIBLING])
        following = rows[number, SIBLING]
        if before >= 0:
            rows[before, SIBLING] = following
        else:
            first[entry] = following
            if following < 0:
                hash_index.remove(index, entry)
