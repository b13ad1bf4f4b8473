"""Keeping the clusters good while subscriptions and events change (Le Subscribe, 4), a bounded step at a time."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.le_subscribe._kernels.access import attach, choose, detach, fits, slots_of, suspect
from tocsin.matching.le_subscribe._kernels.greedy import Sample, draw
from tocsin.matching.le_subscribe._kernels.probability import probability_of
from tocsin.matching.le_subscribe.state import CALM, CLUSTER, FALLBACK, SETTLED, ClusterTotal, State
from tocsin.structures.array_types import Float64s, Int32s, Int64s
from tocsin.structures.chunked_lists import Chunk, ListRow
from tocsin.structures.jit import helper, kernel

_BETTER: Final = 0.9  # a conjunction moves only to an access predicate more selective by this factor


class Cursor(IntEnum):
    """Places in the cursor of `redistribute`."""

    WIDE = 0  # clusters of the access predicate that are done
    KEPT = 1  # conjunctions at the end of the cluster that were examined and stay
    DONE = 2  # whether all clusters are done
    NO_ROOM = 3


@kernel
def examine_reached(state: State) -> None:
    """Suspect the access predicates of the last event that are reached too often for the number of their conjunctions."""
    for i in range(np.int64(state.totals[ClusterTotal.REACHED])):
        _examine(state, state.scratch[i])


@helper
def _examine(state: State, entry: int) -> None:
    members = state.access.members[entry]
    if entry == FALLBACK or members <= state.totals[ClusterTotal.TOLERANCE]:
        return  # its margin cannot be beyond tolerance
    margin = probability_of(state, entry) * members
    if margin > state.totals[ClusterTotal.TOLERANCE]:
        suspect(state, entry, margin)


@kernel
def sample_suspects(state: State, entries: Int32s, each: int, sample: Sample) -> None:
    """Draw up to `each` conjunctions from every one of these access predicates."""
    for i in range(entries.shape[0]):
        entry = np.int64(entries[i])
        probability = probability_of(state, entry)
        members = np.int64(state.access.members[entry])
        wanted = min(each, members)
        cluster = state.access.entries.keys[entry, CLUSTER]
        while cluster >= 0:
            total = np.int64(state.clusters.rows[cluster, ListRow.TOTAL])
            share = max((wanted * total + members - 1) // members, np.int64(1))
            step = max(total // share, np.int64(1))
            taken = (total + step - 1) // step
            _draw_from(state, cluster, step, probability, total / taken, sample)
            cluster = np.int64(state.clusters.rows[cluster, ListRow.NEXT])


@helper
def _draw_from(
    state: State, cluster: int, step: int, probability: float, weight: float, sample: Sample
) -> None:
    """Draw every `step`th conjunction of a cluster."""
    clusters = state.clusters
    chunk, fill = (
        np.int64(clusters.rows[cluster, ListRow.HEAD]),
        np.int64(clusters.rows[cluster, ListRow.FILL]),
    )
    place = np.int64(0)
    while chunk >= 0:
        while place < fill and sample.count[0] < sample.weight.shape[0]:
            draw(
                state,
                sample,
                np.int64(clusters.words[clusters.chunks[chunk, Chunk.OFFSET] + place]),
                probability,
                weight,
            )
            place += step
        place -= fill
        chunk = clusters.chunks[chunk, Chunk.OLDER]
        if chunk >= 0:
            fill = clusters.chunks[chunk, Chunk.CAPACITY]


@kernel
def sample_all(state: State, step: int, sample: Sample) -> None:
    """Draw every `step`th conjunction there is, as if it were under its best equality alone."""
    for number in range(0, state.store.counters[StoreCounter.TOP], step):
        if state.store.owner[number] < 0:
            continue
        if sample.count[0] >= sample.weight.shape[0]:
            return
        draw(state, sample, np.int64(number), 1.0, np.float64(step))


@kernel
def redistribute(state: State, entry: int, budget: int, cursor: Int64s) -> int:
    """Move the conjunctions of an access predicate to better ones, where there are; return how many were examined.

    Goes on where `cursor` says, and stops after `budget`, or for want of room. When all are done, the access
    predicate is calm, or settled if its margin is still beyond tolerance.
    """
    looked = np.int64(0)
    while looked < budget:
        cluster = _nth_cluster(state, entry, cursor[Cursor.WIDE])
        if cluster < 0:
            cursor[Cursor.DONE] = 1
            break
        left = np.int64(state.clusters.rows[cluster, ListRow.TOTAL]) - cursor[Cursor.KEPT]
        if left <= 0:
            cursor[Cursor.WIDE] += 1
            cursor[Cursor.KEPT] = 0
            continue
        number = _nth(state, cluster, left - 1)
        moved = _improve(state, entry, number, cursor)
        if cursor[Cursor.NO_ROOM]:
            return looked
        looked += 1
        if not moved:
            cursor[Cursor.KEPT] += 1
        elif state.access.members[entry] == 0:
            cursor[Cursor.DONE] = 1
            return looked
    if cursor[Cursor.DONE] and state.access.members[entry] > 0:
        margin = probability_of(state, entry) * state.access.members[entry]
        state.access.status[entry] = SETTLED if margin > state.totals[ClusterTotal.TOLERANCE] else CALM
        state.access.settled[entry] = margin if margin > state.totals[ClusterTotal.TOLERANCE] else 0.0
    return looked


@helper
def _nth_cluster(state: State, entry: int, which: int) -> int:
    """Return the cluster behind `which` others; one that is emptied leaves the chain, and the rest move up."""
    cluster = state.access.entries.keys[entry, CLUSTER]
    for _ in range(which):
        if cluster >= 0:
            cluster = np.int64(state.clusters.rows[cluster, ListRow.NEXT])
    return cluster


@helper
def _nth(state: State, cluster: int, place: int) -> int:
    """Return the conjunction at a position of a cluster, counted from its oldest."""
    clusters = state.clusters
    chunk = np.int64(clusters.rows[cluster, ListRow.HEAD])
    begin = np.int64(clusters.rows[cluster, ListRow.TOTAL] - clusters.rows[cluster, ListRow.FILL])
    while place < begin:
        chunk = clusters.chunks[chunk, Chunk.OLDER]
        begin -= clusters.chunks[chunk, Chunk.CAPACITY]
    return np.int64(clusters.words[clusters.chunks[chunk, Chunk.OFFSET] + place - begin])


@helper
def _improve(state: State, entry: int, number: int, cursor: Int64s) -> bool:
    """Move a conjunction if there is a better access predicate for it; return whether it moved."""
    size = slots_of(state, number)
    a, b, table, probability = choose(state, size)
    keys = state.access.entries.keys
    if keys[entry, 0] == a and keys[entry, 1] == b:
        return False
    closing = state.access.table[entry] >= 0 and state.tables.width[state.access.table[entry]] < 0
    if not closing and probability > _BETTER * probability_of(state, entry):
        return False
    if not fits(state, size):
        cursor[Cursor.NO_ROOM] = 1
        return False
    detach(state, number)
    target = attach(state, number, size, a, b, table)
    margin = probability * state.access.members[target]
    if margin > state.totals[ClusterTotal.TOLERANCE]:
        suspect(state, target, margin)
    return True


@kernel
def sweep(state: State, start: int, count: int, gains: Float64s) -> int:
    """Examine `count` access predicates from `start` on; return where to go on, or 0 at the end.

    Suspects those that have become too heavy, and adds the savings of each table to `gains`: for the first conjunction of
    an access predicate, how much more probable its next best would be.
    """
    top = state.access.entries.counters[1]
    end = min(start + count, top)
    for entry in range(max(start, FALLBACK + 1), end):
        if state.access.members[entry] <= 0 or state.access.entries.keys[entry, CLUSTER] < 0:
            continue
        _examine(state, np.int64(entry))
        table = np.int64(state.access.table[entry])
        if table < 0 or state.tables.width[table] <= 0:
            continue
        cluster = state.access.entries.keys[entry, CLUSTER]
        size = slots_of(state, _nth(state, cluster, np.int64(0)))
        here = probability_of(state, np.int64(entry))
        width = state.tables.width[table]
        state.tables.width[table] = -width  # as if it were not there
        _, _, _, elsewhere = choose(state, size)
        state.tables.width[table] = width
        gains[table] += max(elsewhere - here, 0.0) * state.access.members[entry]
    return 0 if end >= top else end
