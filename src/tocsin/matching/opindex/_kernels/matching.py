"""Which forms an event satisfies (OpIndex, 5)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.opindex._kernels.counting import search, strike_all
from tocsin.matching.opindex._kernels.signatures import (
    equal_bits,
    equal_place,
    other_bits,
    other_place,
    segment_at,
)
from tocsin.matching.opindex.state import (
    ALWAYS,
    COUNT,
    COUNTERS,
    EPOCH,
    EQ,
    EVENTS,
    HITS,
    KINDS,
    LOG_BITS,
    MEMBERS,
    NO_KEY,
    OFFSET,
    ROOM,
    SEARCHES,
    SEEN,
    STRIKE,
    TOP,
    TOUCHES,
    VISITS,
    WEIGHT,
    State,
)
from tocsin.structures.jit import helper, kernel, prefetch

_NUMBER, _BIG, _ANY = int(Field.NUMBER), int(Field.BIG), int(Field.ANY)
_LOW_HALF: Final = 0xFFFFFFFF
_LOG: Final = (1 << LOG_BITS) - 1
_NEAR: Final = 64  # signatures of a list that are all asked for ahead


@kernel
def match(
    state: State,
    events: EncodedEvents,
    start: int,
    found: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> int:
    """Write the forms that each event from `start` on satisfies; return how many events were done.

    Those of event i are `found[offsets[i]:offsets[i + 1]]`. Fewer events than all are done if `found` is full.
    """
    for event in range(start, events.offsets.shape[0] - 1):
        count = offsets[event]
        state.tops[EPOCH] += 1
        pending = _unfold(state, events, event)
        visits, most = _pivots(state, pending)
        if count + most > found.shape[0]:
            _forget(state, events, event)
            state.tops[ROOM] = count + most
            return event
        _fetch(state, visits)
        for v in range(visits):
            count = _visit(state, v, pending, count, found)
        count = _go_on(state, visits, pending, count, found)
        offsets[event + 1] = count
        state.totals[EVENTS] += state.totals[WEIGHT]
        state.totals[SEEN] += 1.0
        state.totals[VISITS] += visits
    return events.offsets.shape[0] - 1


@helper
def _forget(state: State, events: EncodedEvents, event: int) -> None:
    """Take back that attributes were counted for an event that will be looked at again."""
    attributes, weight = state.attributes, state.totals[WEIGHT]
    for j in range(events.offsets[event], events.offsets[event + 1]):
        attribute = np.int64(events.fields[j]) // FIELDS
        if attributes.met[attribute] == state.tops[EPOCH]:
            attributes.met[attribute] = 0
            attributes.seen[attribute] -= weight


@helper
def _pivots(state: State, pending: int) -> tuple[int, int]:
    """Write which pivots an event has; return how many, and how many forms are kept under them."""
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
            prefetch(state.lists, pivot * KINDS)
            prefetch(state.pivots, pivot * state.pivots.shape[1])
            visits += 1
        begin = end
    for v in range(visits):
        most += state.pivots[pairs.pivot[v], MEMBERS]
    return visits, most


@helper
def _own_segment(state: State, list_: int, kind: int, j: int) -> int:
    """Return the segment of a list in which the predicates on the pivot itself are; -1 if none of them can hold."""
    if list_ < 0:
        return np.int64(-1)
    pairs = state.pairs
    if kind != EQ:
        return segment_at(pairs.other_place[j], list_)
    row, bits = segment_at(pairs.equal_place[j], list_), pairs.equal[j]
    return row if state.signatures[row] & bits == bits else np.int64(-1)


@helper
def _fetch(state: State, visits: int) -> None:
    """Ask for what the visits begin with, a step at a time for all pivots, so that cache misses overlap."""
    pairs, lists, segments = state.pairs, state.lists, state.segments
    for v in range(visits):
        pivot, j = pairs.pivot[v], pairs.begin[v]
        for kind in range(STRIKE):
            list_ = lists[pivot, kind]
            if list_ >= 0:
                own = segment_at(pairs.equal_place[j] if kind == EQ else pairs.other_place[j], list_)
                prefetch(segments, own * segments.shape[1])
                prefetch(state.signatures, own)
                first, count = list_ >> LOG_BITS, np.int64(1) << (list_ & _LOG)
                if count <= _NEAR:
                    for row in range(first, first + count, 8):
                        prefetch(state.signatures, row)
    for v in range(visits):
        pivot = pairs.pivot[v]
        for kind in range(STRIKE):
            row = _own_segment(state, lists[pivot, kind], kind, pairs.begin[v])
            if row >= 0:
                at = np.int64(segments[row, OFFSET])
                for i in range(at, at + min(np.int64(segments[row, COUNT]), np.int64(128)), 4):
                    prefetch(state.entries.rows, 2 * i)
        first = state.pivots[pivot, COUNTERS]
        for i in range(first, first + min(state.pivots[pivot, TOP], np.int64(512)), 8):
            prefetch(state.counters.rows, i)


@helper
def _unfold(state: State, events: EncodedEvents, event: int) -> int:
    """Write the pairs of an event that any predicate looks at; return how many there are.

    A value is a pair of its field, and one of its attribute's ANY. A number that no float equals has its place
    among the numbers besides.
    """
    attributes, uses = state.attributes, state.fields.uses
    epoch, weight = state.tops[EPOCH], state.totals[WEIGHT]
    count = np.int64(0)
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        attribute, kind = field // FIELDS, field % FIELDS
        if attributes.met[attribute] != epoch:
            attributes.met[attribute] = epoch
            attributes.seen[attribute] += weight
            any_ = attribute * FIELDS + _ANY
            if uses[any_] > 0:
                count = _add_pair(state, count, any_, np.int64(0), np.int64(0), np.int64(0))
        if uses[field] > 0:
            count = _add_pair(state, count, field, events.keys[j], events.lows[j], events.highs[j])
        if kind == _BIG and uses[field + _NUMBER - _BIG] > 0:
            number = field + _NUMBER - _BIG
            count = _add_pair(state, count, number, np.int64(NO_KEY), events.lows[j], events.highs[j])
    if uses[ALWAYS] > 0:
        count = _add_pair(state, count, np.int64(ALWAYS), np.int64(0), np.int64(0), np.int64(0))
    return count


@helper
def _add_pair(state: State, at: int, field: int, key: int, low: int, high: int) -> int:
    pairs = state.pairs
    pairs.field[at] = field
    pairs.key[at] = key
    pairs.low[at] = low
    pairs.high[at] = high
    pairs.equal[at] = equal_bits(field, key)
    pairs.other[at] = other_bits(field)
    pairs.equal_place[at] = equal_place(field, key)
    pairs.other_place[at] = other_place(field)
    return at + 1


@helper
def _visit(state: State, v: int, pending: int, count: int, found: NDArray[np.int64]) -> int:
    """Count what the pairs of a pivot satisfy in its own lists; return the new number of forms found.

    What refutes a predicate comes first, whichever pair it is. A counter that no pair of the pivot touches cannot
    reach zero, so it is left alone from then on; and if there is no other, nothing else is looked at.
    """
    pairs = state.pairs
    pivot, begin, end = pairs.pivot[v], pairs.begin[v], pairs.end[v]
    lists = state.lists[pivot]
    if lists[STRIKE] >= 0:
        for j in range(pending):
            row = segment_at(pairs.equal_place[j], lists[STRIKE])
            if state.signatures[row] & pairs.equal[j] == pairs.equal[j]:
                strike_all(state, row, pivot, pairs.field[j], pairs.key[j])
    so_far = (count, np.int64(0), np.int64(0))
    for j in range(begin, end):
        for kind in range(STRIKE):
            row = _own_segment(state, lists[kind], kind, j)
            if row >= 0:
                so_far = search(state, row, pivot, (kind, j), so_far, True, found)
    pairs.alive[v] = so_far[1]
    state.totals[SEARCHES] += end - begin
    state.totals[TOUCHES] += so_far[2]
    return so_far[0]


@helper
def _go_on(state: State, visits: int, pending: int, count: int, found: NDArray[np.int64]) -> int:
    """Count what the event's other pairs satisfy in its pivots' lists; return the new number of forms found.

    Segments that may hold something are gathered for many pivots before they are searched, so that cache
    misses overlap.
    """
    v, hits = np.int64(0), np.int64(0)
    while v < visits or hits > 0:
        while v < visits and hits < HITS:
            if state.pairs.alive[v] > 0:
                hits = _hits(state, v, pending, hits)
            v += 1
        count = _search_hits(state, hits, count, found)
        hits = np.int64(0)
    return count


@helper
def _hits(state: State, v: int, pending: int, hits: int) -> int:
    """Write which segments of a pivot's lists may hold something that the event satisfies; return how many by now.

    Few pairs pass the signatures, so no branch depends on it.
    """
    pairs, lists = state.pairs, state.lists[state.pairs.pivot[v]]
    at = np.uint64(hits)
    for kind in range(STRIKE):
        if lists[kind] < 0:
            continue
        list_ = np.uint64(lists[kind])
        first = list_ >> np.uint64(LOG_BITS)
        mask = (np.uint64(1) << (list_ & np.uint64(_LOG))) - np.uint64(1)
        bits = pairs.equal if kind == EQ else pairs.other
        places = pairs.equal_place if kind == EQ else pairs.other_place
        if mask >= np.uint64(_NEAR):
            for j in range(np.uint64(pending)):
                prefetch(state.signatures, first + (np.uint64(places[j]) & mask))
        what = (np.uint64(v) << np.uint64(40)) | (np.uint64(kind) << np.uint64(32))
        # The pivot's own pairs were looked at already.
        at = _pass(state, bits, places, (first, mask, what), np.uint64(0), np.uint64(pairs.begin[v]), at)
        at = _pass(state, bits, places, (first, mask, what), np.uint64(pairs.end[v]), np.uint64(pending), at)
    for i in range(np.uint64(hits), at):
        prefetch(state.segments, pairs.row[i] * state.segments.shape[1])
    return np.int64(at)


@helper
def _pass(
    state: State,
    bits: NDArray[np.uint64],
    places: NDArray[np.int64],
    where: tuple[int, int, int],
    begin: int,
    end: int,
    at: int,
) -> int:
    """Write the segments whose signatures pairs from `begin` to `end` pass, from `at` on; return where that ends."""
    pairs, signatures = state.pairs, state.signatures
    first, mask, what = where
    for j in range(begin, end):  # unsigned, so that no index is asked whether it counts from the end
        row = first + (np.uint64(places[j]) & mask)
        pairs.row[at] = np.int64(row)
        pairs.what[at] = np.int64(what | j)
        at += np.uint64(signatures[row] & bits[j] == bits[j])
    return at


@helper
def _search_hits(state: State, hits: int, count: int, found: NDArray[np.int64]) -> int:
    pairs, segments = state.pairs, state.segments
    for i in range(hits):
        first = 2 * max(np.int64(segments[pairs.row[i], OFFSET]), np.int64(0))
        prefetch(state.entries.rows, first)
        prefetch(state.entries.rows, first + 8)
    so_far = (count, np.int64(0), np.int64(0))
    for i in range(hits):
        what = pairs.what[i]
        pivot, kind, j = pairs.pivot[what >> 40], (what >> 32) & 0xFF, what & _LOW_HALF
        so_far = search(state, pairs.row[i], pivot, (kind, j), so_far, False, found)
    state.totals[SEARCHES] += hits
    state.totals[TOUCHES] += so_far[2]
    return so_far[0]
