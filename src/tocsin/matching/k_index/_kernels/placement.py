"""How entries get into posting lists and out again."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS, Field, Op
from tocsin.matching.k_index._kernels.directory import (
    first_header,
    header_count,
    header_of,
    kind_of_place,
    lane_of,
    make_header,
    make_key,
    remove_header,
    remove_key,
)
from tocsin.matching.k_index._kernels.postings import COUNT_SHIFT, OFFSET, enter, take_out
from tocsin.matching.k_index.state import (
    CLASS_SHIFT,
    CLAUSAL,
    DRAFTED,
    DUP_BITS,
    ENTRIES,
    EXPANDING,
    HIGHEST,
    LANE_RUN,
    LEAF,
    LOW,
    MOST_HEADERS,
    MOST_LEAVES,
    NOTHING,
    PLACE,
    RESUME,
    RUN,
    SIZE,
    SIZE_BITS,
    TOP_LANE,
    VALUE,
    WORD,
    Directory,
    Draft,
)
from tocsin.structures import hash_index, sorted_runs
from tocsin.structures.hash_index import bucket_of
from tocsin.structures.jit import helper, kernel, prefetch

_MASK: Final = (1 << FIELD_BITS) - 1
_NUMBER: Final = int(Field.NUMBER)
_LT, _LE, _BETWEEN, _NOT_BETWEEN = int(Op.LT), int(Op.LE), int(Op.BETWEEN), int(Op.NOT_BETWEEN)
_IN, _NOT_IN = int(Op.IN), int(Op.NOT_IN)
_LIST: Final = (1 << CLASS_SHIFT) - 1
_K: Final = (1 << SIZE_BITS) - 1
_DUP: Final = (1 << DUP_BITS) - 1
_BATCH: Final = 64  # entries whose memory is asked for before any is placed


@kernel
def place_drafted(directory: Directory, draft: Draft) -> bool:
    """Place the entries that are drafted, from where it stopped; return whether there was room for all."""
    tops = draft.tops
    begin = tops[RESUME]
    while begin < tops[DRAFTED]:
        end = min(begin + _BATCH, tops[DRAFTED])
        _fetch(directory, draft, begin, end)
        for e in range(begin, end):
            if not _has_room(directory, draft.rows[e, PLACE]):
                tops[RESUME] = e
                return False
            _place_entry(directory, draft, e)
        begin = end
    tops[RESUME] = 0
    tops[DRAFTED] = 0
    return True


@helper
def _fetch(directory: Directory, draft: Draft, begin: int, end: int) -> None:
    """Ask for what placing some entries looks at, a step at a time, so that cache misses overlap."""
    keys, rows = directory.keys, draft.rows
    for e in range(begin, end):
        prefetch(keys.heads, bucket_of(keys, rows[e, PLACE], rows[e, LOW], rows[e, HIGHEST]))
    for e in range(begin, end):
        entry = np.int64(keys.heads[bucket_of(keys, rows[e, PLACE], rows[e, LOW], rows[e, HIGHEST])])
        prefetch(keys.keys, max(entry, np.int64(0)) * keys.keys.shape[1])
    for e in range(begin, end):
        entry = np.int64(keys.heads[bucket_of(keys, rows[e, PLACE], rows[e, LOW], rows[e, HIGHEST])])
        if entry >= 0:
            first = first_header(directory, entry)
            prefetch(directory.posted.headers.rows, 2 * first)
            prefetch(directory.posted.headers.rows, 2 * first + 8)
    posted = directory.posted
    for e in range(begin, end):
        entry = np.int64(keys.heads[bucket_of(keys, rows[e, PLACE], rows[e, LOW], rows[e, HIGHEST])])
        if entry >= 0 and header_count(directory, entry) > 0:
            # Mostly the key is the first of its bucket, and the entry goes to the end of its list.
            header = header_of(directory, entry, rows[e, SIZE])
            if header < first_header(directory, entry) + header_count(directory, entry):
                word = posted.headers.rows[header, 0]
                at = (word & OFFSET) + (word >> COUNT_SHIFT)
                prefetch(posted.entries.words, min(at, posted.entries.top[0]))


@helper
def _has_room(directory: Directory, place: int) -> bool:
    """Tell whether there is room for one more entry at a place, whatever its key is."""
    tops, posted = directory.tops, directory.posted
    room = hash_index.has_room(directory.keys, 1)
    room &= posted.headers.top[0] + 2 * tops[MOST_HEADERS] + 4 <= posted.headers.rows.shape[0]
    room &= posted.entries.top[0] + 2 * LEAF <= posted.entries.words.shape[0]
    room &= posted.shelves.top[0] + 2 * posted.counts[MOST_LEAVES] + 8 <= posted.shelves.rows.shape[0]
    kind = kind_of_place(place)
    if room and kind not in (VALUE, RUN, NOTHING):
        lane = lane_of(directory, place)
        run = directory.lanes[lane, LANE_RUN] if lane >= 0 else np.int64(-1)
        room = sorted_runs.has_room(directory.runs, run) and tops[TOP_LANE] < directory.lanes.shape[0]
    return room


@helper
def _place_entry(directory: Directory, draft: Draft, e: int) -> None:
    row, posted = draft.rows[e], directory.posted
    entry = hash_index.find(directory.keys, row[PLACE], row[LOW], row[HIGHEST])
    if entry < 0:
        entry = make_key(directory, row[PLACE], row[LOW], row[HIGHEST], row[EXPANDING] != 0)
    header = make_header(directory, entry, row[SIZE])
    if enter(posted, header, row[WORD]):
        directory.tops[ENTRIES] += 1
        if row[WORD] & 1 == 0:
            directory.refusals[_size(row[SIZE])] += 1
    if posted.limits.shape[0] > 0:
        posted.limits[header] = max(posted.limits[header], draft.weights[e])


@helper
def _size(size_word: int) -> int:
    """Return where a size stands in arrays by size: conjunctions at even places, clause forms at odd ones."""
    return 2 * (size_word & _K) + (size_word & CLAUSAL != 0)


@kernel
def withdraw_drafted(directory: Directory, draft: Draft) -> None:
    """Take the entries that are drafted out of their lists; one that is not there is passed over."""
    for e in range(draft.tops[DRAFTED]):
        _withdraw_entry(directory, draft.rows[e])
    draft.tops[DRAFTED] = 0


@helper
def _withdraw_entry(directory: Directory, row: NDArray[np.int64]) -> None:
    headers = directory.posted.headers.rows
    entry = hash_index.find(directory.keys, row[PLACE], row[LOW], row[HIGHEST])
    if entry < 0:
        return
    header = header_of(directory, entry, row[SIZE])
    if header == first_header(directory, entry) + header_count(directory, entry):
        return
    if headers[header, 1] & _LIST != row[SIZE] or not take_out(directory.posted, header, row[WORD]):
        return
    directory.tops[ENTRIES] -= 1
    if row[WORD] & 1 == 0:
        directory.refusals[_size(row[SIZE])] -= 1
    if headers[header, 0] >> COUNT_SHIFT == 0:
        remove_header(directory, entry, header)
        if header_count(directory, entry) == 0:
            remove_key(directory, entry)
