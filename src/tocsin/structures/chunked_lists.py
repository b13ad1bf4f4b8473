"""Many lists of records in one memory, stored by column in chunks.

A record of width w takes one word in each of w columns. A list is a chain of chunks, the newest first; only the newest may be
partly filled. So a record is appended at the end, and removed by moving the last record into its place, both in constant
time. A chunk is as large as all chunks before it together, up to a limit: no record is copied because its list grew. Freed
chunks are reused by lists of the same width.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import free_lists
from tocsin.structures.array_types import Int32s, Int64s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.jit import helper, kernel

LARGEST: Final = 1024  # records in a chunk
_SMALLEST: Final = 4
_MOST_WORDS: Final = 1 << 17  # in a chunk, unless four records take more
_CLASSES: Final = 9  # 4, 8, ... 1024
_NARROW: Final = (
    16  # widths up to here have their own chunks; wider lists share those of the next power of two
)
_FAMILIES: Final = _NARROW + 28


class ListRow(IntEnum):
    """Columns of a list's row."""

    HEAD = 0  # the newest chunk, or -1
    FILL = 1  # records in the newest chunk
    TOTAL = 2  # records in all; of a free list, the next free one
    WIDTH = 3  # words in a record
    NEXT = 4  # for the user of the lists
    TAG = 5  # for the user of the lists


class Chunk(IntEnum):
    """Columns of a chunk's row."""

    OFFSET = 0  # first word
    CAPACITY = 1  # in records
    OLDER = 2  # the chunk before, or -1; of a free chunk, the next free one
    OWNER = 3  # its list


class _Counter(IntEnum):
    TOP_WORD = 0
    TOP_LIST = 1
    FREE_LIST = 2
    TOP_CHUNK = 3
    FREE_CHUNK = 4
    LIVE_LISTS = 5


class ChunkedLists(NamedTuple):
    """Words, lists and chunks grow separately. A row holds the columns that are read together."""

    words: Int32s  # [words] column c of the record at p in a chunk: offset + c * capacity + p
    rows: Int32s  # [lists, 8] ListRow; padded to half a cache line
    chunks: Int64s  # [chunks, Chunk]
    free: Int64s  # [families * classes] first free stretch of words, or -1
    counters: Int64s  # [_Counter]


def new_chunked_lists() -> ChunkedLists:
    """Return an empty memory for lists."""
    counters = np.zeros(len(_Counter), dtype=np.int64)
    counters[_Counter.FREE_LIST] = counters[_Counter.FREE_CHUNK] = -1
    words, free = np.zeros(1024, dtype=np.int32), np.full(_FAMILIES * _CLASSES, -1, dtype=np.int64)
    return zeros(ChunkedLists, 64, words=words, rows=8, chunks=len(Chunk), free=free, counters=counters)


def with_room(lists: ChunkedLists, records: int, width: int) -> ChunkedLists:
    """Return the memory with room for one more list and chunk, and in long lists for about `records` records.

    Records have up to `width` words; few are assumed to have more than 16. Where that is wrong, or the records go into
    many lists, `has_room` tells when to call it again.
    """
    top = lists.counters
    stride = int(_stride(width))
    words = min(stride, _NARROW) * (records + records // 2) + stride * int(_largest(width))
    lists = grown(lists, ("words",), int(top[_Counter.TOP_WORD]) + words)
    lists = grown(lists, ("rows",), int(top[_Counter.TOP_LIST]) + records // 8 + 1)
    return grown(lists, ("chunks",), int(top[_Counter.TOP_CHUNK]) + records // 8 + 1)


@kernel
def has_room(lists: ChunkedLists, width: int) -> bool:
    """Tell whether one more list and one more chunk of the largest size fit."""
    top = lists.counters
    return (
        top[_Counter.TOP_WORD] + _stride(width) * _largest(width) <= lists.words.shape[0]
        and (top[_Counter.TOP_LIST] < lists.rows.shape[0] or top[_Counter.FREE_LIST] >= 0)
        and (top[_Counter.TOP_CHUNK] < lists.chunks.shape[0] or top[_Counter.FREE_CHUNK] >= 0)
    )


@helper
def _family(width: int) -> int:
    """Return the number of the family of free stretches that serves records of this width."""
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
    number = free_lists.take(lists.rows[:, ListRow.TOTAL], counters, _Counter.FREE_LIST, _Counter.TOP_LIST)
    lists.rows[number, ListRow.HEAD] = -1
    lists.rows[number, ListRow.FILL] = 0
    lists.rows[number, ListRow.TOTAL] = 0
    lists.rows[number, ListRow.WIDTH] = width
    counters[_Counter.LIVE_LISTS] += 1
    return number


@kernel
def drop_list(lists: ChunkedLists, number: int) -> None:
    """Give back an empty list; its number is reused."""
    free_lists.give(lists.rows[:, ListRow.TOTAL], lists.counters, _Counter.FREE_LIST, number)
    lists.counters[_Counter.LIVE_LISTS] -= 1


@kernel
def append(lists: ChunkedLists, number: int) -> tuple[int, int]:
    """Append a record to a list and return its chunk and position, for the caller to fill; `has_room` must hold."""
    chunk = np.int64(lists.rows[number, ListRow.HEAD])
    if chunk < 0 or lists.rows[number, ListRow.FILL] == lists.chunks[chunk, Chunk.CAPACITY]:
        chunk = _new_chunk(lists, number)
    position = np.int64(lists.rows[number, ListRow.FILL])
    lists.rows[number, ListRow.FILL] = position + 1
    lists.rows[number, ListRow.TOTAL] += 1
    return chunk, position


@helper
def _new_chunk(lists: ChunkedLists, number: int) -> int:
    """Put an empty chunk at the head of a list, twice the size of the one before while the list grows; return it."""
    counters, width = lists.counters, np.int64(lists.rows[number, ListRow.WIDTH])
    size_class, capacity = np.int64(0), np.int64(_SMALLEST)
    while capacity < _largest(width) and capacity < lists.rows[number, ListRow.TOTAL]:
        capacity *= 2
        size_class += 1
    free_class = _family(width) * _CLASSES + size_class
    offset = lists.free[free_class]
    if offset >= 0:
        lists.free[free_class] = np.int64(lists.words[offset]) | (np.int64(lists.words[offset + 1]) << 31)
        if lists.words[offset + 1] < 0:
            lists.free[free_class] = -1
    else:
        offset = counters[_Counter.TOP_WORD]
        counters[_Counter.TOP_WORD] += capacity * max(_stride(width), np.int64(1))
    chunk = free_lists.take(lists.chunks[:, Chunk.OLDER], counters, _Counter.FREE_CHUNK, _Counter.TOP_CHUNK)
    lists.chunks[chunk, Chunk.OFFSET] = offset
    lists.chunks[chunk, Chunk.CAPACITY] = capacity
    lists.chunks[chunk, Chunk.OWNER] = number
    lists.chunks[chunk, Chunk.OLDER] = lists.rows[number, ListRow.HEAD]
    lists.rows[number, ListRow.HEAD] = chunk
    lists.rows[number, ListRow.FILL] = 0
    return chunk


@kernel
def swap_remove(lists: ChunkedLists, chunk: int, position: int) -> None:
    """Remove the record at a position by moving its list's last record there.

    Afterwards the moved record is at this position, if the position is still within the list; the caller corrects
    whatever points at it, and reads the removed record beforehand.
    """
    number = np.int64(lists.chunks[chunk, Chunk.OWNER])
    last = np.int64(lists.rows[number, ListRow.HEAD])
    end = np.int64(lists.rows[number, ListRow.FILL]) - 1
    if last != chunk or end != position:
        source = lists.chunks[last, Chunk.OFFSET] + end
        target = lists.chunks[chunk, Chunk.OFFSET] + position
        for _ in range(lists.rows[number, ListRow.WIDTH]):
            lists.words[target] = lists.words[source]
            source += lists.chunks[last, Chunk.CAPACITY]
            target += lists.chunks[chunk, Chunk.CAPACITY]
    lists.rows[number, ListRow.FILL] = end
    lists.rows[number, ListRow.TOTAL] -= 1
    if end == 0:
        older = lists.chunks[last, Chunk.OLDER]
        lists.rows[number, ListRow.HEAD] = older
        lists.rows[number, ListRow.FILL] = lists.chunks[older, Chunk.CAPACITY] if older >= 0 else 0
        _free_chunk(lists, last)


@helper
def _free_chunk(lists: ChunkedLists, chunk: int) -> None:
    """Free a chunk and its stretch of words, which the next chunk of this size and width reuses."""
    size_class, capacity = np.int64(0), np.int64(_SMALLEST)
    while capacity < lists.chunks[chunk, Chunk.CAPACITY]:
        capacity *= 2
        size_class += 1
    free_class = (
        _family(np.int64(lists.rows[lists.chunks[chunk, Chunk.OWNER], ListRow.WIDTH])) * _CLASSES + size_class
    )
    offset = lists.chunks[chunk, Chunk.OFFSET]
    following = lists.free[free_class]
    # A stretch has at least four words: the first two say where the next free one begins.
    lists.words[offset] = following & 0x7FFFFFFF if following >= 0 else 0
    lists.words[offset + 1] = following >> 31 if following >= 0 else -1
    lists.free[free_class] = offset
    free_lists.give(lists.chunks[:, Chunk.OLDER], lists.counters, _Counter.FREE_CHUNK, chunk)
