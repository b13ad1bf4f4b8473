"""Clusters: the conjunctions of an access path, one behind the other in one block of words.

A conjunction is the first code that is checked, a head (see `state`), its number, the other codes that are checked, the least
likely first, and then those that are not: the access path implies them, or they are residual. Where none is checked, the first
word is 0, the code that every event satisfies. Of a code that is checked and no equality, there is -1 less it. Where few events
have a value to check, the slot of each check is behind the number, with the upper halves of the bounds that the value must have:
they decide nearly always, and the predicates themselves are somewhere else in memory. A conjunction that is gone stays as a gap,
with -1 for its number, until there are many. A large cluster has the first checks of its conjunctions besides, next to each other;
these may be in sections (see `sections`), and what is added later is behind them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive.state import (
    ALWAYS,
    BOUNDS,
    BOUNDS_BIT,
    HOT_BIT,
    LARGE_BIT,
    RESIDUAL_BIT,
    SIZE_BITS,
    SIZE_MASK,
    Access,
    Large,
    State,
    Stored,
    Top,
    Words,
)
from tocsin.structures import blocks, free_lists
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, kernel

_LOW_HALF: Final = 0xFFFFFFFF
HEAD: Final = 1  # the places of words of a conjunction
NUMBER: Final = 2
REST: Final = 3


@helper
def start_of(place: int) -> int:
    """Return where a cluster begins."""
    return place >> 32


@helper
def words_in(place: int) -> int:
    """Return how many words a cluster has."""
    return place & (LARGE_BIT - 1)


@helper
def place_of(start: int, words: int, before: int) -> int:
    """Return the place of a cluster that was at another place before."""
    return (start << 32) | words | (before & (HOT_BIT | LARGE_BIT))


@helper
def size_in(head: int) -> int:
    """Return how many codes a conjunction has."""
    return head & SIZE_MASK


@helper
def checks_in(head: int) -> int:
    """Return how many codes of a conjunction are checked."""
    return (head >> SIZE_BITS) & SIZE_MASK


@helper
def length_of(head: int) -> int:
    """Return how many words a conjunction has."""
    return size_in(head) + REST - (checks_in(head) > 0) + bounds_in(head)


@helper
def bounds_in(head: int) -> int:
    """Return how many words behind a conjunction's number are slots and bounds."""
    return BOUNDS * checks_in(head) * ((head >> BOUNDS_BIT) & 1)


@helper
def place_of_check(head: int, at: int, k: int) -> int:
    """Return where one of the codes that are checked is, of a conjunction at `at`."""
    return at if k == 0 else at + REST + bounds_in(head) + k - 1


@helper
def longest(size: int) -> int:
    """Return how many words a conjunction of so many codes may have."""
    return size + REST + BOUNDS * size


@helper
def head_of(size: int, checks: int, is_residual: bool, has_bounds: bool) -> int:
    """Return the head of a conjunction."""
    bits = (np.int64(is_residual) << RESIDUAL_BIT) | (np.int64(has_bounds) << BOUNDS_BIT)
    return size | (checks << SIZE_BITS) | bits


@helper
def code_in(word: int) -> int:
    """Return the code in a word of a conjunction."""
    return word if word >= 0 else -1 - word


@helper
def size_of_stored(state: State, number: int) -> int:
    """Return how many codes a stored conjunction has; 0 if it is in no cluster, since its removal was interrupted."""
    entry = np.int64(state.store.rows[number, Stored.PATH])
    if entry < 0:
        return np.int64(0)
    at = start_of(state.access.keys[entry, Access.PLACE]) + state.store.rows[number, Stored.OFFSET]
    return size_in(np.int64(state.words.rows[at + HEAD]))


@helper
def copy_codes(state: State, number: int, codes: Int64s) -> int:
    """Write the codes of a conjunction; return how many it has: see `size_of_stored`."""
    entry = np.int64(state.store.rows[number, Stored.PATH])
    if entry < 0:
        return np.int64(0)
    at = start_of(state.access.keys[entry, Access.PLACE]) + state.store.rows[number, Stored.OFFSET]
    head = np.int64(state.words.rows[at + HEAD])
    count = np.int64(0)
    if checks_in(head) > 0:
        codes[0] = code_in(np.int64(state.words.rows[at]))
        count += 1
    for i in range(at + REST + bounds_in(head), at + length_of(head)):
        codes[count] = code_in(np.int64(state.words.rows[i]))
        count += 1
    return count


@helper
def growth(state: State, entry: int, words: int) -> int:
    """Return how many words more it takes to make a cluster longer."""
    used = words_in(state.access.keys[entry, Access.PLACE])
    if used > 0 and used + words <= size_of(class_of(used)):
        return np.int64(0)
    return size_of(class_of(used + words))


@helper
def append(state: State, entry: int, words: int) -> int:
    """Make a cluster longer by some words; return where they begin, counted from the first word of all; there must be room."""
    place = state.access.keys[entry, Access.PLACE]
    start, used = start_of(place), words_in(place)
    if used == 0:
        start = _take(state.words, class_of(words))
    elif used + words > size_of(class_of(used)):
        start = _moved(state.words, start, used, class_of(used + words))
    state.access.keys[entry, Access.PLACE] = place_of(start, used + words, place)
    return start + used


@helper
def _take(words: Words, class_: int) -> int:
    """Return the first word of a block that is not in use; there must be room for it. A larger free block is divided."""
    if words.free[class_] < 0:
        for larger in range(class_ + 1, words.free.shape[0]):
            if words.free[larger] >= 0:
                first = words.free[larger]
                words.free[larger] = words.rows[first]
                _give_all(words, first + size_of(class_), first + size_of(np.int64(larger)))
                return first
    return free_lists.take_run(words.rows, words.free, class_, words.top, 0, size_of(class_))


@helper
def _give_all(words: Words, first: int, end: int) -> None:
    """Give back words as blocks, the largest that there are."""
    while first < end:
        class_ = class_of(end - first)
        if size_of(class_) > end - first:
            class_ -= 1
        free_lists.give(words.rows, words.free, class_, first)
        first += size_of(class_)


@helper
def _moved(words: Words, first: int, used: int, class_: int) -> int:
    """Move the words of a cluster to a block of another class, for which there must be room; return its first word."""
    new = _take(words, class_)
    for i in range(used):
        words.rows[new + i] = words.rows[first + i]
    free_lists.give(words.rows, words.free, class_of(used), first)
    return new


@helper
def take_out(state: State, number: int) -> bool:
    """Take a conjunction out of its cluster; what it named keeps its uses.

    Return False if there is no room to close gaps; `Top.NEEDED` is how many words there has to be room for.
    """
    entry = np.int64(state.store.rows[number, Stored.PATH])
    place = state.access.keys[entry, Access.PLACE]
    at, used = start_of(place) + state.store.rows[number, Stored.OFFSET], words_in(place)
    gone = words_gone(state, entry) + length_of(np.int64(state.words.rows[at + HEAD]))
    is_closed, left = 2 * gone > used, used - gone
    smaller = class_of(max(left, np.int64(1)))
    if is_closed and left > 0 and smaller < class_of(used) and not _has_block(state.words, smaller):
        state.tops[Top.NEEDED] = size_of(smaller)
        return False
    state.words.rows[at + NUMBER] = -1
    state.store.rows[number, Stored.PATH] = -1
    if is_closed:
        gone, large = np.int64(0), large_of(state, entry)
        _close_gaps(state, entry)
        if large >= 0 and words_in(state.access.keys[entry, Access.PLACE]) >= state.tops[Top.LARGE]:
            _write_first_checks(state, entry, large)
        elif large >= 0:
            _make_small(state, entry, large)
    _set_words_gone(state, entry, gone)
    return True


@helper
def large_of(state: State, entry: int) -> int:
    """Return the row of a large cluster, -1 of others."""
    if state.access.keys[entry, Access.PLACE] & LARGE_BIT:
        return state.access.keys[entry, Access.WORK] & _LOW_HALF
    return np.int64(-1)


@helper
def words_gone(state: State, entry: int) -> int:
    """Return how many words of a cluster are of conjunctions that are gone."""
    large = large_of(state, entry)
    if large >= 0:
        return state.large.rows[large, Large.GONE]
    return state.access.keys[entry, Access.WORK] & _LOW_HALF


@helper
def _set_words_gone(state: State, entry: int, gone: int) -> None:
    large, work = large_of(state, entry), state.access.keys[entry, Access.WORK]
    if large >= 0:
        state.large.rows[large, Large.GONE] = gone
    else:
        state.access.keys[entry, Access.WORK] = (work & ~np.int64(_LOW_HALF)) | gone


@helper
def first_checks_wanted(state: State, entry: int, words: int) -> int:
    """Return how much room for first checks it may take to make a cluster longer by some words."""
    large, used = large_of(state, entry), words_in(state.access.keys[entry, Access.PLACE])
    if large >= 0:
        count = state.large.rows[large, Large.COUNT]
        is_full = count == size_of(state.large.rows[large, Large.CLASS])
        return size_of(class_of(count + 1)) if is_full else np.int64(0)
    is_large = used + words >= state.tops[Top.LARGE]
    return size_of(class_of((used + words) // REST + 1)) if is_large else np.int64(0)


@helper
def add_first_check(state: State, entry: int, at: int) -> None:
    """Have the first check of the cluster's newest conjunction, which is at `at`, beside the others, if the cluster is large."""
    place, large = state.access.keys[entry, Access.PLACE], large_of(state, entry)
    if large < 0:
        if words_in(place) >= state.tops[Top.LARGE]:
            _make_large(state, entry)
        return
    row, checks = state.large.rows[large], state.large.checks
    count = row[Large.COUNT]
    if count == size_of(row[Large.CLASS]):
        class_ = class_of(count + 1)
        row[Large.FIRST] = blocks.moved(checks, row[Large.FIRST], row[Large.CLASS], count, class_)
        row[Large.CLASS] = class_
    checks.rows[row[Large.FIRST] + count, 0] = first_check(
        np.int64(state.words.rows[at]), at - start_of(place)
    )
    row[Large.COUNT] = count + 1


@helper
def first_check(word: int, offset: int) -> int:
    """Return a first check, and where its conjunction is."""
    return (offset << 32) | (word & _LOW_HALF)


@helper
def _make_large(state: State, entry: int) -> None:
    """Give a cluster first checks next to each other."""
    large, counters, row = state.large, state.large.counters, state.access.keys[entry]
    number = free_lists.take(large.rows[:, Large.FIRST], counters, 0, 1)
    for column in range(large.rows.shape[1]):
        large.rows[number, column] = 0
    large.rows[number, Large.ENTRY], large.rows[number, Large.GONE] = entry, row[Access.WORK] & _LOW_HALF
    class_ = class_of(words_in(row[Access.PLACE]) // REST + 1)
    large.rows[number, Large.FIRST], large.rows[number, Large.CLASS] = (
        blocks.take(large.checks, class_),
        class_,
    )
    row[Access.WORK] = (row[Access.WORK] & ~np.int64(_LOW_HALF)) | number
    row[Access.PLACE] |= np.int64(LARGE_BIT)
    _write_first_checks(state, entry, number)


@helper
def _write_first_checks(state: State, entry: int, large: int) -> None:
    """Write the first checks of a large cluster, which is not divided then; there is room."""
    place, row = state.access.keys[entry, Access.PLACE], state.large.rows[large]
    start, offset, count = start_of(place), np.int64(0), np.int64(0)
    while offset < words_in(place):
        word = np.int64(state.words.rows[start + offset])
        state.large.checks.rows[row[Large.FIRST] + count, 0] = first_check(word, offset)
        offset += length_of(np.int64(state.words.rows[start + offset + HEAD]))
        count += 1
    row[Large.COUNT] = count
    row[Large.SECTIONS] = row[Large.DIVIDED] = row[Large.PARTS] = 0


@helper
def _make_small(state: State, entry: int, large: int) -> None:
    """Give back what a large cluster has besides words."""
    row = state.large.rows[large]
    blocks.give(state.large.checks, row[Large.FIRST], row[Large.CLASS])
    row[Large.ENTRY], row[Large.SECTIONS] = -1, 0
    free_lists.give(state.large.rows[:, Large.FIRST], state.large.counters, 0, large)
    state.access.keys[entry, Access.PLACE] &= ~np.int64(LARGE_BIT)


@helper
def _has_block(words: Words, class_: int) -> bool:
    return words.free[class_] >= 0 or words.top[0] + size_of(class_) <= words.rows.shape[0]


@helper
def is_empty(state: State, entry: int) -> bool:
    """Tell whether a cluster has no conjunctions, and its access path can be removed."""
    return state.access.keys[entry, Access.PLACE] == 0 and entry != ALWAYS


@helper
def _close_gaps(state: State, entry: int) -> None:
    """Move the conjunctions of a cluster together, into a smaller block where it is too large."""
    place, rows = state.access.keys[entry, Access.PLACE], state.words.rows
    start, used = start_of(place), words_in(place)
    at, to, end = start, start, start + used
    while at < end:
        number, words = np.int64(rows[at + NUMBER]), length_of(np.int64(rows[at + HEAD]))
        if number >= 0:
            state.store.rows[number, Stored.OFFSET] = to - start
            for i in range(words):
                rows[to + i] = rows[at + i]
            to += words
        at += words
    left = to - start
    if left == 0:
        free_lists.give(state.words.rows, state.words.free, class_of(used), start)
        state.access.keys[entry, Access.PLACE] = 0
        return
    if class_of(left) < class_of(used):
        new = _take(state.words, class_of(left))
        for i in range(left):
            rows[new + i] = rows[start + i]
        free_lists.give(state.words.rows, state.words.free, class_of(used), start)
        start = new
    state.access.keys[entry, Access.PLACE] = place_of(start, left, place)


@kernel
def pack(state: State, words: Int32s, checks: Int64s) -> None:
    """Move all clusters into other memory, one behind the other; there must be room."""
    memory, access = state.words, state.access
    for class_ in range(memory.free.shape[0]):
        memory.free[class_] = -1
    for class_ in range(state.large.checks.free.shape[0]):
        state.large.checks.free[class_] = -1
    top, top_check = np.int64(0), np.int64(0)
    for entry in range(access.counters[1]):
        place = access.keys[entry, Access.PLACE]
        used = words_in(place)
        for i in range(used):
            words[top + i] = memory.rows[start_of(place) + i]
        if used > 0:
            access.keys[entry, Access.PLACE] = place_of(top, used, place)
            top += size_of(class_of(used))
    for large in range(state.large.counters[1]):
        row = state.large.rows[large]
        if row[Large.ENTRY] >= 0:
            for i in range(row[Large.COUNT]):
                checks[top_check + i, 0] = state.large.checks.rows[row[Large.FIRST] + i, 0]
            row[Large.FIRST], row[Large.CLASS] = top_check, class_of(row[Large.COUNT])
            top_check += size_of(row[Large.CLASS])
    memory.top[0] = top
    state.large.checks.top[0] = top_check
