"""Predicate lists: the entries of one pivot and one kind, in segments (OpIndex, 4.2).

Predicates that ask for a key are in segments by field and key, all others by attribute. A list begins with one
segment. When there are many entries for each, it gets twice as many, up to a limit.
A segment is a block of entries in the order of (field, key, counter). While it is short, entries are moved to
keep that order. In a long one a new entry waits at the end until there are many of them, and an entry that is
taken out stays as a dead one until there are many: what is moved then is paid for by those before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.opindex._kernels.entry_order import first_at, is_before, sort
from tocsin.matching.opindex._kernels.signatures import bits_of, place_of, segment_at
from tocsin.matching.opindex.state import (
    COUNT,
    ENTRIES,
    EQ,
    EQUAL_SEGMENTS,
    LARGEST,
    LOG_BITS,
    META,
    MOST_SEGMENTS,
    OFFSET,
    SEGMENTS,
    SORTED,
    STRIKE,
    TAIL,
    TOP_SEGMENT,
    State,
)
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper

SHORT: Final = 256  # entries that are kept in order at once
_FEW: Final = 16  # entries of which a signature is made anew whenever one is taken out
_TARGET: Final = 0xFFFFFFFF
_FIELD: Final = 0x7FFFFFFF
_DEAD: Final = -(2**63)
_CLASS: Final = 0xFF
_DEAD_ONE: Final = 1 << 8
_LOG: Final = (1 << LOG_BITS) - 1
_CROWDED: Final = 4  # entries for each segment from which on there are to be more of them


@helper
def _tail_limit(count: int) -> int:
    return min(np.int64(64) + count // 256, np.int64(TAIL - 1))


@helper
def growth(state: State, pivot: int, kind: int, field: int, key: int, more: int) -> tuple[int, int]:
    """Return an entry's segment, or -1, and how many rows `more` may need there at first, if it is not split."""
    list_ = state.lists[pivot, kind]
    if list_ < 0:
        return np.int64(-1), np.int64(1)
    row = segment_at(place_of(kind, field, key), list_)
    if state.segments[row, OFFSET] < 0:
        return row, np.int64(1)
    class_ = np.int64(state.segments[row, META] & _CLASS)
    return row, size_of(class_ + 1) if state.segments[row, COUNT] + more > size_of(class_) else np.int64(0)


@helper
def splitting(state: State, pivot: int, kind: int, more: int) -> tuple[int, int]:
    """Return how many rows of entries and how many segments it may take to split a list's, before it has `more`."""
    list_, size = state.lists[pivot, kind], np.int64(state.sizes[pivot, kind]) + more
    if list_ < 0:
        return 2 * more, more + 2
    log = list_ & _LOG
    if log >= _limit(state, kind) or size < np.int64(_CROWDED) << log:
        return np.int64(0), np.int64(0)
    return 2 * size + (np.int64(2) << log), (np.int64(4) << log) + more


@helper
def insert(state: State, pivot: int, kind: int, field: int, key: int, target: int) -> None:
    """Enter a predicate of a counter or gate; there must be room."""
    if state.lists[pivot, kind] < 0:
        state.lists[pivot, kind] = _new_segments(state, np.int64(0)) << LOG_BITS
        state.sizes[pivot, kind] = 0
    elif _is_crowded(state, pivot, kind):
        _split(state, pivot, kind)
    row = segment_at(place_of(kind, field, key), state.lists[pivot, kind])
    _append(state, row, key, (np.int64(field) << 32) | target)
    state.signatures[row] |= bits_of(state, kind, field, key)
    state.sizes[pivot, kind] += 1
    state.fields.uses[field] += 1
    state.tops[ENTRIES] += 1


@helper
def _limit(state: State, kind: int) -> int:
    """Return the logarithm of how many segments a list of a kind may have."""
    return state.settings[EQUAL_SEGMENTS if kind in (EQ, STRIKE) else SEGMENTS]


@helper
def _is_crowded(state: State, pivot: int, kind: int) -> bool:
    """Tell whether a list is to have more segments before it takes another entry."""
    log = state.lists[pivot, kind] & _LOG
    return log < _limit(state, kind) and state.sizes[pivot, kind] >= np.int64(_CROWDED) << log


@helper
def _split(state: State, pivot: int, kind: int) -> None:
    """Give a list twice as many segments; there must be room."""
    list_ = state.lists[pivot, kind]
    log, old = list_ & _LOG, list_ >> LOG_BITS
    count = np.int64(1) << log
    new = _new_segments(state, log + 1)
    state.lists[pivot, kind] = (new << LOG_BITS) | (log + 1)
    state.tops[MOST_SEGMENTS] = max(state.tops[MOST_SEGMENTS], 2 * count)
    for i in range(count):
        if state.segments[old + i, OFFSET] >= 0:
            _settle(state, old + i)
            _divide(state, old + i, new + i, new + i + count, kind)
    _give_segments(state, old, log)


@helper
def _divide(state: State, old: int, low: int, high: int, kind: int) -> None:
    """Move the entries of a segment, which are in order, to the two that take its place."""
    segments, rows = state.segments, state.entries.rows
    begin, end = np.int64(segments[old, OFFSET]), np.int64(segments[old, OFFSET]) + segments[old, COUNT]
    half = high - low
    for at in range(begin, end):
        row = high if place_of(kind, rows[at, 1] >> 32, rows[at, 0]) & half else low
        segments[row, COUNT] += 1
    for row in (low, high):
        if segments[row, COUNT] > 0:
            class_ = class_of(np.int64(segments[row, COUNT]))
            segments[row, OFFSET] = blocks.take(state.entries, class_)
            segments[row, META] = class_
    for at in range(begin, end):
        key, word = rows[at, 0], rows[at, 1]
        row = high if place_of(kind, word >> 32, key) & half else low
        to = np.int64(segments[row, OFFSET]) + segments[row, SORTED]
        rows[to, 0] = key
        rows[to, 1] = word
        segments[row, SORTED] += 1
        state.signatures[row] |= bits_of(state, kind, word >> 32, key)
    blocks.give(state.entries, begin, np.int64(segments[old, META] & _CLASS))


@helper
def _append(state: State, row: int, key: int, word: int) -> None:
    """Enter an entry into a segment."""
    segments = state.segments
    _make_room(state, row)
    rows = state.entries.rows
    count = np.int64(segments[row, COUNT])
    if count < SHORT and (segments[row, SORTED] < count or segments[row, META] >= _DEAD_ONE):
        _settle(state, row)
        count = np.int64(segments[row, COUNT])
    at = np.int64(segments[row, OFFSET]) + count
    if count < SHORT:
        field, target = word >> 32, word & _TARGET
        begin = np.int64(segments[row, OFFSET])
        while at > begin and not is_before(rows, at - 1, field, key, target):
            rows[at, 0] = rows[at - 1, 0]
            rows[at, 1] = rows[at - 1, 1]
            at -= 1
        segments[row, SORTED] = count + 1
    rows[at, 0] = key
    rows[at, 1] = word
    segments[row, COUNT] = count + 1
    if count + 1 - segments[row, SORTED] > _tail_limit(count):
        _settle(state, row)


@helper
def _new_segments(state: State, log: int) -> int:
    """Return the first of so many empty segments, given as a logarithm."""
    first, count = state.free[log], np.int64(1) << log
    if first >= 0:
        state.free[log] = state.segments[first, COUNT]
    else:
        first = state.tops[TOP_SEGMENT]
        state.tops[TOP_SEGMENT] += count
    for row in range(first, first + count):
        state.segments[row, OFFSET] = -1
        state.segments[row, COUNT] = 0
        state.segments[row, SORTED] = 0
        state.segments[row, META] = 0
        state.signatures[row] = 0
    return first


@helper
def _give_segments(state: State, first: int, log: int) -> None:
    state.segments[first, COUNT] = state.free[log]
    state.free[log] = first


@helper
def _make_room(state: State, row: int) -> None:
    """Give a segment a block with room for one more entry."""
    segments = state.segments
    class_ = np.int64(segments[row, META] & _CLASS)
    if segments[row, OFFSET] < 0:
        segments[row, OFFSET] = blocks.take(state.entries, np.int64(0))
        segments[row, META] = 0
    elif segments[row, COUNT] == size_of(class_):
        _move(state, row, class_ + 1)


@helper
def _move(state: State, row: int, class_: int) -> None:
    """Move a segment's entries to a block of another class."""
    segments, rows = state.segments, state.entries.rows
    old, before = np.int64(segments[row, OFFSET]), np.int64(segments[row, META] & _CLASS)
    new = blocks.take(state.entries, class_)
    for i in range(np.int64(segments[row, COUNT])):
        rows[new + i, 0] = rows[old + i, 0]
        rows[new + i, 1] = rows[old + i, 1]
    blocks.give(state.entries, old, before)
    segments[row, OFFSET] = new
    segments[row, META] += class_ - before
    state.tops[LARGEST] = max(state.tops[LARGEST], size_of(class_))


@helper
def erase(state: State, pivot: int, kind: int, field: int, key: int, target: int) -> None:
    """Take out a predicate that was entered."""
    row = segment_at(place_of(kind, field, key), state.lists[pivot, kind])
    segments, rows = state.segments, state.entries.rows
    begin, count = np.int64(segments[row, OFFSET]), np.int64(segments[row, COUNT])
    sorted_ = np.int64(segments[row, SORTED])
    at = first_at(rows, begin, begin + sorted_, field, key, target)
    word = (np.int64(field) << 32) | target
    # A dead entry may be followed by a living one that is the same.
    while at < begin + sorted_ and rows[at, 0] == key and rows[at, 1] == word + _DEAD:
        at += 1
    if at < begin + sorted_ and rows[at, 0] == key and rows[at, 1] == word:
        if count > SHORT:
            rows[at, 1] = word + _DEAD
            segments[row, META] += _DEAD_ONE
        else:
            for i in range(at, begin + count - 1):
                rows[i, 0] = rows[i + 1, 0]
                rows[i, 1] = rows[i + 1, 1]
            segments[row, SORTED] -= 1
            segments[row, COUNT] -= 1
    else:
        at = begin + sorted_
        while rows[at, 0] != key or rows[at, 1] != word:
            at += 1
        rows[at, 0] = rows[begin + count - 1, 0]
        rows[at, 1] = rows[begin + count - 1, 1]
        segments[row, COUNT] -= 1
    state.fields.uses[field] -= 1
    state.tops[ENTRIES] -= 1
    state.sizes[pivot, kind] -= 1
    _tidy(state, row, kind)
    if state.sizes[pivot, kind] == 0:
        _drop_list(state, pivot, kind)


@helper
def _tidy(state: State, row: int, kind: int) -> None:
    """Settle a segment that has many dead entries, and give back what it does not need."""
    segments = state.segments
    dead = np.int64(segments[row, META]) >> 8
    if dead > 64 + (np.int64(segments[row, COUNT]) >> 2):
        _settle(state, row)
        _sign(state, row, kind)
    count = np.int64(segments[row, COUNT])
    class_ = np.int64(segments[row, META] & _CLASS)
    if count == 0:
        blocks.give(state.entries, np.int64(segments[row, OFFSET]), class_)
        segments[row, OFFSET] = -1
        segments[row, META] = 0
        segments[row, SORTED] = 0
        state.signatures[row] = 0
    elif class_ >= 4 and count <= size_of(class_ - 3) and _has_block(state, class_ - 2):
        _move(state, row, class_ - 2)
    if 0 < count <= _FEW:
        _sign(state, row, kind)


@helper
def _has_block(state: State, class_: int) -> bool:
    entries = state.entries
    return entries.free[class_] >= 0 or entries.top[0] + size_of(class_) <= entries.rows.shape[0]


@helper
def _sign(state: State, row: int, kind: int) -> None:
    """Make a segment's signature anew."""
    rows = state.entries.rows
    begin = np.int64(state.segments[row, OFFSET])
    signature = np.uint64(0)
    for at in range(begin, begin + state.segments[row, COUNT]):
        signature |= bits_of(state, kind, (rows[at, 1] >> 32) & _FIELD, rows[at, 0])
    state.signatures[row] = signature


@helper
def _drop_list(state: State, pivot: int, kind: int) -> None:
    log, first = state.lists[pivot, kind] & _LOG, state.lists[pivot, kind] >> LOG_BITS
    for row in range(first, first + (np.int64(1) << log)):
        if state.segments[row, OFFSET] >= 0:  # its entries are all dead
            class_ = np.int64(state.segments[row, META] & _CLASS)
            blocks.give(state.entries, np.int64(state.segments[row, OFFSET]), class_)
    state.lists[pivot, kind] = -1
    _give_segments(state, first, log)


@helper
def _settle(state: State, row: int) -> None:
    """Bring a segment's entries into order, without the dead ones."""
    segments, rows, scratch = state.segments, state.entries.rows, state.scratch
    begin = np.int64(segments[row, OFFSET])
    end = begin + segments[row, COUNT]
    middle = begin
    for at in range(begin, begin + segments[row, SORTED]):
        if rows[at, 1] >= 0:
            rows[middle, 0] = rows[at, 0]
            rows[middle, 1] = rows[at, 1]
            middle += 1
    late = end - (begin + segments[row, SORTED])
    for i in range(late):
        scratch[i, 0] = rows[end - late + i, 0]
        scratch[i, 1] = rows[end - late + i, 1]
    sort(scratch, late)
    at, i, last = middle + late - 1, late - 1, middle - 1
    while i >= 0:
        field, key = (scratch[i, 1] >> 32) & _FIELD, scratch[i, 0]
        if last >= begin and not is_before(rows, last, field, key, scratch[i, 1] & _TARGET):
            rows[at, 0] = rows[last, 0]
            rows[at, 1] = rows[last, 1]
            last -= 1
        else:
            rows[at, 0] = key
            rows[at, 1] = scratch[i, 1]
            i -= 1
        at -= 1
    segments[row, COUNT] = middle + late - begin
    segments[row, SORTED] = segments[row, COUNT]
    segments[row, META] = segments[row, META] & _CLASS
