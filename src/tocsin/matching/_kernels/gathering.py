"""From the conjunctions that events satisfy to the ids of their subscriptions."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.jit import helper, kernel, prefetch

# Added to a conjunction that holds if Python says so of its residual predicates
NEEDS_RESIDUAL: Final = 1 << 40
_SHORT: Final = 24  # ids that are sorted sooner by comparing them
_SIGN_BYTE: Final = 7
DIGITS: Final = 256


@kernel
def gather_ids(
    keys: Int64s, owner: Int32s, found: Int64s, offsets: Int64s, ids: Int64s, ends: Int64s, counts: Int64s
) -> None:
    """Turn conjunctions into their subscriptions' ids, per event ascending and without repeats.

    `keys` are the ids by entry, `owner` the entry by conjunction. Those of event i are `ids[ends[i]:ends[i + 1]]`.
    A negative conjunction was refused, and is left out. `found` and `counts`, of DIGITS, are written over.
    """
    count = np.int64(0)
    ends[0] = 0
    for event in range(offsets.shape[0] - 1):
        count = gather_event(keys, owner, found, offsets[event], offsets[event + 1], ids, count, counts)
        ends[event + 1] = count


@helper
def gather_event(
    keys: Int64s, owner: Int32s, found: Int64s, first: int, last: int, ids: Int64s, begin: int, counts: Int64s
) -> int:
    """Write the ids of one event's conjunctions, from `first` to `last`, behind the first `begin`; return their end."""
    # Where there are many subscriptions, each look-up waits for memory: ask for all of an event's before any.
    for i in range(first, last):
        prefetch(owner, max(found[i], np.int64(0)))
    for i in range(first, last):
        prefetch(keys, np.int64(owner[max(found[i], np.int64(0))]) * keys.shape[1])
    count = np.int64(begin)
    for i in range(first, last):
        if found[i] >= 0:
            ids[count] = keys[owner[found[i]], 0]
            count += 1
    if count - begin <= _SHORT:
        _sort(ids, begin, count)
    else:
        _distribute(ids, begin, count, found, first, counts)
    kept = np.int64(begin)
    for i in range(begin, count):
        if kept == begin or ids[kept - 1] != ids[i]:
            ids[kept] = ids[i]
            kept += 1
    return kept


@helper
def _sort(values: Int64s, begin: int, end: int) -> None:
    """Sort a short stretch in place, by insertion over shrinking gaps."""
    for gap in (10, 4, 1):
        for i in range(begin + gap, end):
            value = values[i]
            k = i
            while k >= begin + gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value


@helper
def _distribute(values: Int64s, begin: int, end: int, room: Int64s, first: int, counts: Int64s) -> None:
    """Sort a stretch byte by byte, those in which its values differ; `room` is as long, from `first` on.

    No branch depends on the values, so none is foretold wrongly.
    """
    differing = np.int64(0)
    for i in range(begin, end):
        differing |= values[i] ^ values[begin]
    there, other, at, into = values, room, np.int64(begin), np.int64(first)
    size, is_away = np.int64(end - begin), False
    for byte in range(8):
        shift = np.int64(8 * byte)
        if (differing >> shift) & 0xFF == 0:
            continue
        flip = np.int64(0x80 if byte == _SIGN_BYTE else 0)  # what is negative comes first
        for digit in range(DIGITS):
            counts[digit] = 0
        for i in range(at, at + size):
            counts[((there[i] >> shift) & 0xFF) ^ flip] += 1
        total = np.int64(0)
        for digit in range(DIGITS):
            count = counts[digit]
            counts[digit] = total
            total += count
        for i in range(at, at + size):
            digit = ((there[i] >> shift) & 0xFF) ^ flip
            other[into + counts[digit]] = there[i]
            counts[digit] += 1
        there, other, at, into, is_away = other, there, into, at, not is_away
    if is_away:
        for i in range(size):
            values[begin + i] = room[first + i]
