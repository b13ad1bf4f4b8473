"""Automata come into the graph and go: places that are there already are shared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences._kernels.instances import enter_key, leave_key, release
from tocsin.sequences.running.state import (
    ALWAYS,
    CONSTANTS,
    FEEDS,
    FIRST,
    FORM,
    KEYED,
    NEXT,
    NEXT_ACTIVE,
    NEXT_ALWAYS,
    NEXT_SATISFIED,
    NONE,
    PREVIOUS_ACTIVE,
    SATISFIED,
    SOURCE,
    STATICS,
    USES,
    WAITING,
    Places,
    Program,
    State,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import kernel


@kernel
def find_or_enter(
    index: HashIndex,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    third: NDArray[np.int64],
    found: NDArray[np.int64],
    fresh: NDArray[np.bool_],
) -> None:
    """Write the entry of each key, and whether it was not there before; there must be room for all."""
    for i in range(first.shape[0]):
        entry = np.int64(hash_index.find(index, first[i], second[i], third[i]))
        fresh[i] = entry < 0
        if entry < 0:
            entry = np.int64(hash_index.insert(index, first[i], second[i], third[i]))
        found[i] = entry


@kernel
def enter_places(
    places: Places,
    entries: NDArray[np.int64],
    sources: NDArray[np.int64],
    few: int,
    direct: NDArray[np.bool_],
) -> None:
    """Make new places empty, and count each as a use of the one it is entered from.

    Write whether it is one of the first `few` that are entered from there.
    """
    for i in range(entries.shape[0]):
        place, source = entries[i], sources[i]
        places.rows[place, SOURCE], places.rows[place, FORM] = source, NONE
        direct[i] = source >= 0 and places.rows[source, USES] < few
        if source >= 0:
            places.rows[source, USES] += 1
        places.rows[place, ALWAYS] = places.rows[place, NEXT_ALWAYS] = places.previous_always[place] = NONE
        places.rows[place, FIRST] = places.rows[place, NEXT_ACTIVE] = places.rows[place, PREVIOUS_ACTIVE] = (
            NONE
        )
        places.rows[place, SATISFIED] = places.rows[place, NEXT_SATISFIED] = NONE
        places.stamp[place] = places.rebound[place] = 0
        places.rows[place, WAITING] = places.rows[place, USES] = places.rows[place, FEEDS] = 0
        places.rows[place, STATICS] = places.rows[place, KEYED] = 0
        places.deaths[place] = 0
        places.last_death[place] = NONE
        places.upkeep[place] = places.spared[place] = 0


@kernel
def link_always(places: Places, heads: NDArray[np.int32], entries: NDArray[np.int64]) -> None:
    """List places whose edge has no static part with where they are entered from; of start nodes, in `heads`."""
    for i in range(entries.shape[0]):
        place = entries[i]
        source = np.int64(places.rows[place, SOURCE])
        following = np.int64(places.rows[source, ALWAYS]) if source >= 0 else np.int64(heads[-1 - source])
        places.rows[place, NEXT_ALWAYS], places.previous_always[place] = following, NONE
        if following >= 0:
            places.previous_always[following] = place
        if source >= 0:
            places.rows[source, ALWAYS] = place
        else:
            heads[-1 - source] = place


@kernel
def unlink_always(places: Places, heads: NDArray[np.int32], place: int) -> None:
    """Take a place whose edge has no static part from its list, if it came to be there."""
    source = np.int64(places.rows[place, SOURCE])
    following, before = np.int64(places.rows[place, NEXT_ALWAYS]), np.int64(places.previous_always[place])
    if following >= 0:
        places.previous_always[following] = before
    if before >= 0:
        places.rows[before, NEXT_ALWAYS] = following
    elif source >= 0 and places.rows[source, ALWAYS] == place:
        places.rows[source, ALWAYS] = following
    elif source < 0 and heads[-1 - source] == place:
        heads[-1 - source] = following


@kernel
def write_constants(
    program: Program, places: Places, entries: NDArray[np.int64], values: NDArray[np.int64]
) -> None:
    """Keep the constants of new places, a row of `values` each; there must be room."""
    count = values.shape[1]
    for i in range(entries.shape[0]):
        first = blocks.take(program.constants, class_of(count))
        places.rows[entries[i], CONSTANTS] = first
        for j in range(count):
            program.constants.rows[first + j, 0] = values[i, j, 0]
            program.constants.rows[first + j, 1] = values[i, j, 1]


@kernel
def drop_constants(program: Program, places: Places, entries: NDArray[np.int64], count: int) -> None:
    """Give back the memory of places that have so many constants each."""
    for i in range(entries.shape[0]):
        blocks.give(program.constants, np.int64(places.rows[entries[i], CONSTANTS]), class_of(count))


@kernel
def enter_holders(state: State, entries: NDArray[np.int64], ends: NDArray[np.int64], feeding: int) -> None:
    """Let holders hold their ends."""
    holders, places = state.holders, state.places
    for i in range(entries.shape[0]):
        holder, end = entries[i], ends[i]
        head = np.int64(places.rows[end, FIRST])
        holders.end[holder] = end
        holders.next[holder], holders.previous[holder] = head, NONE
        if head >= 0:
            holders.previous[head] = holder
        places.rows[end, FIRST] = holder
        places.rows[end, USES] += 1
        places.rows[end, FEEDS] += feeding


@kernel
def leave_holders(
    state: State, entries: NDArray[np.int64], feeding: NDArray[np.int64], freed: NDArray[np.int64]
) -> int:
    """Let holders go, and write the places that nobody uses any more; return how many these are.

    They are no longer found, but what they hold is still to be given back. `freed` must have room for all places.
    """
    holders, places = state.holders, state.places
    count = np.int64(0)
    for i in range(entries.shape[0]):
        holder = entries[i]
        place = np.int64(holders.end[holder])
        following, before = np.int64(holders.next[holder]), np.int64(holders.previous[holder])
        if following >= 0:
            holders.previous[following] = before
        if before >= 0:
            holders.next[before] = following
        else:
            places.rows[place, FIRST] = following
        places.rows[place, FEEDS] -= feeding[i]
        while place >= 0:
            places.rows[place, USES] -= 1
            if places.rows[place, USES] > 0:
                break
            if places.rows[place, STATICS] & 1 == 0:
                unlink_always(places, state.graph.stream_always, place)
            hash_index.remove(state.graph.entries, place)
            freed[count] = place
            count += 1
            place = np.int64(places.rows[place, SOURCE])
    return count


@kernel
def clear_places(state: State, entries: NDArray[np.int64]) -> None:
    """Release all instances at some nodes."""
    for i in range(entries.shape[0]):
        while state.places.rows[entries[i], WAITING] > 0:
            release(state, np.int64(state.places.rows[entries[i], FIRST]))


@kernel
def rekey(state: State, node: int, keyed: int) -> None:
    """Let a node's instances be found by their keys from now on, or no longer; there must be room."""
    instance = np.int64(state.places.rows[node, FIRST])
    while instance >= 0:
        if keyed:
            enter_key(state, instance)
        else:
            leave_key(state, instance)
        instance = state.instances.rows[instance, NEXT]
    state.places.rows[node, KEYED] = keyed
