"""Keys and their posting lists: one list for each size and clause that the key's entries have.

Ranges, whose keys no look-up finds, are in lanes besides: by field, kind and number, in the order of their bounds.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Op
from tocsin.matching.k_index._kernels.postings import forget_list, new_list
from tocsin.matching.k_index.state import (
    CLASS_SHIFT,
    DUP_BITS,
    EXPANDED,
    FLAGS,
    FREE_LANE,
    HEADERS,
    KIND_BITS,
    LANE_KEYS,
    LANE_NEXT,
    LANE_PLACE,
    LANE_PLAIN,
    LANE_RUN,
    MOST_HEADERS,
    NEXT_RANGE,
    NO_BLOCK,
    NOTHING,
    RUN,
    TOP_LANE,
    VALUE,
    Directory,
)
from tocsin.structures import blocks, hash_index, sorted_runs
from tocsin.structures.blocks import size_of
from tocsin.structures.jit import helper

_SIZE: Final = (1 << CLASS_SHIFT) - 1
_BETWEEN: Final = int(Op.BETWEEN)
_FIRST: Final = 0xFFFFFFFF
_COUNT_SHIFT: Final = 32
_COUNT: Final = (1 << 24) - 1
_BLOCK_SHIFT: Final = 56
_KIND: Final = (1 << KIND_BITS) - 1
_DUP: Final = (1 << DUP_BITS) - 1


@helper
def kind_of_place(place: int) -> int:
    """Return the kind of a key."""
    return (place >> DUP_BITS) & _KIND


@helper
def field_of_place(place: int) -> int:
    """Return the field of a key."""
    return place >> (DUP_BITS + KIND_BITS)


@helper
def first_header(directory: Directory, entry: int) -> int:
    """Return the first of a key's headers."""
    return directory.keys.keys[entry, HEADERS] & _FIRST


@helper
def header_count(directory: Directory, entry: int) -> int:
    """Return how many headers, and so lists, a key has."""
    return (directory.keys.keys[entry, HEADERS] >> _COUNT_SHIFT) & _COUNT


@helper
def header_of(directory: Directory, entry: int, size_word: int) -> int:
    """Return the first of a key's headers that is not before that of a size; it may be behind the last."""
    rows = directory.posted.headers.rows
    begin = first_header(directory, entry)
    end = begin + header_count(directory, entry)
    while begin < end:
        middle = (begin + end) >> 1
        if rows[middle, 1] & _SIZE < size_word:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def make_header(directory: Directory, entry: int, size_word: int) -> int:
    """Return the header of a key's list for a size, a new one if there is none; there must be room."""
    headers = directory.posted.headers
    row = header_of(directory, entry, size_word)
    first, count = first_header(directory, entry), header_count(directory, entry)
    if row < first + count and headers.rows[row, 1] & _SIZE == size_word:
        return row
    class_ = directory.keys.keys[entry, HEADERS] >> _BLOCK_SHIFT
    if class_ == NO_BLOCK or count == size_of(class_):
        larger = np.int64(0) if class_ == NO_BLOCK else class_ + 1
        new = blocks.take(headers, larger)
        for i in range(count):
            _copy(directory, first + i, new + i)
        if class_ != NO_BLOCK:
            blocks.give(headers, first, class_)
        row += new - first
        first, class_ = new, larger
    for i in range(first + count, row, -1):
        _copy(directory, i - 1, i)
    new_list(directory.posted, row, size_word)
    if directory.posted.limits.shape[0] > 0:
        directory.posted.limits[row] = 0.0
    directory.keys.keys[entry, HEADERS] = first | ((count + 1) << _COUNT_SHIFT) | (class_ << _BLOCK_SHIFT)
    directory.tops[MOST_HEADERS] = max(directory.tops[MOST_HEADERS], count + 1)
    return row


@helper
def _copy(directory: Directory, source: int, target: int) -> None:
    rows = directory.posted.headers.rows
    rows[target, 0] = rows[source, 0]
    rows[target, 1] = rows[source, 1]
    if directory.posted.limits.shape[0] > 0:
        directory.posted.limits[target] = directory.posted.limits[source]


@helper
def remove_header(directory: Directory, entry: int, row: int) -> None:
    """Give up a key's list that has no entry; the key stays."""
    forget_list(directory.posted, row)
    first, count = first_header(directory, entry), header_count(directory, entry) - 1
    class_ = directory.keys.keys[entry, HEADERS] >> _BLOCK_SHIFT
    for i in range(row, first + count):
        _copy(directory, i + 1, i)
    if count == 0:
        blocks.give(directory.posted.headers, first, class_)
        first, class_ = np.int64(0), np.int64(NO_BLOCK)
    directory.keys.keys[entry, HEADERS] = first | (count << _COUNT_SHIFT) | (class_ << _BLOCK_SHIFT)


@helper
def lane_of(directory: Directory, place: int) -> int:
    """Return the lane of ranges at a place, or -1."""
    lane = np.int64(directory.fields.lane[field_of_place(place)])
    while lane >= 0 and directory.lanes[lane, LANE_PLACE] != place:
        lane = directory.lanes[lane, LANE_NEXT]
    return lane


@helper
def make_key(directory: Directory, place: int, low: int, high: int, expanded: bool) -> int:
    """Enter a key that is not there, and return its entry; there must be room."""
    entry = hash_index.insert(directory.keys, place, low, high)
    directory.keys.keys[entry, HEADERS] = np.int64(NO_BLOCK) << _BLOCK_SHIFT
    directory.key_rows[entry, FLAGS] = EXPANDED if expanded else 0
    directory.key_rows[entry, NEXT_RANGE] = -1
    field, kind = field_of_place(place), kind_of_place(place)
    if kind == NOTHING:
        return entry
    if directory.fields.dups[field] <= place & _DUP:
        directory.fields.dups[field] = (place & _DUP) + 1
    if kind == VALUE:
        directory.fields.values[field] += 1
    elif kind == RUN:
        directory.fields.runs[field] += 1
    else:
        _enter_lane(directory, place, low, entry, expanded)
    return entry


@helper
def _enter_lane(directory: Directory, place: int, low: int, entry: int, expanded: bool) -> None:
    lane, field = lane_of(directory, place), field_of_place(place)
    if lane < 0:
        lane = directory.tops[FREE_LANE]
        if lane >= 0:  # with its run, which is empty
            directory.tops[FREE_LANE] = directory.lanes[lane, LANE_NEXT]
        else:
            lane = directory.tops[TOP_LANE]
            directory.tops[TOP_LANE] += 1
            directory.lanes[lane, LANE_RUN] = sorted_runs.new_run(directory.runs)
        row = directory.lanes[lane]
        row[LANE_PLACE], row[LANE_NEXT], row[LANE_KEYS], row[LANE_PLAIN] = (
            place,
            directory.fields.lane[field],
            0,
            0,
        )
        directory.fields.lane[field] = lane
    run = directory.lanes[lane, LANE_RUN]
    directory.lanes[lane, LANE_KEYS] += 1
    directory.lanes[lane, LANE_PLAIN] += not expanded
    if kind_of_place(place) == _BETWEEN:
        leaf, at = _found(directory, run, low)
        if at >= 0:
            directory.key_rows[entry, NEXT_RANGE] = directory.runs.values[leaf, at]
            directory.runs.values[leaf, at] = entry
            return
    sorted_runs.insert(directory.runs, run, low, entry)


@helper
def _found(directory: Directory, run: int, low: int) -> tuple[int, int]:
    """Return where a run has a bound: the leaf, and the place in it or -1."""
    runs = directory.runs
    leaf = np.int64(runs.words[runs.shelf[run] + sorted_runs.leaf_for(runs, run, low)])
    at = sorted_runs.place_in(runs, leaf, low)
    if at == runs.count[leaf] or runs.keys[leaf, at] != low:
        return leaf, np.int64(-1)
    return leaf, at


@helper
def remove_key(directory: Directory, entry: int) -> None:
    """Take out a key that has no list."""
    place, low = directory.keys.keys[entry, 0], directory.keys.keys[entry, 1]
    field, kind = field_of_place(place), kind_of_place(place)
    if kind == VALUE:
        directory.fields.values[field] -= 1
    elif kind == RUN:
        directory.fields.runs[field] -= 1
    elif kind != NOTHING:
        _leave_lane(directory, place, low, entry)
    hash_index.remove(directory.keys, entry)
    fields = directory.fields
    if kind != NOTHING and fields.values[field] == 0 and fields.runs[field] == 0 and fields.lane[field] < 0:
        fields.dups[field] = 0


@helper
def _leave_lane(directory: Directory, place: int, low: int, entry: int) -> None:
    lane, field = lane_of(directory, place), field_of_place(place)
    run, rows = directory.lanes[lane, LANE_RUN], directory.key_rows
    leaf, at = _found(directory, run, low)
    head = np.int64(directory.runs.values[leaf, at])
    if head == entry and rows[entry, NEXT_RANGE] < 0:
        sorted_runs.delete(directory.runs, run, low)
    elif head == entry:
        directory.runs.values[leaf, at] = rows[entry, NEXT_RANGE]
    else:
        while rows[head, NEXT_RANGE] != entry:
            head = np.int64(rows[head, NEXT_RANGE])
        rows[head, NEXT_RANGE] = rows[entry, NEXT_RANGE]
    directory.lanes[lane, LANE_KEYS] -= 1
    directory.lanes[lane, LANE_PLAIN] -= rows[entry, FLAGS] & EXPANDED == 0
    if directory.lanes[lane, LANE_KEYS] > 0:
        return
    before = np.int64(directory.fields.lane[field])
    if before == lane:
        directory.fields.lane[field] = directory.lanes[lane, LANE_NEXT]
    else:
        while directory.lanes[before, LANE_NEXT] != lane:
            before = directory.lanes[before, LANE_NEXT]
        directory.lanes[before, LANE_NEXT] = directory.lanes[lane, LANE_NEXT]
    directory.lanes[lane, LANE_NEXT] = directory.tops[FREE_LANE]
    directory.tops[FREE_LANE] = lane
