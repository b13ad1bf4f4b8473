"""The paths of places: names of places that are the same in every process, whatever else is subscribed there.

A path is a digest of the stream of the first event and of the digests of all places on the way. It depends neither on the
order in which subscriptions came nor on other subscriptions.
"""

from __future__ import annotations

import numpy as np

from tocsin.matching import IdArray
from tocsin.sequences.running.digests import combine, digest_of_parts
from tocsin.sequences.running.state import PlaceColumn, State
from tocsin.structures import hash_index
from tocsin.structures.array_types import UInt64s
from tocsin.structures.interning import InterningTable


def nodes_of(state: State) -> IdArray:
    """Return all nodes that are in use."""
    rows = state.places.rows[: hash_index.top_entry(state.graph.entries)]
    used = np.flatnonzero(rows[:, PlaceColumn.USES] > 0)
    return np.asarray(used[state.forms.is_end[rows[used, PlaceColumn.FORM]] == 0])


def paths_of(state: State, streams: InterningTable[str], places: IdArray) -> UInt64s:
    """Return the path of each place, as two words."""
    sources = state.places.rows[: hash_index.top_entry(state.graph.entries), PlaceColumn.SOURCE].astype(
        np.int64
    )
    paths = np.zeros((len(sources), 2), dtype=np.uint64)
    remaining = _with_sources(sources, places)
    is_done = np.zeros(len(sources), dtype=np.bool_)
    while len(remaining):
        before = sources[remaining]
        is_ready = (before < 0) | is_done[before]
        ready, before = remaining[is_ready], before[is_ready]
        begun = paths[np.maximum(before, 0)]
        for code in np.unique(-1 - before[before < 0]).tolist():
            begun[before == -1 - code] = digest_of_parts(streams.value(code))
        own = state.graph.entries.keys[ready, 1:3].view(np.uint64)
        first, second = combine([(begun[:, 0], begun[:, 1]), (own[:, 0], own[:, 1])])
        paths[ready, 0], paths[ready, 1] = first, second
        is_done[ready] = True
        remaining = remaining[~is_ready]
    return paths[places]


def _with_sources(sources: IdArray, places: IdArray) -> IdArray:
    """Return places with all those on the way to them."""
    is_needed = np.zeros(len(sources), dtype=np.bool_)
    while len(places):
        is_needed[places] = True
        before = sources[places]
        before = before[before >= 0]
        places = np.unique(before[~is_needed[before]])
    return np.flatnonzero(is_needed)
