"""Adding drafted entries to posting lists, and removing them."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels import key_lists
from tocsin.matching.k_index._kernels.packing import kind_of_slot, place_of_size, size_word_of
from tocsin.matching.k_index._kernels.postings import add_entry, count_of, first_of, remove_entry
from tocsin.matching.k_index.state import (
    Directory,
    DirectoryTop,
    Draft,
    DraftTop,
    Entry,
    PostedCount,
    RangeList,
)
from tocsin.structures import hash_index, sorted_runs
from tocsin.structures.array_types import Int64s
from tocsin.structures.hash_index import HashIndex, bucket_of
from tocsin.structures.jit import helper, kernel, prefetch

_BATCH: Final = 64  # entries whose memory is prefetched before any is placed


@kernel
def place_drafted(directory: Directory, draft: Draft) -> bool:
    """Place the drafted entries, from where the last call stopped; return whether there was room for all."""
    tops = draft.tops
    begin = tops[DraftTop.RESUME]
    while begin < tops[DraftTop.DRAFTED]:
        end = min(begin + _BATCH, tops[DraftTop.DRAFTED])
        _fetch(directory, draft, begin, end)
        for e in range(begin, end):
            if not _has_room(directory, draft.rows[e, Entry.SLOT]):
                tops[DraftTop.RESUME] = e
                return False
            _place_entry(directory, draft, e)
        begin = end
    tops[DraftTop.RESUME] = 0
    tops[DraftTop.DRAFTED] = 0
    return True


@helper
def _fetch(directory: Directory, draft: Draft, begin: int, end: int) -> None:
    """Prefetch what placing some entries reads, one step at a time, so that cache misses overlap."""
    keys, rows = directory.keys, draft.rows
    for e in range(begin, end):
        prefetch(keys.heads, _bucket(keys, rows[e]))
    for e in range(begin, end):
        entry = np.int64(keys.heads[_bucket(keys, rows[e])])
        prefetch(keys.keys, max(entry, np.int64(0)) * keys.keys.shape[1])
    for e in range(begin, end):
        entry = np.int64(keys.heads[_bucket(keys, rows[e])])
        if entry >= 0:
            first, _ = key_lists.headers_of(directory, entry)
            prefetch(directory.posted.headers.rows, 2 * first)
            prefetch(directory.posted.headers.rows, 2 * first + 8)
    posted = directory.posted
    for e in range(begin, end):
        entry = np.int64(keys.heads[_bucket(keys, rows[e])])
        if entry >= 0:
            # Mostly the key is the first of its bucket, and the entry goes to the end of its list.
            header = key_lists.header_of(directory, entry, rows[e, Entry.SIZE])
            if header < key_lists.headers_of(directory, entry)[1]:
                word = posted.headers.rows[header, 0]
                at = first_of(word) + count_of(word)
                prefetch(posted.entries.words, min(at, posted.entries.top[0]))


@helper
def _bucket(keys: HashIndex, row: Int64s) -> int:
    """Return the bucket of a drafted entry's key."""
    return bucket_of(keys, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH])


@helper
def _has_room(directory: Directory, slot: int) -> bool:
    """Tell whether there is room for one more entry of a slot, whatever its key is."""
    tops, posted = directory.tops, directory.posted
    room = hash_index.has_room(directory.keys, 1)
    room &= posted.headers.top[0] + 2 * tops[DirectoryTop.MOST_HEADERS] + 4 <= posted.headers.rows.shape[0]
    room &= posted.entries.top[0] + 2 * arrays.LEAF <= posted.entries.words.shape[0]
    room &= (
        posted.shelves.top[0] + 2 * posted.counts[PostedCount.MOST_BLOCKS] + 8 <= posted.shelves.rows.shape[0]
    )
    kind = kind_of_slot(slot)
    if room and kind not in (arrays.VALUE, arrays.ANY_VALUE, arrays.ALWAYS):
        range_list = key_lists.range_list_of(directory, slot)
        run = directory.range_lists[range_list, RangeList.RUN] if range_list >= 0 else np.int64(-1)
        room = (
            sorted_runs.has_room(directory.runs, run)
            and tops[DirectoryTop.RANGE_LISTS] < directory.range_lists.shape[0]
        )
    return room


@helper
def _place_entry(directory: Directory, draft: Draft, e: int) -> None:
    """Insert one drafted entry into the list of its key and size; make key and list if they are new."""
    row, posted = draft.rows[e], directory.posted
    entry = hash_index.find(directory.keys, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH])
    if entry < 0:
        entry = key_lists.make_key(
            directory, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH], row[Entry.EXPANDING] != 0
        )
    header = key_lists.make_header(directory, entry, row[Entry.SIZE])
    if add_entry(posted, header, row[Entry.WORD]):
        directory.tops[DirectoryTop.ENTRIES] += 1
        if row[Entry.WORD] & 1 == 0:
            directory.refusals[place_of_size(row[Entry.SIZE])] += 1
    if posted.limits.shape[0] > 0:
        posted.limits[header] = max(posted.limits[header], draft.weights[e])


@kernel
def withdraw_drafted(directory: Directory, draft: Draft) -> None:
    """Remove the drafted entries from their lists; missing ones are skipped."""
    for e in range(draft.tops[DraftTop.DRAFTED]):
        _withdraw_entry(directory, draft.rows[e])
    draft.tops[DraftTop.DRAFTED] = 0


@helper
def _withdraw_entry(directory: Directory, row: Int64s) -> None:
    """Remove one entry from the list of its key and size, and the list if it becomes empty."""
    headers = directory.posted.headers.rows
    entry = hash_index.find(directory.keys, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH])
    if entry < 0:
        return
    header = key_lists.header_of(directory, entry, row[Entry.SIZE])
    if header == key_lists.headers_of(directory, entry)[1]:
        return
    if size_word_of(headers[header, 1]) != row[Entry.SIZE] or not remove_entry(
        directory.posted, header, row[Entry.WORD]
    ):
        return
    directory.tops[DirectoryTop.ENTRIES] -= 1
    if row[Entry.WORD] & 1 == 0:
        directory.refusals[place_of_size(row[Entry.SIZE])] -= 1
    if count_of(headers[header, 0]) == 0:
        key_lists.remove_header(directory, entry, header)
