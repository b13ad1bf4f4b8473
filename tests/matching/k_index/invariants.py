"""The invariants of k-index's arrays between any two calls."""

from __future__ import annotations

import numpy as np

from tests.matching.block_memory import SIZES, Blocks, check_disjoint
from tocsin.matching.conjunction_store.state import StoreCounter, numbers_in_use
from tocsin.matching.k_index.matcher import KIndex
from tocsin.matching.k_index.state import (
    CLASS_SHIFT,
    CLAUSAL,
    LEAF,
    SIZE_BITS,
    DirectoryTop,
    Expression,
    Key,
    Member,
    Posted,
    PostedCount,
    TableTop,
)
from tocsin.structures import hash_index

LOW = 0xFFFFFFFF


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
        word = int(key[Key.HEADERS])
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
            assert all(state.table.rows[word >> 1, Expression.FIRST_MEMBER] >= 0 for word in words)
            lists += 1
            entries += len(words)
    assert (lists, entries) == (posted.counts[PostedCount.LISTS], directory.tops[DirectoryTop.ENTRIES])
    assert (refusals == directory.refusals).all()
    check_disjoint(headers, posted.headers.free, posted.headers.rows[:, 0], int(posted.headers.top[0]))
    check_disjoint(blocks, posted.entries.free, posted.entries.words, int(posted.entries.top[0]))
    check_disjoint(shelves, posted.shelves.free, posted.shelves.rows[:, 0], int(posted.shelves.top[0]))
    _check_table(matcher)


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


def _check_table(matcher: KIndex) -> None:
    """Check that every expression has members that name it, and the other way round."""
    table, store = matcher._state.table, matcher._store
    members = 0
    living = 0
    for number in range(int(table.tops[TableTop.EXPRESSIONS])):
        member = int(table.rows[number, Expression.FIRST_MEMBER])
        living += member >= 0
        while member >= 0:
            assert store.rows[member, Member.EXPRESSION] == number
            assert store.owner[member] >= 0
            members += 1
            member = int(store.rows[member, Member.NEXT])
    assert (living, members) == (
        table.tops[TableTop.LIVE_EXPRESSIONS],
        store.counters[StoreCounter.LIVE],
    )
    assert len(numbers_in_use(store)) == members
    assert hash_index.live_entries(table.digests) <= living
