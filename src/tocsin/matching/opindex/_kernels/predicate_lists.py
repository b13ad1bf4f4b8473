"""Predicate lists: the entries of one pivot and one operator, in segments (OpIndex, §4.2).

Lists by key (equalities and refutations) have segments by field and key, all others by attribute. A list begins with
one segment and doubles their number when each has many entries, up to a limit.
A segment is a block of entries in the order of (field, key, counter). A short segment is kept in order at once. In a
long one, new entries wait unsorted at the end and removed entries stay as dead ones until there are many of either, so
that the cost of sorting is amortised.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.opindex._kernels.entry_order import FIELD, TARGET, first_at, is_before, sort
from tocsin.matching.opindex._kernels.signatures import is_by_key, segment_at, segment_hash, signature_bits
from tocsin.matching.opindex.state import LOG, LOG_BITS, TAIL, EntryDraft, Segment, Setting, State, Top
from tocsin.structures import blocks, free_lists
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of, copy_row, size_of
from tocsin.structures.jit import helper

_SHORT: Final = 256  # entries of a segment that is kept in order at once
_FEW: Final = 16  # entries of a segment whose signature is computed anew after each removal
_DEAD: Final = -(2**63)
_CLASS: Final = 0xFF
_DEAD_ONE: Final = 1 << 8
_CROWDED: Final = 4  # entries per segment at which a list is split


@helper
def _tail_limit(count: int) -> int:
    return min(np.int64(64) + count // 256, np.int64(TAIL - 1))


@helper
def growth(state: State, pivot: int, entry: Int64s, more: int) -> tuple[int, int]:
    """Return a drafted entry's segment, or -1, and the rows that `more` entries may need there before a split."""
    list_ = state.lists[pivot, entry[EntryDraft.KIND]]
    if list_ < 0:
        return np.int64(-1), np.int64(1)
    row = segment_at(
        segment_hash(entry[EntryDraft.KIND], entry[EntryDraft.FIELD], entry[EntryDraft.KEY]), list_
    )
    segment = state.segments[row]
    if segment[Segment.OFFSET] < 0:
        return row, np.int64(1)
    class_ = np.int64(segment[Segment.META] & _CLASS)
    return row, size_of(class_ + 1) if segment[Segment.COUNT] + more > size_of(class_) else np.int64(0)


@helper
def split_growth(state: State, pivot: int, kind: int, more: int) -> tuple[int, int]:
    """Return the rows of entries and the segments that a list may need for splits before it has `more` entries."""
    list_, size = state.lists[pivot, kind], np.int64(state.sizes[pivot, kind]) + more
    if list_ < 0:
        return 2 * more, more + 2
    log = list_ & LOG
    if log >= _limit(state, kind) or size < np.int64(_CROWDED) << log:
        return np.int64(0), np.int64(0)
    return 2 * size + (np.int64(2) << log), (np.int64(4) << log) + more


@helper
def insert(state: State, pivot: int, entry: Int64s, target: int) -> None:
    """Add a drafted entry of a counter or gate; there must be room."""
    kind, field, key = entry[EntryDraft.KIND], entry[EntryDraft.FIELD], entry[EntryDraft.KEY]
    if state.lists[pivot, kind] < 0:
        state.lists[pivot, kind] = _new_segments(state, np.int64(0)) << LOG_BITS
        state.sizes[pivot, kind] = 0
    elif _is_crowded(state, pivot, kind):
        _split(state, pivot, kind)
    row = segment_at(segment_hash(kind, field, key), state.lists[pivot, kind])
    _append(state, row, key, (field << 32) | target)
    state.signatures[row] |= signature_bits(state, kind, field, key)
    state.sizes[pivot, kind] += 1
    state.fields.uses[field] += 1
    state.tops[Top.ENTRIES] += 1


@helper
def _limit(state: State, kind: int) -> int:
    """Return the logarithm of the most segments that a list of a kind may have."""
    return state.settings[Setting.EQUAL_SEGMENTS if is_by_key(kind) else Setting.SEGMENTS]


@helper
def _is_crowded(state: State, pivot: int, kind: int) -> bool:
    """Tell whether a list must be split before it takes another entry."""
    log = state.lists[pivot, kind] & LOG
    return log < _limit(state, kind) and state.sizes[pivot, kind] >= np.int64(_CROWDED) << log


@helper
def _split(state: State, pivot: int, kind: int) -> None:
    """Double the segments of a list; there must be room."""
    list_ = state.lists[pivot, kind]
    log, old = list_ & LOG, list_ >> LOG_BITS
    count = np.int64(1) << log
    new = _new_segments(state, log + 1)
    state.lists[pivot, kind] = (new << LOG_BITS) | (log + 1)
    state.tops[Top.MOST_SEGMENTS] = max(state.tops[Top.MOST_SEGMENTS], 2 * count)
    for i in range(count):
        if state.segments[old + i, Segment.OFFSET] >= 0:
            _sort_segment(state, old + i)
            _divide(state, old + i, new + i, new + i + count, kind)
    free_lists.give(state.segments[:, Segment.COUNT], state.free, log, old)


@helper
def _divide(state: State, old: int, low: int, high: int, kind: int) -> None:
    """Move the entries of a sorted segment to the two that replace it."""
    segments, rows = state.segments, state.entries.rows
    begin = np.int64(segments[old, Segment.OFFSET])
    end = begin + segments[old, Segment.COUNT]
    half = high - low
    for at in range(begin, end):
        row = high if segment_hash(kind, rows[at, 1] >> 32, rows[at, 0]) & half else low
        segments[row, Segment.COUNT] += 1
    for row in (low, high):
        if segments[row, Segment.COUNT] > 0:
            class_ = class_of(np.int64(segments[row, Segment.COUNT]))
            segments[row, Segment.OFFSET] = blocks.take(state.entries, class_)
            segments[row, Segment.META] = class_
    for at in range(begin, end):
        key, word = rows[at, 0], rows[at, 1]
        row = high if segment_hash(kind, word >> 32, key) & half else low
        to = np.int64(segments[row, Segment.OFFSET]) + segments[row, Segment.SORTED]
        copy_row(rows, at, to)
        segments[row, Segment.SORTED] += 1
        state.signatures[row] |= signature_bits(state, kind, word >> 32, key)
    blocks.give(state.entries, begin, np.int64(segments[old, Segment.META] & _CLASS))


@helper
def _append(state: State, row: int, key: int, word: int) -> None:
    """Add an entry to a segment."""
    segments = state.segments
    _make_room(state, row)
    rows = state.entries.rows
    count = np.int64(segments[row, Segment.COUNT])
    if count < _SHORT and (segments[row, Segment.SORTED] < count or segments[row, Segment.META] >= _DEAD_ONE):
        _sort_segment(state, row)
        count = np.int64(segments[row, Segment.COUNT])
    at = np.int64(segments[row, Segment.OFFSET]) + count
    if count < _SHORT:
        field, target = word >> 32, word & TARGET
        begin = np.int64(segments[row, Segment.OFFSET])
        while at > begin and not is_before(rows, at - 1, field, key, target):
            copy_row(rows, at - 1, at)
            at -= 1
        segments[row, Segment.SORTED] = count + 1
    rows[at, 0] = key
    rows[at, 1] = word
    segments[row, Segment.COUNT] = count + 1
    if count + 1 - segments[row, Segment.SORTED] > _tail_limit(count):
        _sort_segment(state, row)


@helper
def _new_segments(state: State, log: int) -> int:
    """Return the first of `1 << log` empty segments."""
    count, links = np.int64(1) << log, state.segments[:, Segment.COUNT]
    first = free_lists.take_run(links, state.free, log, state.tops, np.int64(Top.SEGMENTS), count)
    for row in range(first, first + count):
        _clear(state, row)
    return first


@helper
def _clear(state: State, row: int) -> None:
    """Make a segment an empty one without a block."""
    segment = state.segments[row]
    segment[Segment.OFFSET], segment[Segment.COUNT] = -1, 0
    segment[Segment.SORTED], segment[Segment.META] = 0, 0
    state.signatures[row] = 0


@helper
def _make_room(state: State, row: int) -> None:
    """Give a segment a block with room for one more entry."""
    segments = state.segments
    class_ = np.int64(segments[row, Segment.META] & _CLASS)
    if segments[row, Segment.OFFSET] < 0:
        segments[row, Segment.OFFSET] = blocks.take(state.entries, np.int64(0))
        segments[row, Segment.META] = 0
    elif segments[row, Segment.COUNT] == size_of(class_):
        _move(state, row, class_ + 1)


@helper
def _move(state: State, row: int, class_: int) -> None:
    """Move a segment's entries to a block of another class."""
    segment = state.segments[row]
    before = np.int64(segment[Segment.META] & _CLASS)
    count = np.int64(segment[Segment.COUNT])
    segment[Segment.OFFSET] = blocks.moved(
        state.entries, np.int64(segment[Segment.OFFSET]), before, count, class_
    )
    segment[Segment.META] += class_ - before
    state.tops[Top.LARGEST_SEGMENT] = max(state.tops[Top.LARGEST_SEGMENT], size_of(class_))


@helper
def erase(state: State, pivot: int, entry: Int64s, target: int) -> None:
    """Remove an entry that was inserted."""
    kind, field, key = entry[EntryDraft.KIND], entry[EntryDraft.FIELD], entry[EntryDraft.KEY]
    row = segment_at(segment_hash(kind, field, key), state.lists[pivot, kind])
    segments, rows = state.segments, state.entries.rows
    begin, count = np.int64(segments[row, Segment.OFFSET]), np.int64(segments[row, Segment.COUNT])
    sorted_ = np.int64(segments[row, Segment.SORTED])
    at = first_at(rows, begin, begin + sorted_, field, key, target)
    word = (field << 32) | target
    # A dead entry may be followed by a living one that is the same.
    while at < begin + sorted_ and rows[at, 0] == key and rows[at, 1] == word + _DEAD:
        at += 1
    if at < begin + sorted_ and rows[at, 0] == key and rows[at, 1] == word:
        if count > _SHORT:
            rows[at, 1] = word + _DEAD
            segments[row, Segment.META] += _DEAD_ONE
        else:
            for i in range(at, begin + count - 1):
                copy_row(rows, i + 1, i)
            segments[row, Segment.SORTED] -= 1
            segments[row, Segment.COUNT] -= 1
    else:
        at = begin + sorted_
        while rows[at, 0] != key or rows[at, 1] != word:
            at += 1
        copy_row(rows, begin + count - 1, at)
        segments[row, Segment.COUNT] -= 1
    state.fields.uses[field] -= 1
    state.tops[Top.ENTRIES] -= 1
    state.sizes[pivot, kind] -= 1
    _tidy(state, row, kind)
    if state.sizes[pivot, kind] == 0:
        _drop_list(state, pivot, kind)


@helper
def _tidy(state: State, row: int, kind: int) -> None:
    """Sort a segment with many dead entries, and shrink or free its block where it is too large."""
    segments = state.segments
    dead = np.int64(segments[row, Segment.META]) >> 8
    if dead > 64 + (np.int64(segments[row, Segment.COUNT]) >> 2):
        _sort_segment(state, row)
        _sign(state, row, kind)
    count = np.int64(segments[row, Segment.COUNT])
    class_ = np.int64(segments[row, Segment.META] & _CLASS)
    if count == 0:
        blocks.give(state.entries, np.int64(segments[row, Segment.OFFSET]), class_)
        _clear(state, row)
    elif class_ >= 4 and count <= size_of(class_ - 3) and blocks.has_block(state.entries, class_ - 2):
        _move(state, row, class_ - 2)
    if 0 < count <= _FEW:
        _sign(state, row, kind)


@helper
def _sign(state: State, row: int, kind: int) -> None:
    """Compute a segment's signature anew."""
    rows = state.entries.rows
    begin = np.int64(state.segments[row, Segment.OFFSET])
    signature = np.uint64(0)
    for at in range(begin, begin + state.segments[row, Segment.COUNT]):
        signature |= signature_bits(state, kind, (rows[at, 1] >> 32) & FIELD, rows[at, 0])
    state.signatures[row] = signature


@helper
def _drop_list(state: State, pivot: int, kind: int) -> None:
    """Free a predicate list and the blocks of its dead entries."""
    log, first = state.lists[pivot, kind] & LOG, state.lists[pivot, kind] >> LOG_BITS
    for row in range(first, first + (np.int64(1) << log)):
        if state.segments[row, Segment.OFFSET] >= 0:  # its entries are all dead
            class_ = np.int64(state.segments[row, Segment.META] & _CLASS)
            blocks.give(state.entries, np.int64(state.segments[row, Segment.OFFSET]), class_)
    state.lists[pivot, kind] = -1
    free_lists.give(state.segments[:, Segment.COUNT], state.free, log, first)


@helper
def _sort_segment(state: State, row: int) -> None:
    """Sort a segment's entries and drop the dead ones."""
    segments, rows, scratch = state.segments, state.entries.rows, state.scratch
    begin = np.int64(segments[row, Segment.OFFSET])
    end = begin + segments[row, Segment.COUNT]
    middle = begin
    for at in range(begin, begin + segments[row, Segment.SORTED]):
        if rows[at, 1] >= 0:
            copy_row(rows, at, middle)
            middle += 1
    late = end - (begin + segments[row, Segment.SORTED])
    for i in range(late):
        scratch[i, 0] = rows[end - late + i, 0]
        scratch[i, 1] = rows[end - late + i, 1]
    sort(scratch, late)
    at, i, last = middle + late - 1, late - 1, middle - 1
    while i >= 0:
        field, key = (scratch[i, 1] >> 32) & FIELD, scratch[i, 0]
        if last >= begin and not is_before(rows, last, field, key, scratch[i, 1] & TARGET):
            copy_row(rows, last, at)
            last -= 1
        else:
            rows[at, 0] = key
            rows[at, 1] = scratch[i, 1]
            i -= 1
        at -= 1
    segments[row, Segment.COUNT] = middle + late - begin
    segments[row, Segment.SORTED] = segments[row, Segment.COUNT]
    segments[row, Segment.META] = segments[row, Segment.META] & _CLASS
