"""Adding drafted entries to posting lists, and removing them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS
from tocsin.matching.k_index._kernels.directory import (
    first_header,
    header_count,
    header_of,
    kind_of_slot,
    lane_of,
    make_header,
    make_key,
    remove_header,
    remove_key,
)
from tocsin.matching.k_index._kernels.postings import add_entry, count_of, first_of, remove_entry
from tocsin.matching.k_index.state import (
    ALWAYS,
    ANY_VALUE,
    CLASS_SHIFT,
    CLAUSAL,
    LEAF,
    OCCURRENCE_BITS,
    SIZE_BITS,
    VALUE,
    Directory,
    DirectoryTop,
    Draft,
    DraftTop,
    Entry,
    Lane,
    PostedCount,
)
from tocsin.structures import hash_index, sorted_runs
from tocsin.structures.hash_index import bucket_of
from tocsin.structures.jit import helper, kernel, prefetch

_MASK: Final = (1 << FIELD_BITS) - 1
_LIST: Final = (1 << CLASS_SHIFT) - 1
_K: Final = (1 << SIZE_BITS) - 1
_OCCURRENCE: Final = (1 << OCCURRENCE_BITS) - 1
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
        prefetch(keys.heads, bucket_of(keys, rows[e, Entry.SLOT], rows[e, Entry.LOW], rows[e, Entry.HIGH]))
    for e in range(begin, end):
        entry = np.int64(
            keys.heads[bucket_of(keys, rows[e, Entry.SLOT], rows[e, Entry.LOW], rows[e, Entry.HIGH])]
        )
        prefetch(keys.keys, max(entry, np.int64(0)) * keys.keys.shape[1])
    for e in range(begin, end):
        entry = np.int64(
            keys.heads[bucket_of(keys, rows[e, Entry.SLOT], rows[e, Entry.LOW], rows[e, Entry.HIGH])]
        )
        if entry >= 0:
            first = first_header(directory, entry)
            prefetch(directory.posted.headers.rows, 2 * first)
            prefetch(directory.posted.headers.rows, 2 * first + 8)
    posted = directory.posted
    for e in range(begin, end):
        entry = np.int64(
            keys.heads[bucket_of(keys, rows[e, Entry.SLOT], rows[e, Entry.LOW], rows[e, Entry.HIGH])]
        )
        if entry >= 0 and header_count(directory, entry) > 0:
            # Mostly the key is the first of its bucket, and the entry goes to the end of its list.
            header = header_of(directory, entry, rows[e, Entry.SIZE])
            if header < first_header(directory, entry) + header_count(directory, entry):
                word = posted.headers.rows[header, 0]
                at = first_of(word) + count_of(word)
                prefetch(posted.entries.words, min(at, posted.entries.top[0]))


@helper
def _has_room(directory: Directory, slot: int) -> bool:
    """Tell whether there is room for one more entry of a slot, whatever its key is."""
    tops, posted = directory.tops, directory.posted
    room = hash_index.has_room(directory.keys, 1)
    room &= posted.headers.top[0] + 2 * tops[DirectoryTop.MOST_HEADERS] + 4 <= posted.headers.rows.shape[0]
    room &= posted.entries.top[0] + 2 * LEAF <= posted.entries.words.shape[0]
    room &= (
        posted.shelves.top[0] + 2 * posted.counts[PostedCount.MOST_BLOCKS] + 8 <= posted.shelves.rows.shape[0]
    )
    kind = kind_of_slot(slot)
    if room and kind not in (VALUE, ANY_VALUE, ALWAYS):
        lane = lane_of(directory, slot)
        run = directory.lanes[lane, Lane.RUN] if lane >= 0 else np.int64(-1)
        room = (
            sorted_runs.has_room(directory.runs, run) and tops[DirectoryTop.LANES] < directory.lanes.shape[0]
        )
    return room


@helper
def _place_entry(directory: Directory, draft: Draft, e: int) -> None:
    row, posted = draft.rows[e], directory.posted
    entry = hash_index.find(directory.keys, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH])
    if entry < 0:
        entry = make_key(
            directory, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH], row[Entry.EXPANDING] != 0
        )
    header = make_header(directory, entry, row[Entry.SIZE])
    if add_entry(posted, header, row[Entry.WORD]):
        directory.tops[DirectoryTop.ENTRIES] += 1
        if row[Entry.WORD] & 1 == 0:
            directory.refusals[_size(row[Entry.SIZE])] += 1
    if posted.limits.shape[0] > 0:
        posted.limits[header] = max(posted.limits[header], draft.weights[e])


@helper
def _size(size_word: int) -> int:
    """Return the position of a size in arrays by size: even for conjunctions, odd for clausal expressions."""
    return 2 * (size_word & _K) + (size_word & CLAUSAL != 0)


@kernel
def withdraw_drafted(directory: Directory, draft: Draft) -> None:
    """Remove the drafted entries from their lists; missing ones are skipped."""
    for e in range(draft.tops[DraftTop.DRAFTED]):
        _withdraw_entry(directory, draft.rows[e])
    draft.tops[DraftTop.DRAFTED] = 0


@helper
def _withdraw_entry(directory: Directory, row: NDArray[np.int64]) -> None:
    headers = directory.posted.headers.rows
    entry = hash_index.find(directory.keys, row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH])
    if entry < 0:
        return
    header = header_of(directory, entry, row[Entry.SIZE])
    if header == first_header(directory, entry) + header_count(directory, entry):
        return
    if headers[header, 1] & _LIST != row[Entry.SIZE] or not remove_entry(
        directory.posted, header, row[Entry.WORD]
    ):
        return
    directory.tops[DirectoryTop.ENTRIES] -= 1
    if row[Entry.WORD] & 1 == 0:
        directory.refusals[_size(row[Entry.SIZE])] -= 1
    if count_of(headers[header, 0]) == 0:
        remove_header(directory, entry, header)
        if header_count(directory, entry) == 0:
            remove_key(directory, entry)
