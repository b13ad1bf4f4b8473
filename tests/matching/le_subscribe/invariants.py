"""The invariants of a clustered matcher's arrays after every operation."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.le_subscribe._kernels.access import slots_of
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.matching.le_subscribe.state import CLUSTER, FALLBACK
from tocsin.structures.chunked_lists import Chunk, ListRow

__all__ = ["check_invariants"]


def check_invariants(matcher: ClusteredMatcher) -> None:
    """Every conjunction is in exactly one cluster, where its locator says, and every count is exact."""
    state = matcher._state
    uses: Counter[int] = Counter()
    seen: list[int] = []
    of_table: Counter[int] = Counter()
    for entry in range(int(state.access.entries.counters[1])):
        members = 0
        cluster = int(state.access.entries.keys[entry, CLUSTER]) if state.access.members[entry] > 0 else -1
        while cluster >= 0:
            row = state.clusters.rows[cluster]
            assert row[ListRow.TAG] == entry
            numbers = _numbers(matcher, cluster)
            assert len(numbers) == row[ListRow.TOTAL] > 0
            for number, chunk, place in numbers:
                assert state.store.rows[number, 1:].tolist() == [chunk, place]
                uses.update(state.scratch[: slots_of(state, number)].tolist())
            seen += [number for number, _, _ in numbers]
            members += len(numbers)
            cluster = int(row[ListRow.NEXT])
        assert members == max(int(state.access.members[entry]), 0)
        if members and entry != FALLBACK and state.access.table[entry] >= 0:
            of_table[int(state.access.table[entry])] += members
    assert len(seen) == len(set(seen)) == state.store.counters[StoreCounter.LIVE]
    live = {slot: int(state.predicates.uses[slot]) for slot in uses}
    assert live == dict(uses)
    assert state.predicates.entries.counters[0] == len(uses)
    assert sum(uses.values()) == state.store.counters[StoreCounter.PREDICATES]
    for table in range(int(state.tables.used[0])):
        assert state.tables.members[table] == of_table[table]
    if not seen:
        words = matcher.vocabulary
        for held in (words.names, words.symbols, words.predicates, words.patterns, words.tests):
            assert len(held) == 0
        assert not np.any(state.fields.equalities)
        assert not np.any(state.fields.others)


def _numbers(matcher: ClusteredMatcher, cluster: int) -> list[tuple[int, int, int]]:
    clusters = matcher._state.clusters
    found = []
    chunk, fill = int(clusters.rows[cluster, ListRow.HEAD]), int(clusters.rows[cluster, ListRow.FILL])
    while chunk >= 0:
        first = int(clusters.chunks[chunk, Chunk.OFFSET])
        found += [(int(clusters.words[first + place]), chunk, place) for place in range(fill)]
        chunk = int(clusters.chunks[chunk, Chunk.OLDER])
        fill = int(clusters.chunks[chunk, Chunk.CAPACITY]) if chunk >= 0 else 0
    return found
