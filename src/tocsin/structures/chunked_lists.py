"""Many lists of records in one memory, each stored by the column, in chunks.

A record of width w takes one word in each of w columns. A list is a chain of chunks, the newest first; only
the newest may be partly filled, so that a record is added at its end and removed by moving the last one into
its place, both in constant time. A chunk is as large as all before it together, up to a limit: no record is
ever copied because its list grew. Freed chunks are used again for lists of the same width.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import free_lists
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper, kernel

LARGEST: Final = 1024  # records in a chunk
_SMALLEST: Final = 4
_MOST_WORDS: Final = 1 << 17  # in a chunk, unless four records take more
_CLASSES: Final = 9  # 4, 8, ... 1024
_NARROW: Final = (
    16  # widths up to here have chunks of their own; wider ones share those of the next power of two
)
_FAMILIES: Final = _NARROW + 28

# Columns of a list's row
HEAD: Final = 0  # the newest chunk, or -1
FILL: Final = 1  # records in the newest chunk
TOTAL: Final = 2  # records in all; of a list that is given up, the next one to be used again
WIDTH: Final = 3  # words in a record
NEXT: Final = 4  # for whoever uses the lists
TAG: Final = 5  # for whoever uses the lists

# Columns of a chunk's row
OFFSET: Final = 0  # first word
CAPACITY: Final = 1  # records it can hold
OLDER: Final = 2  # the chunk before, or -1; in the free list, the next free one
OWNER: Final = 3  # its list

_TOP_WORD: Final = 0
_TOP_LIST: Final = 1
_FREE_LIST: Final = 2
_TOP_CHUNK: Final = 3
_FREE_CHUNK: Final = 4
_LIVE_LISTS: Final = 5


class ChunkedLists(NamedTuple):
    """Three lengths: words, lists and chunks grow apart. What is needed together lies in one row."""

    words: NDArray[np.int32]  # [words] column c of the record at p in a chunk: offset + c * capacity + p
    rows: NDArray[np.int32]  # [lists, 8] HEAD, FILL, TOTAL, WIDTH, and two for whoever uses the lists
    chunks: NDArray[np.int64]  # [chunks, 4] OFFSET, CAPACITY, OLDER, OWNER
    free: NDArray[np.int64]  # [families * classes] first free stretch of words, or -1
    counters: NDArray[np.int64]  # [6]


def new_chunked_lists() -> ChunkedLists:
    """Return an empty memory for lists."""
    counters = np.zeros(6, dtype=np.int64)
    counters[_FREE_LIST] = counters[_FREE_CHUNK] = -1
    return ChunkedLists(
        np.zeros(1024, dtype=np.int32),
        np.zeros((64, 8), dtype=np.int32),
        np.zeros((64, 4), dtype=np.int64),
        np.full(_FAMILIES * _CLASSES, -1, dtype=np.int64),
        counters,
    )


def with_room(lists: ChunkedLists, records: int, width: int) -> ChunkedLists:
    """Return the memory with room for one more list and chunk, and in long lists for about `records` records.

    Those have up to `width` words, but few are taken to have more than 16. Where that is wrong, or they go into
    many lists, `has_room` says when to ask again.
    """
    top = lists.counters
    stride = int(_stride(width))
    words = min(stride, _NARROW) * (records + records // 2) + stride * int(_largest(width))
    lists = grown(lists, ("words",), int(top[_TOP_WORD]) + words)
    lists = grown(lists, ("rows",), int(top[_TOP_LIST]) + records // 8 + 1)
    return grown(lists, ("chunks",), int(top[_TOP_CHUNK]) + records // 8 + 1)


@kernel
def has_room(lists: ChunkedLists, width: int) -> bool:
    """Tell whether one more list and one more chunk of the largest size fit."""
    top = lists.counters
    return (
        top[_TOP_WORD] + _stride(width) * _largest(width) <= lists.words.shape[0]
        and (top[_TOP_LIST] < lists.rows.shape[0] or top[_FREE_LIST] >= 0)
        and (top[_TOP_CHUNK] < lists.chunks.shape[0] or top[_FREE_CHUNK] >= 0)
    )


@helper
def _family(width: int) -> int:
    if width <= _NARROW:
        return width - 1
    family, reach = np.int64(_NARROW), np.int64(2 * _NARROW)
    while reach < width:
        reach *= 2
        family += 1
    return family


@kernel
def _stride(width: int) -> int:
    """Return the words that a record of this width takes."""
    if width <= _NARROW:
        return np.int64(width)
    reach = np.int64(2 * _NARROW)
    while reach < width:
        reach *= 2
    return reach


@kernel
def _largest(width: int) -> int:
    """Return how many records the largest chunk of a list holds: fewer where they are very wide."""
    largest = np.int64(LARGEST)
    while largest > _SMALLEST and largest * _stride(width) > _MOST_WORDS:
        largest //= 2
    return largest


@kernel
def new_list(lists: ChunkedLists, width: int) -> int:
    """Return the number of a new, empty list; `has_room` must hold."""
    counters = lists.counters
    number = free_lists.take(lists.rows[:, TOTAL], counters, _FREE_LIST, _TOP_LIST)
    lists.rows[number, HEAD] = -1
    lists.rows[number, FILL] = 0
    lists.rows[number, TOTAL] = 0
    lists.rows[number, WIDTH] = width
    counters[_LIVE_LISTS] += 1
    return number


@kernel
def drop_list(lists: ChunkedLists, number: int) -> None:
    """Give up an empty list; its number is used again."""
    free_lists.give(lists.rows[:, TOTAL], lists.counters, _FREE_LIST, number)
    lists.counters[_LIVE_LISTS] -= 1


@kernel
def append(lists: ChunkedLists, number: int) -> tuple[int, int]:
    """Make place at the end of a list and return its chunk and position; `has_room` must hold."""
    chunk = np.int64(lists.rows[number, HEAD])
    if chunk < 0 or lists.rows[number, FILL] == lists.chunks[chunk, CAPACITY]:
        chunk = _new_chunk(lists, number)
    position = np.int64(lists.rows[number, FILL])
    lists.rows[number, FILL] = position + 1
    lists.rows[number, TOTAL] += 1
    return chunk, position


@helper
def _new_chunk(lists: ChunkedLists, number: int) -> int:
    counters = lists.counters
    size_class, capacity = np.int64(0), np.int64(_SMALLEST)
    while capacity < _largest(np.int64(lists.rows[number, WIDTH])) and capacity < lists.rows[number, TOTAL]:
        capacity *= 2
        size_class += 1
    width = np.int64(lists.rows[number, WIDTH])
    place = _family(width) * _CLASSES + size_class
    offset = lists.free[place]
    if offset >= 0:
        lists.free[place] = np.int64(lists.words[offset]) | (np.int64(lists.words[offset + 1]) << 31)
        if lists.words[offset + 1] < 0:
            lists.free[place] = -1
    else:
        offset = counters[_TOP_WORD]
        counters[_TOP_WORD] += capacity * max(_stride(width), np.int64(1))
    chunk = free_lists.take(lists.chunks[:, OLDER], counters, _FREE_CHUNK, _TOP_CHUNK)
    lists.chunks[chunk, OFFSET] = offset
    lists.chunks[chunk, CAPACITY] = capacity
    lists.chunks[chunk, OWNER] = number
    lists.chunks[chunk, OLDER] = lists.rows[number, HEAD]
    lists.rows[number, HEAD] = chunk
    lists.rows[number, FILL] = 0
    return chunk


@kernel
def swap_remove(lists: ChunkedLists, chunk: int, position: int) -> None:
    """Remove the record at a place by moving its list's last record there.

    The caller finds the moved record at the place itself, if the place is still within the list, and corrects
    whatever points at it. Call it with the column 0 of the removed record already read.
    """
    number = np.int64(lists.chunks[chunk, OWNER])
    last = np.int64(lists.rows[number, HEAD])
    end = np.int64(lists.rows[number, FILL]) - 1
    if last != chunk or end != position:
        source = lists.chunks[last, OFFSET] + end
        target = lists.chunks[chunk, OFFSET] + position
        for _ in range(lists.rows[number, WIDTH]):
            lists.words[target] = lists.words[source]
            source += lists.chunks[last, CAPACITY]
            target += lists.chunks[chunk, CAPACITY]
    lists.rows[number, FILL] = end
    lists.rows[number, TOTAL] -= 1
    if end == 0:
        older = lists.chunks[last, OLDER]
        lists.rows[number, HEAD] = older
        lists.rows[number, FILL] = lists.chunks[older, CAPACITY] if older >= 0 else 0
        _free_chunk(lists, last)


@helper
def _free_chunk(lists: ChunkedLists, chunk: int) -> None:
    size_class, capacity = np.int64(0), np.int64(_SMALLEST)
    while capacity < lists.chunks[chunk, CAPACITY]:
        capacity *= 2
        size_class += 1
    place = _family(np.int64(lists.rows[lists.chunks[chunk, OWNER], WIDTH])) * _CLASSES + size_class
    offset = lists.chunks[chunk, OFFSET]
    following = lists.free[place]
    # A stretch has at least four words: the first two say where the next free one begins.
    lists.words[offset] = following & 0x7FFFFFFF if following >= 0 else 0
    lists.words[offset + 1] = following >> 31 if following >= 0 else -1
    lists.free[place] = offset
    free_lists.give(lists.chunks[:, OLDER], lists.counters, _FREE_CHUNK, chunk)
