"""Posting lists: sorted entries in one block, or in several blocks with a directory.

A short list is one block, which grows and shrinks with it. A list of more than `LEAF` entries has blocks of that size,
and a directory with the first entry of each; a full block in the middle is divided, a full one at the end is followed
by a new one. So adding or removing an entry moves at most a block's entries, and now and then those of the directory,
which is two hundred times shorter than the list.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.k_index._kernels.packing import size_word_of
from tocsin.matching.k_index.state import CLASS_SHIFT, LEAF, Posted, PostedCount, Words
from tocsin.structures import blocks, free_lists
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.blocks import copy_row, size_of
from tocsin.structures.jit import helper

_OFFSET: Final = 0xFFFFFFFF
_COUNT_SHIFT: Final = 32
_ONE: Final = 1 << _COUNT_SHIFT
_LEAF_CLASS: Final = 15  # whose blocks have LEAF words


@helper
def first_of(word: int) -> int:
    """Return the first row that a header or a directory row points to."""
    return word & _OFFSET


@helper
def count_of(word: int) -> int:
    """Return the number of entries that a header or a directory row has."""
    return word >> _COUNT_SHIFT


@helper
def block_count(posted: Posted, header: int) -> int:
    """Return how many blocks a list has, given the word of its header."""
    return posted.shelves.rows[first_of(header), 0] if count_of(header) > LEAF else np.int64(1)


@helper
def block_at(posted: Posted, header: int, n: int) -> tuple[int, int]:
    """Return the first entry of a list's block, and the number of its entries."""
    word = posted.shelves.rows[first_of(header) + 1 + n, 1] if count_of(header) > LEAF else header
    return first_of(word), count_of(word)


@helper
def last_block_from(shelves: Int64s, low: int, high: int, word: int) -> int:
    """Return the last directory row from `low` to `high` whose block begins at or below `word`, or `low`."""
    while low < high:
        middle = (low + high + 1) >> 1
        if shelves[middle, 0] <= word:
            low = middle
        else:
            high = middle - 1
    return low


@helper
def first_from(words: Int32s, begin: int, end: int, word: int) -> int:
    """Return the position of the first of some sorted entries that is not below `word`."""
    while begin < end:
        middle = (begin + end) >> 1
        if words[middle] < word:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def _take(entries: Words, class_: int) -> int:
    """Return the first word of a free block; there must be room for it."""
    return free_lists.take_run(entries.words, entries.free, class_, entries.top, 0, size_of(class_))


@helper
def _give(entries: Words, first: int, class_: int) -> None:
    free_lists.give(entries.words, entries.free, class_, first)


@helper
def _has_block(entries: Words, class_: int) -> bool:
    """Tell whether a block of a class can be taken without growing."""
    return entries.free[class_] >= 0 or entries.top[0] + size_of(class_) <= entries.words.shape[0]


@helper
def new_list(posted: Posted, row: int, size_word: int) -> None:
    """Begin a list that has no entry yet."""
    posted.headers.rows[row, 0] = _take(posted.entries, np.int64(0))
    posted.headers.rows[row, 1] = size_word
    posted.counts[PostedCount.LISTS] += 1


@helper
def free_list(posted: Posted, row: int) -> None:
    """Free a list that has no entry."""
    headers = posted.headers.rows
    _give(posted.entries, first_of(headers[row, 0]), headers[row, 1] >> CLASS_SHIFT)
    posted.counts[PostedCount.LISTS] -= 1


@helper
def _move(posted: Posted, row: int, class_: int) -> None:
    """Move a short list to a block of another class."""
    headers, words = posted.headers.rows, posted.entries.words
    old, count = first_of(headers[row, 0]), count_of(headers[row, 0])
    new = _take(posted.entries, class_)
    for i in range(count):
        words[new + i] = words[old + i]
    _give(posted.entries, old, headers[row, 1] >> CLASS_SHIFT)
    headers[row, 0] = new | (count << _COUNT_SHIFT)
    _set_class(posted, row, class_)


@helper
def _set_class(posted: Posted, row: int, class_: int) -> None:
    headers = posted.headers.rows
    headers[row, 1] = size_word_of(headers[row, 1]) | (class_ << CLASS_SHIFT)


@helper
def _insert_at(words: Int32s, at: int, end: int, word: int) -> None:
    """Insert an entry into sorted ones that end before `end`."""
    for i in range(end, at, -1):
        words[i] = words[i - 1]
    words[at] = word


@helper
def _remove_at(words: Int32s, at: int, end: int) -> None:
    for i in range(at, end - 1):
        words[i] = words[i + 1]


@helper
def add_entry(posted: Posted, row: int, word: int) -> bool:
    """Add an entry to a list; return False if it was there. There must be room."""
    headers, words = posted.headers.rows, posted.entries.words
    count = count_of(headers[row, 0])
    if count == LEAF:
        _begin_directory(posted, row)
    if count >= LEAF:
        return _add_to_long(posted, row, word)
    first = first_of(headers[row, 0])
    at = first_from(words, first, first + count, word)
    if at < first + count and words[at] == word:
        return False
    class_ = headers[row, 1] >> CLASS_SHIFT
    if count == size_of(class_):
        _move(posted, row, class_ + 1)
        at += first_of(headers[row, 0]) - first
        first = first_of(headers[row, 0])
    _insert_at(words, at, first + count, word)
    headers[row, 0] += np.int64(_ONE)
    return True


@helper
def remove_entry(posted: Posted, row: int, word: int) -> bool:
    """Remove an entry from a list; return False if it was not there."""
    headers, words = posted.headers.rows, posted.entries.words
    count, first = count_of(headers[row, 0]), first_of(headers[row, 0])
    if count > LEAF:
        return _remove_from_long(posted, row, word)
    at = first_from(words, first, first + count, word)
    if at == first + count or words[at] != word:
        return False
    _remove_at(words, at, first + count)
    headers[row, 0] -= np.int64(_ONE)
    class_ = headers[row, 1] >> CLASS_SHIFT
    if class_ >= 3 and count - 1 <= size_of(class_ - 3) and _has_block(posted.entries, class_ - 2):
        _move(posted, row, class_ - 2)
    return True


# Lists of several blocks. The first row of a directory is the number of blocks, and the directory's class; a row for
# each block follows: its first entry, and where it begins with the number of its entries.


@helper
def _begin_directory(posted: Posted, row: int) -> None:
    """Give a list that is one full block a directory."""
    headers, shelves = posted.headers.rows, posted.shelves.rows
    first = first_of(headers[row, 0])
    shelf = blocks.take(posted.shelves, np.int64(3))
    shelves[shelf, 0], shelves[shelf, 1] = 1, 3
    shelves[shelf + 1, 0] = posted.entries.words[first]
    shelves[shelf + 1, 1] = first | (np.int64(LEAF) << _COUNT_SHIFT)
    headers[row, 0] = shelf | (np.int64(LEAF) << _COUNT_SHIFT)


@helper
def _find_block(posted: Posted, row: int, word: int) -> tuple[int, int, int, int]:
    """Return the directory row of the block for an entry, the block's first entry and count, and the entry's position."""
    shelves = posted.shelves.rows
    shelf = first_of(posted.headers.rows[row, 0])
    at_shelf = last_block_from(shelves, shelf + 1, shelf + shelves[shelf, 0], word)
    first, count = first_of(shelves[at_shelf, 1]), count_of(shelves[at_shelf, 1])
    return at_shelf, first, count, first_from(posted.entries.words, first, first + count, word)


@helper
def _add_to_long(posted: Posted, row: int, word: int) -> bool:
    """Insert an entry into a list of several blocks, and tell whether it was new."""
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    at_shelf, first, count, at = _find_block(posted, row, word)
    if at < first + count and words[at] == word:
        _end_directory(posted, row)  # it may have been begun for this entry
        return False
    if count == LEAF:
        at_shelf = _divide(posted, row, at_shelf, at == first + LEAF)
        if shelves[at_shelf + 1, 0] <= word or count_of(shelves[at_shelf + 1, 1]) == 0:
            at_shelf += 1
        first, count = first_of(shelves[at_shelf, 1]), count_of(shelves[at_shelf, 1])
        at = first_from(words, first, first + count, word)
    _insert_at(words, at, first + count, word)
    shelves[at_shelf, 0] = words[first]
    shelves[at_shelf, 1] += np.int64(_ONE)
    headers[row, 0] += np.int64(_ONE)
    return True


@helper
def _divide(posted: Posted, row: int, at_shelf: int, at_end: bool) -> int:
    """Put an empty block, or one with the upper half, behind a full block of a list; return the full block's row."""
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    shelf = first_of(headers[row, 0])
    leaves, class_ = shelves[shelf, 0], shelves[shelf, 1]
    if leaves + 1 == size_of(class_):
        new = blocks.moved(posted.shelves, shelf, class_, leaves + 1, class_ + 1)
        shelves[new, 0], shelves[new, 1] = leaves, class_ + 1
        at_shelf += new - shelf
        headers[row, 0] += new - shelf
        shelf = new
    for i in range(shelf + leaves + 1, at_shelf + 1, -1):
        copy_row(shelves, i - 1, i)
    shelves[shelf, 0] = leaves + 1
    posted.counts[PostedCount.MOST_BLOCKS] = max(posted.counts[PostedCount.MOST_BLOCKS], leaves + 1)
    other = _take(posted.entries, np.int64(_LEAF_CLASS))
    first = first_of(shelves[at_shelf, 1])
    kept = np.int64(LEAF if at_end else LEAF // 2)
    for i in range(kept, LEAF):
        words[other + i - kept] = words[first + i]
    shelves[at_shelf, 1] = first | (kept << _COUNT_SHIFT)
    shelves[at_shelf + 1, 0] = words[other] if kept < LEAF else 0
    shelves[at_shelf + 1, 1] = other | ((LEAF - kept) << _COUNT_SHIFT)
    return at_shelf


@helper
def _remove_from_long(posted: Posted, row: int, word: int) -> bool:
    """Remove an entry from a list of several blocks, and tell whether it was there."""
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    at_shelf, first, count, at = _find_block(posted, row, word)
    if at == first + count or words[at] != word:
        return False
    _remove_at(words, at, first + count)
    count -= 1
    shelves[at_shelf, 0] = words[first]
    shelves[at_shelf, 1] = first | (count << _COUNT_SHIFT)
    headers[row, 0] -= np.int64(_ONE)
    shelf = first_of(headers[row, 0])
    last = shelf + shelves[shelf, 0]
    if at_shelf < last and count + count_of(shelves[at_shelf + 1, 1]) <= LEAF // 2:
        _join(posted, shelf, at_shelf)
    elif at_shelf > shelf + 1 and count + count_of(shelves[at_shelf - 1, 1]) <= LEAF // 2:
        _join(posted, shelf, at_shelf - 1)
    elif count == 0 and shelves[shelf, 0] > 1:
        _drop_block(posted, shelf, at_shelf)
    if count_of(headers[row, 0]) == LEAF:
        _gather(posted, row)
    return True


@helper
def _join(posted: Posted, shelf: int, at_shelf: int) -> None:
    """Move the entries of the next block into this one."""
    shelves, words = posted.shelves.rows, posted.entries.words
    first, count = first_of(shelves[at_shelf, 1]), count_of(shelves[at_shelf, 1])
    other, more = first_of(shelves[at_shelf + 1, 1]), count_of(shelves[at_shelf + 1, 1])
    for i in range(more):
        words[first + count + i] = words[other + i]
    shelves[at_shelf, 0] = words[first]
    shelves[at_shelf, 1] = first | ((count + more) << _COUNT_SHIFT)
    _drop_block(posted, shelf, at_shelf + 1)


@helper
def _drop_block(posted: Posted, shelf: int, at_shelf: int) -> None:
    shelves = posted.shelves.rows
    _give(posted.entries, first_of(shelves[at_shelf, 1]), np.int64(_LEAF_CLASS))
    for i in range(at_shelf, shelf + shelves[shelf, 0]):
        copy_row(shelves, i + 1, i)
    shelves[shelf, 0] -= 1


@helper
def _gather(posted: Posted, row: int) -> None:
    """Move the entries of a list that fits one block into its first block."""
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    shelf = first_of(headers[row, 0])
    first = first_of(shelves[shelf + 1, 1])
    to = first + count_of(shelves[shelf + 1, 1])
    for at_shelf in range(shelf + 2, shelf + shelves[shelf, 0] + 1):
        other = first_of(shelves[at_shelf, 1])
        for i in range(count_of(shelves[at_shelf, 1])):
            words[to] = words[other + i]
            to += 1
        _give(posted.entries, other, np.int64(_LEAF_CLASS))
    _end_directory(posted, row)


@helper
def _end_directory(posted: Posted, row: int) -> None:
    """Free the directory of a list whose entries are all in its first block."""
    headers, shelves = posted.headers.rows, posted.shelves.rows
    if count_of(headers[row, 0]) != LEAF:
        return
    shelf = first_of(headers[row, 0])
    first = first_of(shelves[shelf + 1, 1])
    blocks.give(posted.shelves, shelf, shelves[shelf, 1])
    headers[row, 0] = first | (np.int64(LEAF) << _COUNT_SHIFT)
    _set_class(posted, row, np.int64(_LEAF_CLASS))
