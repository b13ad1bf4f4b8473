"""The counting algorithm: for each conjunction, how many of its predicates the event satisfies (2, the baseline)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.le_subscribe._kernels import access
from tocsin.matching.le_subscribe._kernels.matching import settle
from tocsin.matching.le_subscribe._kernels.predicates import decay, observe
from tocsin.matching.le_subscribe.state import FALSE, SLOTS, TRUE, ClusterTotal, ConjunctionColumn, State
from tocsin.structures import chunked_lists, marks
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.chunked_lists import Chunk, ChunkedLists, ListRow
from tocsin.structures.jit import helper, kernel


class Counters(NamedTuple):
    """The conjunctions of each predicate, and the number of satisfied predicates of each conjunction.

    A conjunction's own record, with all its slots, is in a cluster of the state; `chunk` and `place` stand
    beside the words of that cluster and say where, in the list of each slot, the conjunction is.
    """

    holders: ChunkedLists  # a list for each slot: conjunction, and the slot's column in its record
    of_slot: Int32s  # [slots] its list, or -1
    chunk: Int32s  # [words of the clusters]
    place: Int32s  # [words of the clusters]
    indexed: Int32s  # [conjunctions] predicates that the indexes mark
    seen: Int32s  # [conjunctions] of those, satisfied by the event at hand
    touched: Int32s  # [conjunctions] whose count is not zero
    unindexed: Int64s  # [1] the list of conjunctions without indexed predicates, or -1


class CountingState(NamedTuple):
    """The state together with its counters, as a kernel takes both for a single event."""

    state: State
    counters: Counters


class CountingStateAddress(NamedTuple):
    """The address of a `CountingState`: see `tocsin.structures.addresses`."""

    words: Int64s


@kernel
def count_in(
    state: State, counters: Counters, ids: Int64s, offsets: Int64s, slots: Int64s, start: int
) -> int:
    """Enter conjunctions from `start` on; return how many were done: fewer than all if there was no room."""
    for i in range(start, ids.shape[0]):
        size = offsets[i + 1] - offsets[i]
        if not access.fits(state, size) or not _has_room(state, counters, size):
            return i
        number, size = access.enter(state, ids[i], slots[offsets[i] : offsets[i + 1]])
        for j in range(size):
            state.scratch[size + j] = 0
        access.attach(state, number, size, -1, -1, -1)
        _hold(state, counters, number)
    return ids.shape[0]


@helper
def _has_room(state: State, counters: Counters, size: int) -> bool:
    """Tell whether a conjunction of `size` predicates fits into the arrays."""
    top = counters.holders.counters
    return (
        counters.chunk.shape[0] >= state.clusters.words.shape[0]
        and counters.of_slot.shape[0] >= state.predicates.uses.shape[0]
        and counters.indexed.shape[0] >= state.store.owner.shape[0]
        and top[0] + 2 * (size + 1) * chunked_lists.LARGEST <= counters.holders.words.shape[0]
        and top[1] + size + 1 < counters.holders.rows.shape[0]
        and top[3] + size + 1 < counters.holders.chunks.shape[0]
    )


@helper
def _hold(state: State, counters: Counters, number: int) -> None:
    """Enter a conjunction into the list of each slot that the indexes mark."""
    clusters = state.clusters
    chunk, first = access.place_of(state, number)
    word, indexed = first + clusters.chunks[chunk, Chunk.CAPACITY], np.int64(0)
    for column in range(SLOTS, clusters.rows[clusters.chunks[chunk, Chunk.OWNER], ListRow.WIDTH]):
        word += clusters.chunks[chunk, Chunk.CAPACITY]
        slot = np.int64(clusters.words[word])
        if state.predicates.marks.rest[slot] != FALSE:
            continue
        indexed += 1
        if counters.of_slot[slot] < 0:
            counters.of_slot[slot] = chunked_lists.new_list(counters.holders, 2)
        _append(counters, np.int64(counters.of_slot[slot]), number, column, word)
    counters.indexed[number] = indexed
    counters.seen[number] = 0
    if indexed == 0:
        if counters.unindexed[0] < 0:
            counters.unindexed[0] = chunked_lists.new_list(counters.holders, 2)
        _append(counters, counters.unindexed[0], number, 0, first)


@helper
def _append(counters: Counters, holders: int, number: int, column: int, word: int) -> None:
    chunk, place = chunked_lists.append(counters.holders, holders)
    first = counters.holders.chunks[chunk, Chunk.OFFSET] + place
    counters.holders.words[first] = number
    counters.holders.words[first + counters.holders.chunks[chunk, Chunk.CAPACITY]] = column
    counters.chunk[word] = chunk
    counters.place[word] = place


@kernel
def count_out(state: State, counters: Counters, numbers: Int64s, start: int, gone: Int64s) -> tuple[int, int]:
    """Remove conjunctions from `start` on; arguments and result are those of `take_out`."""
    marks.clear(state.predicates.marks)
    count = np.int64(0)
    for i in range(start, numbers.shape[0]):
        size = access.slots_of(state, numbers[i])
        if count + size > gone.shape[0]:
            return np.int64(i), count
        _unlist_all(state, counters, numbers[i])
        _carry_spots(state, counters, numbers[i])
        access.detach(state, numbers[i])
        count = access.leave(state, numbers[i], size, gone, count)
    return numbers.shape[0], count


@helper
def _unlist_all(state: State, counters: Counters, number: int) -> None:
    """Remove a conjunction from the lists of its slots."""
    clusters = state.clusters
    chunk, word = access.place_of(state, number)
    if counters.indexed[number] == 0:
        _unlist(state, counters, word)
        return
    word += clusters.chunks[chunk, Chunk.CAPACITY]
    for _ in range(SLOTS, clusters.rows[clusters.chunks[chunk, Chunk.OWNER], ListRow.WIDTH]):
        word += clusters.chunks[chunk, Chunk.CAPACITY]
        slot = np.int64(clusters.words[word])
        if state.predicates.marks.rest[slot] == FALSE:
            _unlist(state, counters, word)
            if counters.holders.rows[counters.of_slot[slot], ListRow.TOTAL] == 0:
                chunked_lists.drop_list(counters.holders, np.int64(counters.of_slot[slot]))
                counters.of_slot[slot] = -1


@helper
def _unlist(state: State, counters: Counters, word: int) -> None:
    """Remove the record that `word` points at from its list, and mend the pointer of the one that takes its place."""
    holders, clusters = counters.holders, state.clusters
    chunk, place = np.int64(counters.chunk[word]), np.int64(counters.place[word])
    row = holders.chunks[chunk, Chunk.OWNER]
    last = np.int64(holders.rows[row, ListRow.HEAD])
    source = holders.chunks[last, Chunk.OFFSET] + holders.rows[row, ListRow.FILL] - 1
    number = np.int64(holders.words[source])
    column = np.int64(holders.words[source + holders.chunks[last, Chunk.CAPACITY]])
    chunked_lists.swap_remove(holders, chunk, place)
    home, moved = access.place_of(state, number)
    moved += column * clusters.chunks[home, Chunk.CAPACITY]
    counters.chunk[moved] = chunk
    counters.place[moved] = place


@helper
def _carry_spots(state: State, counters: Counters, number: int) -> None:
    """Move the pointers of the cluster's last record to where `detach` will move that record."""
    clusters = state.clusters
    chunk, target = access.place_of(state, number)
    row = clusters.chunks[chunk, Chunk.OWNER]
    last = np.int64(clusters.rows[row, ListRow.HEAD])
    source = clusters.chunks[last, Chunk.OFFSET] + clusters.rows[row, ListRow.FILL] - 1
    for _ in range(clusters.rows[row, ListRow.WIDTH]):
        counters.chunk[target] = counters.chunk[source]
        counters.place[target] = counters.place[source]
        source += clusters.chunks[last, Chunk.CAPACITY]
        target += clusters.chunks[chunk, Chunk.CAPACITY]


@kernel
def match_counting(
    state: State, counters: Counters, events: EncodedEvents, start: int, found: Int64s, offsets: Int64s
) -> int:
    """Write the conjunctions that each event from `start` on satisfies; arguments and result are those of `match`."""
    count = offsets[start]
    vector = state.predicates.marks
    for event in range(start, events.offsets.shape[0] - 1):
        observe(state, events, event)
        touched = np.int64(0)
        for i in range(vector.count[0]):
            slot = np.int64(vector.touched[i])
            if vector.value[slot] == TRUE and counters.of_slot[slot] >= 0:
                touched = _count_list(state, counters, np.int64(counters.of_slot[slot]), touched)
        full = False
        for i in range(touched):
            number = np.int64(counters.touched[i])
            if counters.seen[number] == counters.indexed[number] and not full:
                if count >= found.shape[0]:
                    full = True
                else:
                    count = _settle_number(state, number, count, found)
            counters.seen[number] = 0
        if counters.unindexed[0] >= 0 and not full:
            count = _settle_unindexed(state, counters, count, found)
        if full or count < 0:
            return event
        offsets[event + 1] = count
        state.totals[ClusterTotal.SEEN] += 1.0
    return events.offsets.shape[0] - 1


@kernel
def count_event(address: CountingStateAddress, event: SingleEventAddress, factor: float) -> int:
    """Find the conjunctions that a single event satisfies, and write their ids: see `gather_single`.

    All counts so far then weigh less by `factor`.
    """
    counted: CountingState = load(address)
    single: SingleEvent = load(event)
    state = counted.state
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    done = match_counting(state, counted.counters, single.events, np.int64(0), single.found, single.offsets)
    if done == 0:
        return np.int64(NO_ROOM)
    decay(state.totals, state.predicates.hits, state.access.hits, factor)
    return gather_single(state.store, single)


@helper
def _count_list(state: State, counters: Counters, number: int, touched: int) -> int:
    """Count a satisfied predicate for every conjunction that holds it; return how many are touched."""
    holders = counters.holders
    chunk, fill = np.int64(holders.rows[number, ListRow.HEAD]), np.int64(holders.rows[number, ListRow.FILL])
    state.totals[ClusterTotal.CHECKS] += holders.rows[number, ListRow.TOTAL]
    state.totals[ClusterTotal.VISITS] += 1.0
    while chunk >= 0:
        first = holders.chunks[chunk, Chunk.OFFSET]
        for j in range(fill):
            conjunction = np.int64(holders.words[first + j])
            counters.touched[touched] = conjunction
            touched += np.int64(counters.seen[conjunction] == 0)
            counters.seen[conjunction] += 1
        chunk = holders.chunks[chunk, Chunk.OLDER]
        if chunk >= 0:
            fill = holders.chunks[chunk, Chunk.CAPACITY]
    return touched


@helper
def _settle_number(state: State, number: int, count: int, found: Int64s) -> int:
    """Check the predicates that were not counted, write the match if all hold, and return the new count."""
    chunk = np.int64(state.store.rows[number, ConjunctionColumn.CHUNK])
    columns = max(
        np.int64(state.clusters.rows[state.clusters.chunks[chunk, Chunk.OWNER], ListRow.WIDTH]) - SLOTS,
        np.int64(0),
    )
    return settle(
        state, chunk, columns, np.int64(state.store.rows[number, ConjunctionColumn.PLACE]), count, found
    )


@helper
def _settle_unindexed(state: State, counters: Counters, count: int, found: Int64s) -> int:
    """Check the conjunctions without indexed predicates; return -1 if `found` is full."""
    holders = counters.holders
    number = counters.unindexed[0]
    if count + holders.rows[number, ListRow.TOTAL] > found.shape[0]:
        return np.int64(-1)
    chunk, fill = np.int64(holders.rows[number, ListRow.HEAD]), np.int64(holders.rows[number, ListRow.FILL])
    while chunk >= 0:
        first = holders.chunks[chunk, Chunk.OFFSET]
        for j in range(fill):
            count = _settle_number(state, np.int64(holders.words[first + j]), count, found)
        chunk = holders.chunks[chunk, Chunk.OLDER]
        if chunk >= 0:
            fill = holders.chunks[chunk, Chunk.CAPACITY]
    return count
