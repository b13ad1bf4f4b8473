"""Phase 2: the clusters that an event's access predicates lead to (Le Subscribe, 2.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.le_subscribe import state as arrays
from tocsin.matching.le_subscribe._kernels.access import table_key
from tocsin.matching.le_subscribe._kernels.predicates import decay, evaluate, observe
from tocsin.matching.le_subscribe.state import ClusterStateAddress, ClusterTotal, State
from tocsin.structures import hash_index
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.chunked_lists import LARGEST, Chunk, ListRow
from tocsin.structures.jit import helper, kernel, prefetch

_LINE: Final = 16  # slots in a cache line
_AHEAD: Final = 8 * _LINE


@kernel
def match(
    state: State, events: EncodedEvents, start: int, prefetching: bool, found: Int64s, offsets: Int64s
) -> int:
    """Write the conjunctions that each event from `start` on satisfies; return how many events were done.

    Those of event i are `found[offsets[i]:offsets[i + 1]]`. Fewer events than all are done if `found` is full.
    """
    count = offsets[start]
    for event in range(start, events.offsets.shape[0] - 1):
        visits = _reached(state, observe(state, events, event))
        if prefetching:
            _fetch_ahead(state, visits)
        for v in range(visits):
            count = _visit(state, state.scratch[v], prefetching, count, found)
            if count < 0:
                return event
        offsets[event + 1] = count
        state.totals[ClusterTotal.SEEN] += 1.0
        state.totals[ClusterTotal.REACHED] = visits
    return events.offsets.shape[0] - 1


@kernel
def match_event(
    address: ClusterStateAddress, event: SingleEventAddress, prefetching: bool, factor: float
) -> int:
    """Find the conjunctions that a single event satisfies, and write their ids: see `gather_single`.

    All counts so far then weigh less by `factor`.
    """
    state: State = load(address)
    single: SingleEvent = load(event)
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    if match(state, single.events, np.int64(0), prefetching, single.found, single.offsets) == 0:
        return np.int64(NO_ROOM)
    decay(state.totals, state.predicates.hits, state.access.hits, factor)
    return gather_single(state.store, single)


@kernel
def observe_all(state: State, events: EncodedEvents) -> None:
    """Run phase 1 alone, to time it."""
    for event in range(events.offsets.shape[0] - 1):
        observe(state, events, event)


@helper
def _reached(state: State, equalities: int) -> int:
    """Write the access predicates that the event satisfies into `scratch` and return how many.

    The event satisfies the first `equalities` slots that the predicate vector lists as touched.
    """
    count = np.int64(0)
    if state.access.members[arrays.FALLBACK] > 0:
        state.scratch[0] = arrays.FALLBACK
        count = 1
    for i in range(equalities):
        slot = np.int64(state.predicates.marks.touched[i])
        if state.predicates.access[slot] >= 0:
            state.scratch[count] = state.predicates.access[slot]
            count += 1
    if state.tables.used[0] > 0:
        count = _look_up(state, count)
    weight = state.totals[ClusterTotal.WEIGHT]
    for i in range(count):
        state.access.hits[state.scratch[i]] += weight
    return count


@helper
def _look_up(state: State, count: int) -> int:
    """Add the tables' access predicates for the event to the `count` ones in `scratch`.

    Each look-up is a chain of cache misses. All tables go through it side by side, a step at a time, and each
    step asks for the next one's lines, so that the misses overlap.
    """
    access, fields, tables, scratch = state.access, state.fields, state.tables, state.scratch
    stamp = np.int64(state.totals[ClusterTotal.STAMP])
    begin = count + tables.used[0]
    end = begin
    for table in range(tables.used[0]):
        width = abs(np.int64(tables.width[table]))
        complete = width > 0
        for w in range(width):
            field = tables.fields[table, w]
            complete &= fields.stamp[field] == stamp and fields.slot[field] >= 0
        if complete:
            a, b = table_key(state, table)
            bucket = hash_index.bucket_of(access.entries, a, b, 0)
            scratch[end], scratch[end + 1], scratch[end + 2] = a, b, bucket
            end += 3
            prefetch(access.entries.heads, bucket)
    for i in range(begin, end, 3):
        entry = np.int64(access.entries.heads[scratch[i + 2]])
        if entry >= 0:
            prefetch(access.entries.keys, entry * access.entries.keys.shape[1])
    for i in range(begin, end, 3):
        entry = hash_index.find_in(access.entries, scratch[i + 2], scratch[i], scratch[i + 1], 0)
        if entry >= 0:
            prefetch(
                state.clusters.rows, access.entries.keys[entry, arrays.CLUSTER] * state.clusters.rows.shape[1]
            )
            prefetch(access.hits, entry)
            scratch[count] = entry
            count += 1
    return count


@helper
def _fetch_ahead(state: State, visits: int) -> None:
    """Ask for the first cache lines of all clusters that are about to be visited."""
    clusters = state.clusters
    for v in range(visits):
        cluster = state.access.entries.keys[state.scratch[v], arrays.CLUSTER]
        prefetch(clusters.chunks, np.int64(clusters.rows[cluster, ListRow.HEAD]) * clusters.chunks.shape[1])
    for v in range(visits):
        cluster = state.access.entries.keys[state.scratch[v], arrays.CLUSTER]
        chunk = np.int64(clusters.rows[cluster, ListRow.HEAD])
        if clusters.rows[cluster, ListRow.WIDTH] > 1:
            prefetch(
                clusters.words, clusters.chunks[chunk, Chunk.OFFSET] + clusters.chunks[chunk, Chunk.CAPACITY]
            )


@helper
def _fetch_column(state: State, chunk: int) -> None:
    """Ask for the beginning of a chunk's first column: what follows, the processor foresees by itself."""
    capacity = state.clusters.chunks[chunk, Chunk.CAPACITY]
    first = state.clusters.chunks[chunk, Chunk.OFFSET] + capacity
    for word in range(first, first + min(capacity, _AHEAD), _LINE):
        prefetch(state.clusters.words, word)


@helper
def _visit(state: State, entry: int, prefetching: bool, count: int, found: Int64s) -> int:
    """Check all clusters of an access predicate; return the new count, or -1 if `found` is full."""
    rows, chunks = state.clusters.rows, state.clusters.chunks
    cluster = state.access.entries.keys[entry, arrays.CLUSTER]
    while cluster >= 0:
        columns = max(np.int64(rows[cluster, ListRow.WIDTH]) - arrays.SLOTS, np.int64(0))
        chunk = np.int64(rows[cluster, ListRow.HEAD])
        fill = np.int64(rows[cluster, ListRow.FILL])
        state.totals[ClusterTotal.CHECKS] += rows[cluster, ListRow.TOTAL]
        state.totals[ClusterTotal.VISITS] += 1.0
        while chunk >= 0:
            if count + LARGEST > found.shape[0]:
                return np.int64(-1)
            older = chunks[chunk, Chunk.OLDER]
            if prefetching and older >= 0 and columns > 0:
                _fetch_column(state, older)
            count = _scan(state, chunk, columns, fill, count, found)
            chunk = older
            if chunk >= 0:
                fill = chunks[chunk, Chunk.CAPACITY]
        cluster = np.int64(rows[cluster, ListRow.NEXT])
    return count


@helper
def _scan(state: State, chunk: int, columns: int, fill: int, count: int, found: Int64s) -> int:
    """Check the conjunctions of one chunk against the predicate vector, a column at a time.

    The first column is gone through from end to end; each further one only where those before did not fail, so
    its other cache lines are left alone. No loop has a branch that could be mispredicted. While slots fit into 16
    bits, the hint holds the first two, and what passes the first is in the cache already for the second.
    """
    words, vector = state.clusters.words, state.predicates.marks.value
    base = state.clusters.chunks[chunk, Chunk.OFFSET]
    if columns == 0:
        for j in range(fill):
            found[count + j] = words[base + j]
        return count + fill
    step = np.uint64(state.clusters.chunks[chunk, Chunk.CAPACITY])
    column = np.uint64(base) + step
    left = state.scratch.shape[0] - LARGEST
    end = np.uint64(left)
    done = np.int64(1)
    if state.predicates.entries.counters[1] <= arrays.HINTED:
        for j in range(np.uint64(fill)):
            state.scratch[end] = np.int64(j)
            end += np.uint64(vector[np.uint32(words[column + j]) & np.uint32(0xFFFF)] != 0)
        last, end = end, np.uint64(left)
        for i in range(np.uint64(left), last):
            j = state.scratch[i]
            state.scratch[end] = j
            end += np.uint64(vector[np.uint32(words[column + np.uint64(j)]) >> np.uint32(16)] != 0)
        done = np.int64(2)
        column += step + step
    else:
        column += step
        for j in range(np.uint64(fill)):
            state.scratch[end] = np.int64(j)
            end += np.uint64(vector[np.uint32(words[column + j])] != 0)
    for _ in range(done, columns):
        if end == np.uint64(left):
            return count
        column += step
        last, end = end, np.uint64(left)
        for i in range(np.uint64(left), last):
            j = state.scratch[i]
            state.scratch[end] = j
            end += np.uint64(vector[np.uint32(words[column + np.uint64(j)])] != 0)
    for i in range(left, np.int64(end)):
        count = settle(state, chunk, columns, state.scratch[i], count, found)
    return count


@helper
def settle(state: State, chunk: int, columns: int, j: int, count: int, found: Int64s) -> int:
    """Decide a conjunction whose first columns did not fail: check the rest, and evaluate what the indexes do not mark."""
    words, vector = state.clusters.words, state.predicates.marks.value
    first = state.clusters.chunks[chunk, Chunk.OFFSET] + j
    word = first + state.clusters.chunks[chunk, Chunk.CAPACITY]  # behind the hint
    later = np.int64(0)
    for _ in range(columns):
        word += state.clusters.chunks[chunk, Chunk.CAPACITY]
        slot = np.int64(words[word])
        said = vector[slot]
        if said == arrays.TRUE:
            continue
        if said == arrays.RESIDUAL:
            later = NEEDS_RESIDUAL
        elif said != arrays.EVALUATE or not evaluate(state, slot):
            return count
    found[count] = np.int64(words[first]) + later
    return count + 1
