"""Keys and their posting lists: one list for each size and clause that the key's entries have.

Ranges, whose keys no look-up finds, are in lists of ranges besides: by field, kind and number, in the order of their bounds.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Op
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.packing import field_of_slot, kind_of_slot, nth_of_slot, size_word_of
from tocsin.matching.k_index._kernels.postings import free_list, new_list
from tocsin.matching.k_index.state import Directory, DirectoryTop, Key, KeyRow, RangeList
from tocsin.structures import blocks, free_lists, hash_index, sorted_runs
from tocsin.structures.blocks import copy_row, size_of
from tocsin.structures.jit import helper

_FIRST: Final = 0xFFFFFFFF
_COUNT_SHIFT: Final = 32
_COUNT: Final = (1 << 24) - 1
_BLOCK_SHIFT: Final = 56


@helper
def headers_of(directory: Directory, entry: int) -> tuple[int, int]:
    """Return the first of a key's headers, one for each of its lists, and their end."""
    word = directory.keys.keys[entry, Key.HEADERS]
    first = word & _FIRST
    return first, first + ((word >> _COUNT_SHIFT) & _COUNT)


@helper
def header_of(directory: Directory, entry: int, size_word: int) -> int:
    """Return the first of a key's headers whose size is not below `size_word`; it may be past the last."""
    rows = directory.posted.headers.rows
    begin, end = headers_of(directory, entry)
    while begin < end:
        middle = (begin + end) >> 1
        if size_word_of(rows[middle, 1]) < size_word:
            begin = middle + 1
        else:
            end = middle
    return begin


@helper
def make_header(directory: Directory, entry: int, size_word: int) -> int:
    """Return the header of a key's list for a size, a new one if there is none; there must be room."""
    headers = directory.posted.headers
    row = header_of(directory, entry, size_word)
    first, end = headers_of(directory, entry)
    count = end - first
    if row < end and size_word_of(headers.rows[row, 1]) == size_word:
        return row
    class_ = directory.keys.keys[entry, Key.HEADERS] >> _BLOCK_SHIFT
    if class_ == arrays.NO_BLOCK or count == size_of(class_):
        larger = np.int64(0) if class_ == arrays.NO_BLOCK else class_ + 1
        new = blocks.take(headers, larger)
        for i in range(count):
            _copy(directory, first + i, new + i)
        if class_ != arrays.NO_BLOCK:
            blocks.give(headers, first, class_)
        row += new - first
        first, class_ = new, larger
    for i in range(first + count, row, -1):
        _copy(directory, i - 1, i)
    new_list(directory.posted, row, size_word)
    if directory.posted.limits.shape[0] > 0:
        directory.posted.limits[row] = 0.0
    directory.keys.keys[entry, Key.HEADERS] = first | ((count + 1) << _COUNT_SHIFT) | (class_ << _BLOCK_SHIFT)
    directory.tops[DirectoryTop.MOST_HEADERS] = max(directory.tops[DirectoryTop.MOST_HEADERS], count + 1)
    return row


@helper
def _copy(directory: Directory, source: int, target: int) -> None:
    copy_row(directory.posted.headers.rows, source, target)
    if directory.posted.limits.shape[0] > 0:
        directory.posted.limits[target] = directory.posted.limits[source]


@helper
def remove_header(directory: Directory, entry: int, row: int) -> None:
    """Free a key's list that has no entry, and the key with its last list."""
    free_list(directory.posted, row)
    first, end = headers_of(directory, entry)
    count, class_ = end - first - 1, directory.keys.keys[entry, Key.HEADERS] >> _BLOCK_SHIFT
    for i in range(row, end - 1):
        _copy(directory, i + 1, i)
    if count == 0:
        blocks.give(directory.posted.headers, first, class_)
        first, class_ = np.int64(0), np.int64(arrays.NO_BLOCK)
    directory.keys.keys[entry, Key.HEADERS] = first | (count << _COUNT_SHIFT) | (class_ << _BLOCK_SHIFT)
    if count == 0:
        _remove_key(directory, entry)


@helper
def range_list_of(directory: Directory, slot: int) -> int:
    """Return the list of a slot's ranges, or -1."""
    range_list = np.int64(directory.fields.range_list[field_of_slot(slot)])
    while range_list >= 0 and directory.range_lists[range_list, RangeList.SLOT] != slot:
        range_list = directory.range_lists[range_list, RangeList.NEXT]
    return range_list


@helper
def make_key(directory: Directory, slot: int, low: int, high: int, expanded: bool) -> int:
    """Add a key, and return its entry; there must be room."""
    entry = hash_index.insert(directory.keys, slot, low, high)
    directory.keys.keys[entry, Key.HEADERS] = np.int64(arrays.NO_BLOCK) << _BLOCK_SHIFT
    directory.key_rows[entry, KeyRow.FLAGS] = arrays.EXPANDED if expanded else 0
    directory.key_rows[entry, KeyRow.NEXT_RANGE] = -1
    field, kind = field_of_slot(slot), kind_of_slot(slot)
    if kind == arrays.ALWAYS:
        return entry
    if directory.fields.occurrences[field] <= nth_of_slot(slot):
        directory.fields.occurrences[field] = nth_of_slot(slot) + 1
    if kind == arrays.VALUE:
        directory.fields.values[field] += 1
    elif kind == arrays.ANY_VALUE:
        directory.fields.runs[field] += 1
    else:
        _add_range_key(directory, slot, low, entry, expanded)
    return entry


@helper
def _add_range_key(directory: Directory, slot: int, low: int, entry: int, expanded: bool) -> None:
    """Add the key of a range to the list of its slot, by the lower bound; closed ranges may share one, and are chained."""
    range_list, field = range_list_of(directory, slot), field_of_slot(slot)
    if range_list < 0:
        range_list = _new_range_list(directory)
        row = directory.range_lists[range_list]
        row[RangeList.SLOT], row[RangeList.NEXT] = slot, directory.fields.range_list[field]
        row[RangeList.KEYS], row[RangeList.PLAIN] = 0, 0
        directory.fields.range_list[field] = range_list
    run = directory.range_lists[range_list, RangeList.RUN]
    directory.range_lists[range_list, RangeList.KEYS] += 1
    directory.range_lists[range_list, RangeList.PLAIN] += not expanded
    if kind_of_slot(slot) == Op.BETWEEN:
        leaf, at = _found(directory, run, low)
        if at >= 0:
            directory.key_rows[entry, KeyRow.NEXT_RANGE] = directory.runs.values[leaf, at]
            directory.runs.values[leaf, at] = entry
            return
    sorted_runs.insert(directory.runs, run, low, entry)


@helper
def _new_range_list(directory: Directory) -> int:
    """Return a free list of ranges; one that was used before keeps its run, which is empty."""
    links, tops = directory.range_lists[:, RangeList.NEXT], directory.tops
    top = tops[DirectoryTop.RANGE_LISTS]
    range_list = free_lists.take(
        links, tops, np.int64(DirectoryTop.FREE_RANGE_LIST), np.int64(DirectoryTop.RANGE_LISTS)
    )
    if range_list == top:
        directory.range_lists[range_list, RangeList.RUN] = sorted_runs.new_run(directory.runs)
    return range_list


@helper
def _found(directory: Directory, run: int, low: int) -> tuple[int, int]:
    """Return the leaf of a run that a bound belongs to, and its position there or -1."""
    runs = directory.runs
    leaf = np.int64(runs.words[runs.shelf[run] + sorted_runs.leaf_for(runs, run, low)])
    at = sorted_runs.position_in(runs, leaf, low)
    if at == runs.count[leaf] or runs.keys[leaf, at] != low:
        return leaf, np.int64(-1)
    return leaf, at


@helper
def _remove_key(directory: Directory, entry: int) -> None:
    """Remove a key that has no list."""
    slot, low = directory.keys.keys[entry, Key.SLOT], directory.keys.keys[entry, Key.LOW]
    field, kind = field_of_slot(slot), kind_of_slot(slot)
    if kind == arrays.VALUE:
        directory.fields.values[field] -= 1
    elif kind == arrays.ANY_VALUE:
        directory.fields.runs[field] -= 1
    elif kind != arrays.ALWAYS:
        _remove_range_key(directory, slot, low, entry)
    hash_index.remove(directory.keys, entry)
    fields = directory.fields
    if (
        kind != arrays.ALWAYS
        and fields.values[field] == 0
        and fields.runs[field] == 0
        and fields.range_list[field] < 0
    ):
        fields.occurrences[field] = 0


@helper
def _remove_range_key(directory: Directory, slot: int, low: int, entry: int) -> None:
    """Remove the key of a range from the list of its slot, and free the list if it was the last."""
    range_list, field = range_list_of(directory, slot), field_of_slot(slot)
    run, rows = directory.range_lists[range_list, RangeList.RUN], directory.key_rows
    leaf, at = _found(directory, run, low)
    head = np.int64(directory.runs.values[leaf, at])
    if head == entry and rows[entry, KeyRow.NEXT_RANGE] < 0:
        sorted_runs.delete(directory.runs, run, low)
    elif head == entry:
        directory.runs.values[leaf, at] = rows[entry, KeyRow.NEXT_RANGE]
    else:
        while rows[head, KeyRow.NEXT_RANGE] != entry:
            head = np.int64(rows[head, KeyRow.NEXT_RANGE])
        rows[head, KeyRow.NEXT_RANGE] = rows[entry, KeyRow.NEXT_RANGE]
    directory.range_lists[range_list, RangeList.KEYS] -= 1
    directory.range_lists[range_list, RangeList.PLAIN] -= rows[entry, KeyRow.FLAGS] & arrays.EXPANDED == 0
    if directory.range_lists[range_list, RangeList.KEYS] > 0:
        return
    before = np.int64(directory.fields.range_list[field])
    if before == range_list:
        directory.fields.range_list[field] = directory.range_lists[range_list, RangeList.NEXT]
    else:
        while directory.range_lists[before, RangeList.NEXT] != range_list:
            before = directory.range_lists[before, RangeList.NEXT]
        directory.range_lists[before, RangeList.NEXT] = directory.range_lists[range_list, RangeList.NEXT]
    free_lists.give(
        directory.range_lists[:, RangeList.NEXT],
        directory.tops,
        np.int64(DirectoryTop.FREE_RANGE_LIST),
        range_list,
    )
