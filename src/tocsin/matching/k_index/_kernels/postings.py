"""Posting lists: sorted entries in a block, or in several blocks with a directory.

A short list is one block, which grows and shrinks with it. A list of more than `LEAF` entries has blocks of that
size, and a directory with the first entry of each; a full block in the middle is divided, a full one at the end
is followed by a new one. So an entry costs at most a block's length to enter or to take out, and now and then
that of the directory, which is two hundred times shorter than the list.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.k_index.state import CLASS_SHIFT, LEAF, LISTS, MOST_LEAVES, Posted, Words
from tocsin.structures import blocks
from tocsin.structures.blocks import size_of
from tocsin.structures.jit import helper

OFFSET: Final = 0xFFFFFFFF
COUNT_SHIFT: Final = 32
_LEAF_CLASS: Final = 15  # whose blocks have LEAF words
_SIZE: Final = (1 << CLASS_SHIFT) - 1


@helper
def _take(entries: Words, class_: int) -> int:
    """Return the first word of a block that nobody uses; there must be room for it."""
    first = entries.free[class_]
    if first >= 0:
        entries.free[class_] = entries.words[first]
        return first
    first = entries.top[0]
    entries.top[0] += size_of(class_)
    return first


@helper
def _give(entries: Words, first: int, class_: int) -> None:
    entries.words[first] = entries.free[class_]
    entries.free[class_] = first


@helper
def _has(entries: Words, class_: int) -> bool:
    """Tell whether there is a block to be had."""
    return entries.free[class_] >= 0 or entries.top[0] + size_of(class_) <= entries.words.shape[0]


@helper
def first_from(words: NDArray[np.int32], begin: int, end: int, word: int) -> int:
    """Return the place of the first of some sorted entries that is not below `word`."""
    while begin < end:
        middle = (begin + end) >> 1
        if words[middle] < word:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def new_list(posted: Posted, row: int, size_word: int) -> None:
    """Begin a list that has no entry yet."""
    headers = posted.headers.rows
    headers[row, 0] = _take(posted.entries, np.int64(0))
    headers[row, 1] = size_word
    posted.counts[LISTS] += 1


@helper
def forget_list(posted: Posted, row: int) -> None:
    """Give up a list that has no entry."""
    headers = posted.headers.rows
    _give(posted.entries, headers[row, 0] & OFFSET, headers[row, 1] >> CLASS_SHIFT)
    posted.counts[LISTS] -= 1


@helper
def _move(posted: Posted, row: int, class_: int) -> None:
    """Move a short list to a block of another class."""
    headers, words = posted.headers.rows, posted.entries.words
    old, count = headers[row, 0] & OFFSET, headers[row, 0] >> COUNT_SHIFT
    new = _take(posted.entries, class_)
    for i in range(count):
        words[new + i] = words[old + i]
    _give(posted.entries, old, headers[row, 1] >> CLASS_SHIFT)
    headers[row, 0] = new | (count << COUNT_SHIFT)
    headers[row, 1] = (headers[row, 1] & _SIZE) | (class_ << CLASS_SHIFT)


@helper
def enter(posted: Posted, row: int, word: int) -> bool:
    """Enter an entry into a list; return False if it was there. There must be room."""
    headers = posted.headers.rows
    count = headers[row, 0] >> COUNT_SHIFT
    if count == LEAF:
        _begin_directory(posted, row)
    if count >= LEAF:
        return _enter_long(posted, row, word)
    words, first = posted.entries.words, headers[row, 0] & OFFSET
    at = first_from(words, first, first + count, word)
    if at < first + count and words[at] == word:
        return False
    class_ = headers[row, 1] >> CLASS_SHIFT
    if count == size_of(class_):
        _move(posted, row, class_ + 1)
        at += (headers[row, 0] & OFFSET) - first
        first = headers[row, 0] & OFFSET
    for i in range(first + count, at, -1):
        words[i] = words[i - 1]
    words[at] = word
    headers[row, 0] += np.int64(1) << COUNT_SHIFT
    return True


@helper
def take_out(posted: Posted, row: int, word: int) -> bool:
    """Take an entry out of a list; return False if it was not there."""
    headers, words = posted.headers.rows, posted.entries.words
    count, first = headers[row, 0] >> COUNT_SHIFT, headers[row, 0] & OFFSET
    if count > LEAF:
        return _take_out_long(posted, row, word)
    at = first_from(words, first, first + count, word)
    if at == first + count or words[at] != word:
        return False
    for i in range(at, first + count - 1):
        words[i] = words[i + 1]
    headers[row, 0] -= np.int64(1) << COUNT_SHIFT
    class_ = headers[row, 1] >> CLASS_SHIFT
    if class_ >= 3 and count - 1 <= size_of(class_ - 3) and _has(posted.entries, class_ - 2):
        _move(posted, row, class_ - 2)
    return True


# lists of several blocks: in the directory's first row how many there are, and its class


@helper
def _begin_directory(posted: Posted, row: int) -> None:
    """Give a list that is one full block a directory."""
    headers, shelves = posted.headers.rows, posted.shelves.rows
    first = headers[row, 0] & OFFSET
    shelf = blocks.take(posted.shelves, np.int64(3))
    shelves[shelf, 0], shelves[shelf, 1] = 1, 3
    shelves[shelf + 1, 0] = posted.entries.words[first]
    shelves[shelf + 1, 1] = first | (np.int64(LEAF) << COUNT_SHIFT)
    headers[row, 0] = shelf | (np.int64(LEAF) << COUNT_SHIFT)


@helper
def _leaf_for(shelves: NDArray[np.int64], shelf: int, word: int) -> int:
    """Return the row of the last block of a directory that begins at or below `word`, or the first one."""
    low, high = shelf + 1, shelf + shelves[shelf, 0]
    while low < high:
        middle = (low + high + 1) >> 1
        if shelves[middle, 0] <= word:
            low = middle
        else:
            high = middle - 1
    return low


@helper
def _enter_long(posted: Posted, row: int, word: int) -> bool:
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    shelf = headers[row, 0] & OFFSET
    at_shelf = _leaf_for(shelves, shelf, word)
    first, count = shelves[at_shelf, 1] & OFFSET, shelves[at_shelf, 1] >> COUNT_SHIFT
    at = first_from(words, first, first + count, word)
    if at < first + count and words[at] == word:
        _end_directory(posted, row)  # it may have been begun for this entry
        return False
    if count == LEAF:
        at_shelf = _divide(posted, row, at_shelf, at == first + LEAF)
        if shelves[at_shelf + 1, 0] <= word or shelves[at_shelf + 1, 1] >> COUNT_SHIFT == 0:
            at_shelf += 1
        first, count = shelves[at_shelf, 1] & OFFSET, shelves[at_shelf, 1] >> COUNT_SHIFT
        at = first_from(words, first, first + count, word)
    for i in range(first + count, at, -1):
        words[i] = words[i - 1]
    words[at] = word
    shelves[at_shelf, 0] = words[first]
    shelves[at_shelf, 1] += np.int64(1) << COUNT_SHIFT
    headers[row, 0] += np.int64(1) << COUNT_SHIFT
    return True


@helper
def _divide(posted: Posted, row: int, at_shelf: int, at_end: bool) -> int:
    """Make room behind a full block of a list: an empty block, or one with its upper half; return the block's row."""
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    shelf = headers[row, 0] & OFFSET
    leaves, class_ = shelves[shelf, 0], shelves[shelf, 1]
    if leaves + 1 == size_of(class_):
        new = blocks.take(posted.shelves, class_ + 1)
        for i in range(leaves + 1):
            shelves[new + i, 0] = shelves[shelf + i, 0]
            shelves[new + i, 1] = shelves[shelf + i, 1]
        blocks.give(posted.shelves, shelf, class_)
        shelves[new, 1] = class_ + 1
        at_shelf += new - shelf
        headers[row, 0] += new - shelf
        shelf = new
    for i in range(shelf + leaves + 1, at_shelf + 1, -1):
        shelves[i, 0] = shelves[i - 1, 0]
        shelves[i, 1] = shelves[i - 1, 1]
    shelves[shelf, 0] = leaves + 1
    posted.counts[MOST_LEAVES] = max(posted.counts[MOST_LEAVES], leaves + 1)
    other = _take(posted.entries, np.int64(_LEAF_CLASS))
    first = shelves[at_shelf, 1] & OFFSET
    kept = np.int64(LEAF if at_end else LEAF // 2)
    for i in range(kept, LEAF):
        words[other + i - kept] = words[first + i]
    shelves[at_shelf, 1] = first | (kept << COUNT_SHIFT)
    shelves[at_shelf + 1, 0] = words[other] if kept < LEAF else 0
    shelves[at_shelf + 1, 1] = other | ((LEAF - kept) << COUNT_SHIFT)
    return at_shelf


@helper
def _take_out_long(posted: Posted, row: int, word: int) -> bool:
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    shelf = headers[row, 0] & OFFSET
    at_shelf = _leaf_for(shelves, shelf, word)
    first, count = shelves[at_shelf, 1] & OFFSET, shelves[at_shelf, 1] >> COUNT_SHIFT
    at = first_from(words, first, first + count, word)
    if at == first + count or words[at] != word:
        return False
    for i in range(at, first + count - 1):
        words[i] = words[i + 1]
    count -= 1
    shelves[at_shelf, 0] = words[first]
    shelves[at_shelf, 1] = first | (count << COUNT_SHIFT)
    headers[row, 0] -= np.int64(1) << COUNT_SHIFT
    last = shelf + shelves[shelf, 0]
    if at_shelf < last and count + (shelves[at_shelf + 1, 1] >> COUNT_SHIFT) <= LEAF // 2:
        _join(posted, shelf, at_shelf)
    elif at_shelf > shelf + 1 and count + (shelves[at_shelf - 1, 1] >> COUNT_SHIFT) <= LEAF // 2:
        _join(posted, shelf, at_shelf - 1)
    elif count == 0 and shelves[shelf, 0] > 1:
        _drop_leaf(posted, shelf, at_shelf)
    if headers[row, 0] >> COUNT_SHIFT == LEAF:
        _gather(posted, row)
    return True


@helper
def _join(posted: Posted, shelf: int, at_shelf: int) -> None:
    """Move the entries of the next block into this one."""
    shelves, words = posted.shelves.rows, posted.entries.words
    first, count = shelves[at_shelf, 1] & OFFSET, shelves[at_shelf, 1] >> COUNT_SHIFT
    other, more = shelves[at_shelf + 1, 1] & OFFSET, shelves[at_shelf + 1, 1] >> COUNT_SHIFT
    for i in range(more):
        words[first + count + i] = words[other + i]
    shelves[at_shelf, 0] = words[first]
    shelves[at_shelf, 1] = first | ((count + more) << COUNT_SHIFT)
    _drop_leaf(posted, shelf, at_shelf + 1)


@helper
def _drop_leaf(posted: Posted, shelf: int, at_shelf: int) -> None:
    shelves = posted.shelves.rows
    _give(posted.entries, shelves[at_shelf, 1] & OFFSET, np.int64(_LEAF_CLASS))
    for i in range(at_shelf, shelf + shelves[shelf, 0]):
        shelves[i, 0] = shelves[i + 1, 0]
        shelves[i, 1] = shelves[i + 1, 1]
    shelves[shelf, 0] -= 1


@helper
def _gather(posted: Posted, row: int) -> None:
    """Bring a list that has just as many entries as one block into its first block."""
    headers, shelves, words = posted.headers.rows, posted.shelves.rows, posted.entries.words
    shelf = headers[row, 0] & OFFSET
    leaves = shelves[shelf, 0]
    first = shelves[shelf + 1, 1] & OFFSET
    to = first + (shelves[shelf + 1, 1] >> COUNT_SHIFT)
    for at_shelf in range(shelf + 2, shelf + leaves + 1):
        other = shelves[at_shelf, 1] & OFFSET
        for i in range(shelves[at_shelf, 1] >> COUNT_SHIFT):
            words[to] = words[other + i]
            to += 1
        _give(posted.entries, other, np.int64(_LEAF_CLASS))
    shelves[shelf, 0] = 1
    shelves[shelf + 1, 1] = first | (np.int64(LEAF) << COUNT_SHIFT)
    _end_directory(posted, row)


@helper
def _end_directory(posted: Posted, row: int) -> None:
    """Take the directory from a list of one block, if that is all it has."""
    headers, shelves = posted.headers.rows, posted.shelves.rows
    if headers[row, 0] >> COUNT_SHIFT != LEAF:
        return
    shelf = headers[row, 0] & OFFSET
    first = shelves[shelf + 1, 1] & OFFSET
    blocks.give(posted.shelves, shelf, shelves[shelf, 1])
    headers[row, 0] = first | (np.int64(LEAF) << COUNT_SHIFT)
    headers[row, 1] = (headers[row, 1] & _SIZE) | (np.int64(_LEAF_CLASS) << CLASS_SHIFT)
