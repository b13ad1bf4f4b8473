"""Adding automata to the graph and removing them; automata with equal prefixes share places."""

from __future__ import annotations

import numpy as np

from tocsin.sequences._kernels.instances import enter_key, leave_key, release
from tocsin.sequences.running.state import NONE, InstanceColumn, PlaceColumn, Places, Program, State
from tocsin.structures import blocks, hash_index, linked_lists
from tocsin.structures.array_types import Bools, Int32s, Int64s
from tocsin.structures.blocks import class_of
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import kernel


@kernel
def find_or_enter(
    index: HashIndex, first: Int64s, second: Int64s, third: Int64s, found: Int64s, fresh: Bools
) -> None:
    """Write the entry of each key, and whether it is new; there must be room for all."""
    for i in range(first.shape[0]):
        entry = np.int64(hash_index.find(index, first[i], second[i], third[i]))
        fresh[i] = entry < 0
        if entry < 0:
            entry = np.int64(hash_index.insert(index, first[i], second[i], third[i]))
        found[i] = entry


@kernel
def enter_places(places: Places, entries: Int64s, sources: Int64s, few: int, direct: Bools) -> None:
    """Clear new places, and count each as a use of its source.

    Write to `direct` whether a place is one of the first `few` of its source.
    """
    for i in range(entries.shape[0]):
        place, source = entries[i], sources[i]
        direct[i] = source >= 0 and places.rows[source, PlaceColumn.USES] < few
        if source >= 0:
            places.rows[source, PlaceColumn.USES] += 1
        row = places.rows[place]
        row[:] = NONE
        row[PlaceColumn.SOURCE] = source
        row[PlaceColumn.WAITING] = row[PlaceColumn.USES] = row[PlaceColumn.STATICS] = 0
        row[PlaceColumn.KEYED] = row[PlaceColumn.FEEDS] = 0
        places.previous_always[place] = NONE
        places.stamp[place] = places.rebound[place] = 0
        places.deaths[place] = 0
        places.last_death[place] = NONE
        places.upkeep[place] = places.spared[place] = 0


@kernel
def link_always(places: Places, heads: Int32s, entries: Int64s) -> None:
    """Add places whose edge has no static part to the list of their source; `heads` has the lists of start nodes."""
    nexts = places.rows[:, PlaceColumn.NEXT_ALWAYS]
    for i in range(entries.shape[0]):
        place = entries[i]
        source = np.int64(places.rows[place, PlaceColumn.SOURCE])
        if source >= 0:
            linked_lists.push(
                nexts, places.previous_always, places.rows[:, PlaceColumn.ALWAYS], source, place
            )
        else:
            linked_lists.push(nexts, places.previous_always, heads, -1 - source, place)


@kernel
def unlink_always(places: Places, heads: Int32s, place: int) -> None:
    """Remove a place whose edge has no static part from its list, if it is there."""
    source = np.int64(places.rows[place, PlaceColumn.SOURCE])
    nexts, previous = places.rows[:, PlaceColumn.NEXT_ALWAYS], places.previous_always
    firsts = places.rows[:, PlaceColumn.ALWAYS]
    if source >= 0 and (previous[place] >= 0 or firsts[source] == place):
        linked_lists.unlink(nexts, previous, firsts, source, place)
    elif source < 0 and (previous[place] >= 0 or heads[-1 - source] == place):
        linked_lists.unlink(nexts, previous, heads, -1 - source, place)


@kernel
def write_constants(program: Program, places: Places, entries: Int64s, values: Int64s) -> None:
    """Store the constants of new places, a row of `values` each; there must be room."""
    count = values.shape[1]
    for i in range(entries.shape[0]):
        first = blocks.take(program.constants, class_of(count))
        places.rows[entries[i], PlaceColumn.CONSTANTS] = first
        for j in range(count):
            program.constants.rows[first + j, 0] = values[i, j, 0]
            program.constants.rows[first + j, 1] = values[i, j, 1]


@kernel
def drop_constants(program: Program, places: Places, entries: Int64s, count: int) -> None:
    """Free the constants of places that have `count` each."""
    for i in range(entries.shape[0]):
        first = np.int64(places.rows[entries[i], PlaceColumn.CONSTANTS])
        blocks.give(program.constants, first, class_of(count))


@kernel
def enter_holders(state: State, entries: Int64s, ends: Int64s, feeding: int) -> None:
    """Add holders to the lists of their ends."""
    holders, places = state.holders, state.places
    for i in range(entries.shape[0]):
        holder, end = entries[i], ends[i]
        holders.end[holder] = end
        linked_lists.push(holders.next, holders.previous, places.rows[:, PlaceColumn.FIRST], end, holder)
        places.rows[end, PlaceColumn.USES] += 1
        places.rows[end, PlaceColumn.FEEDS] += feeding


@kernel
def leave_holders(state: State, entries: Int64s, feeding: Int64s, freed: Int64s) -> int:
    """Remove holders, and write the places that are no longer used; return how many these are.

    They are no longer found, but the caller still has to free their contents. `freed` must have room for all places.
    """
    holders, places = state.holders, state.places
    count = np.int64(0)
    for i in range(entries.shape[0]):
        holder = entries[i]
        place = np.int64(holders.end[holder])
        linked_lists.unlink(holders.next, holders.previous, places.rows[:, PlaceColumn.FIRST], place, holder)
        places.rows[place, PlaceColumn.FEEDS] -= feeding[i]
        while place >= 0:
            places.rows[place, PlaceColumn.USES] -= 1
            if places.rows[place, PlaceColumn.USES] > 0:
                break
            if places.rows[place, PlaceColumn.STATICS] & 1 == 0:
                unlink_always(places, state.graph.stream_always, place)
            hash_index.remove(state.graph.entries, place)
            freed[count] = place
            count += 1
            place = np.int64(places.rows[place, PlaceColumn.SOURCE])
    return count


@kernel
def clear_places(state: State, entries: Int64s) -> None:
    """Release all instances at some nodes."""
    for i in range(entries.shape[0]):
        while state.places.rows[entries[i], PlaceColumn.WAITING] > 0:
            release(state, np.int64(state.places.rows[entries[i], PlaceColumn.FIRST]))


@kernel
def rekey(state: State, node: int, keyed: int) -> None:
    """Switch the index of keys on or off for the instances at a node; there must be room.

    The instances of a key are in the order of all, from the last one to the first.
    """
    rows = state.instances.rows
    instance = np.int64(state.places.rows[node, PlaceColumn.FIRST])
    while instance >= 0 and rows[instance, InstanceColumn.NEXT] >= 0:
        instance = rows[instance, InstanceColumn.NEXT]
    while instance >= 0:
        if keyed:
            enter_key(state, instance)
        else:
            leave_key(state, instance)
        instance = rows[instance, InstanceColumn.PREVIOUS]
    state.places.rows[node, PlaceColumn.KEYED] = keyed
