"""Blocks of rows in one memory, in a few sizes, with a free list for each size.

A row is one or two integers. Sizes are 1, 2, 3, 4, 6, 8, 12, 16 and so on, so that at least two thirds of a block that grew
step by step are in use. A free block links to the next one of its size in its first row.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import free_lists
from tocsin.structures.array_types import Int64s
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper

NONE: Final = -1
_CLASSES: Final = 64


class Blocks(NamedTuple):
    """A block is known by its first row and its size class."""

    rows: Int64s  # [rows, width]
    free: Int64s  # [classes] the first free block, or NONE
    top: Int64s  # [1] rows ever in use


def new_blocks(width: int) -> Blocks:
    """Return an empty memory for rows of `width` integers."""
    return Blocks(
        np.zeros((64, width), dtype=np.int64), np.full(_CLASSES, NONE, dtype=np.int64), np.zeros(1, np.int64)
    )


def with_room(blocks: Blocks, rows: int) -> Blocks:
    """Return the memory with room for `rows` more rows, in blocks of any size."""
    return grown(blocks, ("rows",), int(blocks.top[0]) + rows)


@helper
def size_of(class_: int) -> int:
    """Return the number of rows in a block of a class."""
    half = np.int64(1) << (class_ // 2)
    return half + half * (class_ & 1) if class_ < 2 else half + half // 2 + (half // 2) * (class_ & 1)


@helper
def class_of(rows: int) -> int:
    """Return the class of the smallest block with at least `rows` rows."""
    class_ = np.int64(0)
    while size_of(class_) < rows:
        class_ += 1
    return class_


@helper
def take(blocks: Blocks, class_: int) -> int:
    """Return the first row of a block that is not in use; there must be room for it."""
    return free_lists.take_run(blocks.rows[:, 0], blocks.free, class_, blocks.top, 0, size_of(class_))


@helper
def give(blocks: Blocks, first: int, class_: int) -> None:
    """Give back a block."""
    free_lists.give(blocks.rows[:, 0], blocks.free, class_, first)


@helper
def moved(blocks: Blocks, first: int, class_: int, rows: int, into: int) -> int:
    """Move the first `rows` rows of a block to one of class `into`, for which there must be room; return its first row."""
    new = take(blocks, into)
    for i in range(rows):
        for column in range(blocks.rows.shape[1]):
            blocks.rows[new + i, column] = blocks.rows[first + i, column]
    give(blocks, first, class_)
    return new


@helper
def has_block(blocks: Blocks, class_: int) -> bool:
    """Tell whether a block of a class can be taken without growing."""
    return blocks.free[class_] >= 0 or blocks.top[0] + size_of(class_) <= blocks.rows.shape[0]


@helper
def copy_row(rows: Int64s, source: int, target: int) -> None:
    """Copy a row of two integers."""
    rows[target, 0] = rows[source, 0]
    rows[target, 1] = rows[source, 1]


def block_size(rows: int) -> int:
    """Return the number of rows in the smallest block with at least `rows` rows, for callers outside of kernels."""
    return int(block_sizes(np.array(rows, dtype=np.int64)))


def block_sizes(rows: Int64s) -> Int64s:
    """Return the numbers of rows in the smallest blocks with at least so many rows; 0 for none."""
    half = 1 << np.ceil(np.log2(np.maximum(rows, 2))).astype(np.int64) - 1
    sizes = np.where(half + half // 2 >= rows, half + half // 2, 2 * half)
    return np.where(rows <= half, np.minimum(rows, half), sizes)
