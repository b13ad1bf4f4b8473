"""The keys of an event, and their posting lists by size."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.number_keys import is_whole, whole_of
from tocsin.matching.encoding.codes import FIELDS, Field, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.key_lists import headers_of
from tocsin.matching.k_index._kernels.packing import kind_of_slot, place_of_size, slot_of
from tocsin.matching.k_index.state import Directory, Draft, DraftTop, Key, KeyRow, Lists, RangeList
from tocsin.structures.hash_index import HashIndex, bucket_of, find_in
from tocsin.structures.jit import helper, prefetch

_NO_KEY: Final = -(2**63)  # a key that no number has


@helper
def find_lists(directory: Directory, draft: Draft, lists: Lists, events: EncodedEvents, event: int) -> int:
    """Chain the lists of an event's keys by size; return how many there are, or -1 if there is no room.

    Until the keys are looked up, `lists.row`, `lists.at` and `lists.end` have their slots, bounds and buckets.
    """
    asked = _write_keys(directory, draft, lists, events, event)
    if asked < 0:
        return np.int64(-1)
    for i in range(asked):
        prefetch(directory.keys.heads, lists.end[i])
    for i in range(asked):
        entry = np.int64(directory.keys.heads[lists.end[i]])
        prefetch(directory.keys.keys, max(entry, np.int64(0)) * directory.keys.keys.shape[1])
    found = np.int64(0)
    for i in range(asked):
        entry = find_in(directory.keys, lists.end[i], lists.row[i], lists.at[i], np.int64(0))
        if entry >= 0:
            lists.key[found] = entry
            first, _ = headers_of(directory, entry)
            prefetch(directory.posted.headers.rows, 2 * first)
            prefetch(directory.posted.headers.rows, 2 * first + 8)
            found += 1
    found = _find_ranges(directory, lists, events, event, found)
    return np.int64(-1) if found < 0 else _chain(directory, lists, found, draft.tops[DraftTop.MOST_SIZE])


@helper
def _write_keys(directory: Directory, draft: Draft, lists: Lists, events: EncodedEvents, event: int) -> int:
    """Write the keys to look up; return how many, or -1 if there is no room.

    A value has a key of its own, one of its kind, and its attribute has one that tells that it is there.
    """
    fields, stamps = directory.fields, draft.stamp
    draft.tops[DraftTop.STAMP] += 1
    count = _write_key(directory.keys, lists, slot_of(0, arrays.ALWAYS, 0), np.int64(0), np.int64(0))
    # The field of the pair before: the tests that a string passes are several pairs of one field
    before = np.int64(-1)
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        for step in range(3):
            asked, key = field, events.keys[j]
            if step == 1:
                attribute = field // FIELDS
                if stamps[attribute] == draft.tops[DraftTop.STAMP]:
                    continue
                stamps[attribute] = draft.tops[DraftTop.STAMP]
                asked, key = attribute * FIELDS + Field.ANY, np.int64(0)
            elif step == 2:
                if field % FIELDS != Field.BIG:
                    continue
                asked, key = field - Field.BIG + Field.NUMBER, np.int64(_NO_KEY)
            values, runs = fields.values[asked] > 0, fields.runs[asked] > 0 and asked != before
            if values or runs:
                occurrences = np.int64(fields.occurrences[asked])
                if count + 2 * occurrences > lists.key.shape[0]:
                    return np.int64(-1)
                for nth in range(occurrences):
                    if values:
                        count = _write_key(
                            directory.keys, lists, slot_of(asked, arrays.VALUE, nth), key, count
                        )
                    if runs:
                        count = _write_key(
                            directory.keys, lists, slot_of(asked, arrays.ANY_VALUE, nth), np.int64(0), count
                        )
            if step == 0:
                before = field
    return count


@helper
def _write_key(keys: HashIndex, lists: Lists, slot: int, key: int, count: int) -> int:
    lists.row[count] = slot
    lists.at[count] = key
    lists.end[count] = bucket_of(keys, slot, key, np.int64(0))
    return count + 1


@helper
def _find_ranges(directory: Directory, lists: Lists, events: EncodedEvents, event: int, found: int) -> int:
    """Write the keys of ranges that hold; return how many keys there are by now, or -1 if there is no room.

    An expanded range is left out where the value's own lists have its entries: at every whole number, if it is open
    within the domain only.
    """
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        key, low, high = events.keys[j], events.lows[j], events.highs[j]
        if field % FIELDS == Field.BIG:
            field += Field.NUMBER - Field.BIG
            key = np.int64(_NO_KEY)
        range_list = np.int64(directory.fields.range_list[field])
        if range_list < 0:
            continue
        whole = field % FIELDS == Field.NUMBER and is_whole(key)
        inside = whole and directory.fields.low[field] <= whole_of(key) <= directory.fields.high[field]
        while range_list >= 0 and found >= 0:
            is_expanded = (
                whole
                if kind_of_slot(directory.range_lists[range_list, RangeList.SLOT]) == Op.BETWEEN
                else inside
            )
            if not is_expanded or directory.range_lists[range_list, RangeList.PLAIN] > 0:
                found = _find_in_range_list(directory, lists, range_list, low, high, is_expanded, found)
            range_list = directory.range_lists[range_list, RangeList.NEXT]
        if found < 0:
            return found
    return found


@helper
def _find_in_range_list(
    directory: Directory, lists: Lists, range_list: int, low: int, high: int, is_expanded: bool, found: int
) -> int:
    """Write the keys of a list's ranges that hold of a value between `low` and `high`."""
    runs, run = directory.runs, directory.range_lists[range_list, RangeList.RUN]
    kind = kind_of_slot(directory.range_lists[range_list, RangeList.SLOT])
    # Bounds are in order: `<` and `<=` hold from some bound on, the others up to one.
    upwards = kind in (Op.LT, Op.LE)
    limit = low + 1
    if kind in (Op.LE, Op.GT):
        limit = high
    for step in range(runs.leaves[run]):
        at = runs.leaves[run] - 1 - step if upwards else step
        leaf = np.int64(runs.words[runs.shelf[run] + at])
        count = np.int64(runs.count[leaf])
        for n in range(count):
            i = count - 1 - n if upwards else n
            bound = runs.keys[leaf, i]
            if bound < limit if upwards else bound >= limit:
                return found
            entry = np.int64(runs.values[leaf, i])
            while entry >= 0:
                holds = kind != Op.BETWEEN or high <= directory.keys.keys[entry, Key.HIGH]
                if holds and not (is_expanded and directory.key_rows[entry, KeyRow.FLAGS] & arrays.EXPANDED):
                    if found == lists.key.shape[0]:
                        return np.int64(-1)
                    lists.key[found] = entry
                    found += 1
                entry = np.int64(directory.key_rows[entry, KeyRow.NEXT_RANGE])
    return found


@helper
def _chain(directory: Directory, lists: Lists, found: int, most: int) -> int:
    """Chain the lists of the keys by size; return how many, or -1 if there is no room."""
    rows = directory.posted.headers.rows
    for size in range(2 * most + 2):
        lists.head[size] = -1
        lists.counts[size] = 0
    count = np.int64(0)
    for i in range(found):
        first, last = headers_of(directory, lists.key[i])
        if count + last - first > lists.key.shape[0]:
            return np.int64(-1)
        for row in range(first, last):
            size = place_of_size(rows[row, 1])
            lists.row[count] = row
            lists.source[count] = i
            lists.following[count] = lists.head[size]
            lists.head[size] = count
            lists.counts[size] += 1
            count += 1
    return count
