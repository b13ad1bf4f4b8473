"""Matching an event: its pivots are visited, and counters of satisfied predicates count down (OpIndex, §5)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex._kernels.counting import refute_all, search
from tocsin.matching.opindex._kernels.pivots import decay, forget_events
from tocsin.matching.opindex._kernels.signatures import field_bits, key_bits, key_hash, segment_at
from tocsin.matching.opindex.state import OpIndexStateAddress, Pivot, Segment, State, Top, Total
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s, UInt64s
from tocsin.structures.jit import helper, kernel, prefetch

_LOW_HALF: Final = 0xFFFFFFFF
_NEAR: Final = 64  # segments of a list whose signatures are all prefetched


@kernel
def match(state: State, events: EncodedEvents, start: int, found: Int64s, offsets: Int64s) -> int:
    """Write the expressions that each event from `start` on satisfies; return the number of events done.

    The matches of event i are `found[offsets[i]:offsets[i + 1]]`. It stops before an event that `found` may not have room for.
    """
    for event in range(start, events.offsets.shape[0] - 1):
        count = offsets[event]
        state.tops[Top.EPOCH] += 1
        pending = _encode_pairs(state, events, event)
        visits, most = _find_pivots(state, pending)
        if count + most > found.shape[0]:
            _uncount(state, events, event)
            state.tops[Top.NEEDED_MATCHES] = count + most
            return event
        _fetch(state, visits)
        for v in range(visits):
            count = _visit(state, v, pending, count, found)
        count = _search_others(state, visits, pending, count, found)
        offsets[event + 1] = count
        state.totals[Total.EVENTS] += state.totals[Total.WEIGHT]
        state.totals[Total.SEEN] += 1.0
        state.totals[Total.VISITS] += visits
    return events.offsets.shape[0] - 1


@kernel
def match_event(address: OpIndexStateAddress, event: SingleEventAddress, factor: float) -> int:
    """Find the expressions that a single event satisfies, and write their ids: see `gather_single`.

    All counts so far then weigh less by `factor`.
    """
    state: State = load(address)
    single: SingleEvent = load(event)
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    if state.tops[Top.EPOCH] + 2 > arrays.MOST_EVENTS:
        forget_events(state)
        state.tops[Top.EPOCH] = 0
    if match(state, single.events, np.int64(0), single.found, single.offsets) == 0:
        return np.int64(NO_ROOM)
    decay(state.totals, state.attributes.seen, factor)
    return gather_single(state.store, single)


@helper
def _uncount(state: State, events: EncodedEvents, event: int) -> None:
    """Undo the count of an event's attributes, since the event will be matched again."""
    attributes, weight = state.attributes, state.totals[Total.WEIGHT]
    for j in range(events.offsets[event], events.offsets[event + 1]):
        attribute = np.int64(events.fields[j]) // FIELDS
        if attributes.met[attribute] == state.tops[Top.EPOCH]:
            attributes.met[attribute] = 0
            attributes.seen[attribute] -= weight


@helper
def _find_pivots(state: State, pending: int) -> tuple[int, int]:
    """Write the pivots that an event has; return how many, and how many expressions they have."""
    pairs = state.pairs
    visits, begin, most = np.int64(0), np.int64(0), np.int64(0)
    while begin < pending:
        field = pairs.field[begin]
        end = begin + 1
        while end < pending and pairs.field[end] == field:
            end += 1
        pivot = np.int64(state.fields.pivot[field])
        if pivot >= 0:
            pairs.pivot[visits], pairs.begin[visits], pairs.end[visits] = pivot, begin, end
            prefetch(state.lists, pivot * arrays.KINDS)
            prefetch(state.pivots, pivot * state.pivots.shape[1])
            visits += 1
        begin = end
    for v in range(visits):
        most += state.pivots[pairs.pivot[v], Pivot.MEMBERS]
    return visits, most


@helper
def _own_segment(state: State, list_: int, kind: int, j: int) -> int:
    """Return the segment of a list that has the predicates on the pivot itself; -1 if none of them can hold."""
    if list_ < 0:
        return np.int64(-1)
    pairs = state.pairs
    if kind != arrays.EQ:
        return segment_at(pairs.attribute[j], list_)
    row, bits = segment_at(pairs.key_hash[j], list_), pairs.key_bits[j]
    return row if state.signatures[row] & bits == bits else np.int64(-1)


@helper
def _fetch(state: State, visits: int) -> None:
    """Prefetch what the visits read first, one step at a time for all pivots, so that cache misses overlap."""
    pairs, lists, segments = state.pairs, state.lists, state.segments
    for v in range(visits):
        pivot, j = pairs.pivot[v], pairs.begin[v]
        for kind in range(arrays.REFUTATION):
            list_ = lists[pivot, kind]
            if list_ >= 0:
                own = segment_at(pairs.key_hash[j] if kind == arrays.EQ else pairs.attribute[j], list_)
                prefetch(segments, own * segments.shape[1])
                prefetch(state.signatures, own)
                first, count = list_ >> arrays.LOG_BITS, np.int64(1) << (list_ & arrays.LOG)
                if count <= _NEAR:
                    for row in range(first, first + count, 8):
                        prefetch(state.signatures, row)
    for v in range(visits):
        pivot = pairs.pivot[v]
        for kind in range(arrays.REFUTATION):
            row = _own_segment(state, lists[pivot, kind], kind, pairs.begin[v])
            if row >= 0:
                at = np.int64(segments[row, Segment.OFFSET])
                for i in range(at, at + min(np.int64(segments[row, Segment.COUNT]), np.int64(128)), 4):
                    prefetch(state.entries.rows, 2 * i)
        first = state.pivots[pivot, Pivot.COUNTERS]
        for i in range(first, first + min(state.pivots[pivot, Pivot.TOP], np.int64(512)), 8):
            prefetch(state.counters.rows, i)


@helper
def _encode_pairs(state: State, events: EncodedEvents, event: int) -> int:
    """Write the pairs of an event that any predicate is on; return how many there are.

    A value is a pair of its field, and one of its attribute's field ANY. A number that no float equals is also a pair of
    the field NUMBER, which has its position in the order.
    """
    attributes, uses = state.attributes, state.fields.uses
    epoch, weight = state.tops[Top.EPOCH], state.totals[Total.WEIGHT]
    count = np.int64(0)
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        attribute, kind = field // FIELDS, field % FIELDS
        if attributes.met[attribute] != epoch:
            attributes.met[attribute] = epoch
            attributes.seen[attribute] += weight
            any_ = attribute * FIELDS + Field.ANY
            if uses[any_] > 0:
                count = _add_pair(state, count, any_, np.int64(0), np.int64(0), np.int64(0))
        if uses[field] > 0 and kind != Field.OPAQUE:  # such a field may be ALWAYS
            count = _add_pair(state, count, field, events.keys[j], events.lows[j], events.highs[j])
        if kind == Field.BIG and uses[field + Field.NUMBER - Field.BIG] > 0:
            number = field + Field.NUMBER - Field.BIG
            count = _add_pair(state, count, number, np.int64(arrays.NO_KEY), events.lows[j], events.highs[j])
    if uses[arrays.ALWAYS] > 0:
        count = _add_pair(state, count, np.int64(arrays.ALWAYS), np.int64(0), np.int64(0), np.int64(0))
    return count


@helper
def _add_pair(state: State, at: int, field: int, key: int, low: int, high: int) -> int:
    """Store one pair of the event with its signature bits, and return the next position."""
    pairs = state.pairs
    pairs.field[at] = field
    pairs.key[at] = key
    pairs.low[at] = low
    pairs.high[at] = high
    pairs.key_bits[at] = key_bits(field, key)
    pairs.field_bits[at] = field_bits(field)
    pairs.key_hash[at] = key_hash(field, key)
    pairs.attribute[at] = field // FIELDS
    return at + 1


@helper
def _visit(state: State, v: int, pending: int, count: int, found: Int64s) -> int:
    """Count the predicates on a pivot that its own pairs satisfy; return the new number of expressions found.

    Refutations of all pairs come first. A counter that no pair of the pivot touches cannot reach zero, so it is skipped
    from then on; without any other counter, the pivot's lists are not searched further.
    """
    pairs = state.pairs
    pivot, begin, end = pairs.pivot[v], pairs.begin[v], pairs.end[v]
    lists = state.lists[pivot]
    if lists[arrays.REFUTATION] >= 0:
        for j in range(pending):
            row = segment_at(pairs.key_hash[j], lists[arrays.REFUTATION])
            if state.signatures[row] & pairs.key_bits[j] == pairs.key_bits[j]:
                refute_all(state, row, pivot, pairs.field[j], pairs.key[j])
    so_far = (count, np.int64(0), np.int64(0))
    for j in range(begin, end):
        for kind in range(arrays.REFUTATION):
            row = _own_segment(state, lists[kind], kind, j)
            if row >= 0:
                so_far = search(state, row, pivot, (kind, j), so_far, True, found)
    pairs.alive[v] = so_far[1]
    state.totals[Total.SEARCHES] += end - begin
    state.totals[Total.TOUCHES] += so_far[2]
    return so_far[0]


@helper
def _search_others(state: State, visits: int, pending: int, count: int, found: Int64s) -> int:
    """Count the predicates of the visited pivots that other pairs satisfy; return the new number of expressions found.

    Segments that may match are collected for many pivots before they are searched, so that cache misses overlap.
    """
    v, hits = np.int64(0), np.int64(0)
    while v < visits or hits > 0:
        while v < visits and hits < arrays.HITS:
            if state.pairs.alive[v] > 0:
                hits = _collect_hits(state, v, pending, hits)
            v += 1
        count = _search_hits(state, hits, count, found)
        hits = np.int64(0)
    return count


@helper
def _collect_hits(state: State, v: int, pending: int, hits: int) -> int:
    """Collect the segments of a pivot's lists whose signatures the event passes; return how many there are by now.

    Few pairs pass, so the loop has no branch that depends on it.
    """
    pairs, lists = state.pairs, state.lists[state.pairs.pivot[v]]
    at = np.uint64(hits)
    for kind in range(arrays.REFUTATION):
        if lists[kind] < 0:
            continue
        list_ = np.uint64(lists[kind])
        first = list_ >> np.uint64(arrays.LOG_BITS)
        mask = (np.uint64(1) << (list_ & np.uint64(arrays.LOG))) - np.uint64(1)
        bits = pairs.key_bits if kind == arrays.EQ else pairs.field_bits
        places = pairs.key_hash if kind == arrays.EQ else pairs.attribute
        if mask >= np.uint64(_NEAR):
            for j in range(np.uint64(pending)):
                prefetch(state.signatures, first + (np.uint64(places[j]) & mask))
        what = (np.uint64(v) << np.uint64(40)) | (np.uint64(kind) << np.uint64(32))
        # The pivot's own pairs were counted by `_visit`.
        at = _pass(state, bits, places, (first, mask, what), np.uint64(0), np.uint64(pairs.begin[v]), at)
        at = _pass(state, bits, places, (first, mask, what), np.uint64(pairs.end[v]), np.uint64(pending), at)
    for i in range(np.uint64(hits), at):
        prefetch(state.segments, pairs.row[i] * state.segments.shape[1])
    return np.int64(at)


@helper
def _pass(
    state: State, bits: UInt64s, places: Int64s, where: tuple[int, int, int], begin: int, end: int, at: int
) -> int:
    """Write the segments whose signatures the pairs from `begin` to `end` pass, from `at` on; return the end."""
    pairs, signatures = state.pairs, state.signatures
    first, mask, what = where
    for j in range(begin, end):  # unsigned, so that no index is checked for being negative
        row = first + (np.uint64(places[j]) & mask)
        pairs.row[at] = np.int64(row)
        pairs.what[at] = np.int64(what | j)
        at += np.uint64(signatures[row] & bits[j] == bits[j])
    return at


@helper
def _search_hits(state: State, hits: int, count: int, found: Int64s) -> int:
    """Search the segments that the signatures admit, and return the new number of matches."""
    pairs, segments = state.pairs, state.segments
    for i in range(hits):
        first = 2 * max(np.int64(segments[pairs.row[i], Segment.OFFSET]), np.int64(0))
        prefetch(state.entries.rows, first)
        prefetch(state.entries.rows, first + 8)
    so_far = (count, np.int64(0), np.int64(0))
    for i in range(hits):
        what = pairs.what[i]
        pivot, kind, j = pairs.pivot[what >> 40], (what >> 32) & 0xFF, what & _LOW_HALF
        so_far = search(state, pairs.row[i], pivot, (kind, j), so_far, False, found)
    state.totals[Total.SEARCHES] += hits
    state.totals[Total.TOUCHES] += so_far[2]
    return so_far[0]
