"""Cursors over several posting lists, in the order of their expressions (Whang et al., §2.3)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.k_index._kernels import postings
from tocsin.matching.k_index.state import LEAF, Lists, Posted
from tocsin.structures.jit import helper, prefetch

EXPRESSION_SHIFT: Final = 33  # of a cursor: the expression, above the bit that tells `in`, above the list
LIST: Final = 0xFFFFFFFF
_WORD_SHIFT: Final = 32
_NEAR: Final = 8  # entries that are scanned before a binary search


@helper
def open_lists(posted: Posted, lists: Lists, size: int) -> int:
    """Set a cursor to the first entry of each list of a size, in order; return how many there are."""
    headers = posted.headers.rows
    count, i = np.int64(0), lists.head[size]
    while i >= 0:
        header = headers[lists.row[i], 0]
        begin, length = postings.block_at(posted, header, np.int64(0))
        shelf, blocks = np.int64(0), np.int64(0)
        if postings.count_of(header) > LEAF:
            shelf = postings.first_of(header) + 1
            blocks = posted.shelves.rows[shelf - 1, 0] - 1
        lists.shelf[count] = shelf
        lists.last_shelf[count] = shelf + blocks
        prefetch(posted.entries.words, begin)
        lists.which[count] = i
        lists.at[count] = begin
        lists.end[count] = begin + length
        count += 1
        i = lists.following[i]
    for n in range(count):
        cursor = _cursor(posted, lists, n)
        k = n
        while k > 0 and lists.packed[k - 1] > cursor:
            lists.packed[k] = lists.packed[k - 1]
            k -= 1
        lists.packed[k] = cursor
    return count


@helper
def _cursor(posted: Posted, lists: Lists, n: int) -> int:
    word = np.uint64(posted.entries.words[lists.at[n]])
    return (word << np.uint64(_WORD_SHIFT)) | np.uint64(n)


@helper
def skip(posted: Posted, lists: Lists, moved: int, count: int, expression: int) -> int:
    """Advance the first `moved` cursors to entries of `expression` or a later one, and sort all cursors.

    Returns how many lists are left; exhausted ones are dropped.
    """
    packed = lists.packed
    word = 2 * expression
    for i in range(moved - 1, -1, -1):
        n = np.int64(packed[i] & np.uint64(LIST))
        if _skip_list(posted, lists, n, word):
            cursor, k = _cursor(posted, lists, n), i + 1
            while k < count and packed[k] < cursor:
                packed[k - 1] = packed[k]
                k += 1
            packed[k - 1] = cursor
        else:
            count -= 1
            for k in range(i, count):
                packed[k] = packed[k + 1]
    return count


@helper
def _skip_list(posted: Posted, lists: Lists, n: int, word: int) -> bool:
    """Advance a list's cursor to the first entry that is not below `word`; return False if there is none."""
    words = posted.entries.words
    at, end = lists.at[n], lists.end[n]
    if words[end - 1] < word:
        shelf, last = lists.shelf[n], lists.last_shelf[n]
        if shelf == last:
            return False
        shelves = posted.shelves.rows
        # The last block that begins at or below the entry; at least the next one.
        low = postings.last_block_from(shelves, shelf + 1, last, np.int64(word))
        at = postings.first_of(shelves[low, 1])
        end = at + postings.count_of(shelves[low, 1])
        lists.shelf[n] = low
        lists.end[n] = end
        if words[end - 1] < word:
            if low == last:
                return False
            lists.shelf[n] = low + 1
            at = postings.first_of(shelves[low + 1, 1])
            lists.end[n] = at + postings.count_of(shelves[low + 1, 1])
            lists.at[n] = at
            return True
    near = min(at + _NEAR, end)
    while at < near and words[at] < word:
        at += 1
    if at == near:
        at = postings.first_from(words, at, end, word)
    lists.at[n] = at
    return True
