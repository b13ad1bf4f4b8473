"""What must hold of k-index's arrays between any two calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.k_index.matcher import KIndex
from tocsin.matching.k_index.state import (
    CLASS_SHIFT,
    CLAUSAL,
    ENTRIES,
    FIRST_MEMBER,
    FORM,
    HEADERS,
    LEAF,
    LISTS,
    LIVE_FORMS,
    LIVE_MEMBERS,
    NEXT_MEMBER,
    RECORDS,
    SIZE_BITS,
    TOP_FORM,
    TOP_MEMBER,
    Posted,
)
from tocsin.structures import hash_index

SIZES = [1, 2, 3, 4, *(size for log in range(2, 40) for size in (6 << (log - 2), 8 << (log - 2)))]
LOW = 0xFFFFFFFF

Blocks = list[tuple[int, int]]


def check_invariants(matcher: KIndex) -> None:
    state = matcher._state
    directory, posted = state.directory, state.directory.posted
    blocks: Blocks = []
    headers: Blocks = []
    shelves: Blocks = []
    lists = entries = 0
    refusals = np.zeros(len(directory.refusals), dtype=np.int64)
    for entry in range(hash_index.top_entry(directory.keys)):
        key = directory.keys.keys[entry]
        if hash_index.find(directory.keys, key[0], key[1], key[2]) != entry:
            continue
        word = int(key[HEADERS])
        first, count, class_ = word & LOW, (word >> 32) & 0xFFFFFF, word >> 56
        assert 0 < count <= SIZES[class_]
        headers.append((first, SIZES[class_]))
        sizes = (posted.headers.rows[first : first + count, 1] & ((1 << CLASS_SHIFT) - 1)).tolist()
        assert sizes == sorted(set(sizes))
        for row in range(first, first + count):
            words = _entries(posted, row, blocks, shelves)
            assert words == sorted(set(words))
            size = sizes[row - first]
            refusals[2 * (size & ((1 << SIZE_BITS) - 1)) + bool(size & CLAUSAL)] += sum(
                word % 2 == 0 for word in words
            )
            assert all(state.book.forms[word >> 1, RECORDS] >= 0 for word in words)
            lists += 1
            entries += len(words)
    assert (lists, entries) == (posted.counts[LISTS], directory.tops[ENTRIES])
    assert (refusals == directory.refusals).all()
    _check_disjoint(headers, posted.headers.free, posted.headers.rows[:, 0], int(posted.headers.top[0]))
    _check_disjoint(blocks, posted.entries.free, posted.entries.words, int(posted.entries.top[0]))
    _check_disjoint(shelves, posted.shelves.free, posted.shelves.rows[:, 0], int(posted.shelves.top[0]))
    _check_book(matcher)


def _entries(posted: Posted, row: int, blocks: Blocks, shelves: Blocks) -> list[int]:
    """Return a list's entries, and note the blocks that it takes."""
    begin, count = int(posted.headers.rows[row, 0]) & LOW, int(posted.headers.rows[row, 0]) >> 32
    assert count > 0
    if count <= LEAF:
        class_ = int(posted.headers.rows[row, 1]) >> CLASS_SHIFT
        assert count <= SIZES[class_]
        blocks.append((begin, SIZES[class_]))
        return [int(word) for word in posted.entries.words[begin : begin + count]]
    leaves, class_ = posted.shelves.rows[begin].tolist()
    shelves.append((begin, SIZES[class_]))
    assert leaves < SIZES[class_]
    words: list[int] = []
    for first, where in posted.shelves.rows[begin + 1 : begin + 1 + leaves].tolist():
        block = posted.entries.words[where & LOW : (where & LOW) + (where >> 32)].tolist()
        assert block
        assert block[0] == first
        blocks.append((where & LOW, LEAF))
        words += block
    assert len(words) == count
    return words


def _check_disjoint(blocks: Blocks, free: NDArray[Any], links: NDArray[Any], top: int) -> None:
    """Check that blocks in use and free ones fill the memory, and that none overlaps another."""
    for class_, head in enumerate(free.tolist()):
        at = head
        while at >= 0:
            blocks.append((at, SIZES[class_]))
            at = int(links[at])
    end = 0
    for first, size in sorted(blocks):
        assert first == end
        end += size
    assert end == top


def _check_book(matcher: KIndex) -> None:
    """Check that every form has members that say so, and the other way round."""
    book = matcher._state.book
    members = 0
    living = 0
    for number in range(int(book.tops[TOP_FORM])):
        if book.forms[number, RECORDS] < 0:
            continue
        living += 1
        member = int(book.forms[number, FIRST_MEMBER])
        assert member >= 0
        while member >= 0:
            assert book.members[member, FORM] == number
            assert book.owner[member] >= 0
            members += 1
            member = int(book.members[member, NEXT_MEMBER])
    assert (living, members) == (book.tops[LIVE_FORMS], book.tops[LIVE_MEMBERS])
    assert np.count_nonzero(book.owner[: int(book.tops[TOP_MEMBER])] >= 0) == members
    assert hash_index.live_entries(book.digests) <= living
