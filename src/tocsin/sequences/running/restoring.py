"""Restoring a snapshot: its instances are put at the places that this process has for their paths."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.model.values import Opaque
from tocsin.sequences._kernels import snapshots as kernels
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.paths import nodes_of, paths_of
from tocsin.sequences.running.snapshots import (
    Group,
    SavedInstances,
    reached_links,
    renumbered,
    slot_positions,
)
from tocsin.sequences.running.state import (
    NONE,
    InstanceColumn,
    LinkColumn,
    PlaceColumn,
    State,
    StateCounter,
    new_state,
)
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Bools, Int64s, UInt64s
from tocsin.structures.blocks import block_size
from tocsin.structures.growth import grown
from tocsin.structures.interning import InterningTable
from tocsin.structures.row_lookup import find_rows

_EMPTIED: Final = (
    StateCounter.LIVE,
    StateCounter.TOP,
    StateCounter.TOUCHED,
    StateCounter.OUTPUTS,
    StateCounter.OUTPUT_SLOTS,
    StateCounter.LINKS,
    StateCounter.FEEDING,
)


def without_instances(state: State) -> State:
    """Return the state with its automata alone."""
    nodes, places = nodes_of(state), state.places
    places.rows[nodes, PlaceColumn.FIRST] = NONE
    places.rows[nodes, PlaceColumn.WAITING] = 0
    places.deaths[nodes] = 0
    places.last_death[nodes] = NONE
    state.graph.active[:] = NONE
    state.counters[list(_EMPTIED)] = 0
    state.counters[StateCounter.FREE] = NONE
    empty = new_state()
    return state._replace(arena=empty.arena, instances=empty.instances)


class FoundPlaces(NamedTuple):
    """The nodes for the paths of a snapshot, and the groups of the nodes that were found."""

    nodes: Int64s  # NONE for a path that no subscription has
    groups: list[Group]


def find_places(state: State, streams: InterningTable[str], saved: SavedInstances) -> FoundPlaces:
    """Return the places for a snapshot, or raise `ValueError` if one does not fit."""
    nodes = nodes_of(state)
    found = _look_up(paths_of(state, streams, nodes), saved.paths)
    places = np.where(found >= 0, nodes[found] if len(nodes) else NONE, NONE)
    widths = np.repeat([group.width for group in saved.groups], [group.nodes for group in saved.groups])
    forms = state.places.rows[places[places >= 0], PlaceColumn.FORM]
    if (state.forms.width[forms] != widths[places >= 0]).any():
        raise ValueError("the values at a place are others")
    done, kept = 0, []
    for group in saved.groups:
        is_found = places[done : done + group.nodes] >= 0
        counts = saved.counts[done : done + group.nodes]
        kept.append(Group(group.width, int(is_found.sum()), int(counts[is_found].sum())))
        done += group.nodes
    return FoundPlaces(places, kept)


def _look_up(paths: UInt64s, sought: UInt64s) -> Int64s:
    """Return the row of `paths` that equals each row of `sought`, or NONE."""
    rows = find_rows(paths[:, 0], sought[:, 0])
    return np.where((rows >= 0) & (paths[rows, 1] == sought[:, 1]), rows, NONE) if len(paths) else rows


def put_instances(
    state: State, saved: SavedInstances, found: FoundPlaces, codec: ValueCodec, events: EventStore
) -> State:
    """Return a state, which has no instances, with those of the snapshot whose places were found."""
    places, groups = found
    is_kept = np.repeat(places >= 0, saved.counts)
    kept = _kept_slots(saved.groups, is_kept)
    tags, values = saved.tags[kept], saved.values[kept]
    links = _restore_references(saved, tags, values, codec, events)
    bases, top = _bases(groups)
    live, touched = len(bases), np.flatnonzero(saved.is_touched[is_kept])
    state = _with_room(codec.into(state), live, len(touched), top, links)
    positions = slot_positions(groups, bases)
    state.arena.slots.rows[positions, 0] = tags
    state.arena.slots.rows[positions, 1] = values
    nodes, counts = places[places >= 0], saved.counts[places >= 0]
    rows = state.instances.rows
    rows[:live] = NONE
    rows[:live, InstanceColumn.NODE] = np.repeat(nodes, counts)
    rows[:live, InstanceColumn.START] = saved.starts[is_kept]
    rows[:live, InstanceColumn.END] = saved.ends[is_kept]
    rows[:live, InstanceColumn.BIRTH] = saved.births[is_kept]
    rows[:live, InstanceColumn.BASE] = bases
    rows[:live, InstanceColumn.TOUCHED] = 0
    rows[touched, InstanceColumn.TOUCHED] = np.arange(1, len(touched) + 1)
    state.instances.touched[: len(touched)] = touched
    _link_instances(state, nodes, counts)
    counters = state.counters
    counters[StateCounter.LIVE] = counters[StateCounter.TOP] = live
    counters[StateCounter.TOUCHED], counters[StateCounter.LINKS] = len(touched), len(links)
    kernels.enter_keys(state, live)
    return state


def _kept_slots(groups: tuple[Group, ...], is_kept: Bools) -> Bools:
    """Return which slots are those of instances that are kept."""
    parts, done = [np.zeros(0, dtype=np.bool_)], 0
    for group in groups:
        parts.append(np.tile(is_kept[done : done + group.instances], group.width))
        done += group.instances
    return np.concatenate(parts)


def _restore_references(
    saved: SavedInstances, tags: Int64s, values: Int64s, codec: ValueCodec, events: EventStore
) -> Int64s:
    """Give values their codes in this process and events their numbers; return the links of their chains."""
    chained, is_event = tags == Tag.CHAIN, tags == Tag.EVENT
    links, values[chained] = reached_links(saved.links.copy(), values[chained])
    needed = np.unique(np.concatenate([values[is_event], links[:, LinkColumn.EVENT]]))
    events.restore([saved.events[number] for number in needed.tolist()])
    values[is_event] = np.searchsorted(needed, values[is_event])
    links[:, LinkColumn.EVENT] = np.searchsorted(needed, links[:, LinkColumn.EVENT])
    is_string = tags == Tag.STRING
    used, positions = renumbered(values[is_string], len(saved.strings))
    values[is_string] = codec.codes([saved.strings[number] for number in used.tolist()])[positions]
    is_big = tags == Tag.BIG
    used, positions = renumbered(values[is_big], len(saved.integers))
    codes = [codec.encode(saved.integers[number])[1] for number in used.tolist()]
    values[is_big] = np.array(codes, dtype=np.int64)[positions]
    is_opaque = tags == Tag.OPAQUE
    codes = [codec.opaque.code(Opaque(name)) for name in saved.opaque]
    values[is_opaque] = np.array(codes, dtype=np.int64)[values[is_opaque]]
    return links


def _bases(groups: list[Group]) -> tuple[Int64s, int]:
    """Return the first slot of each instance, and the number of slots."""
    parts, top = [np.zeros(0, dtype=np.int64)], 0
    for group in groups:
        size = block_size(group.width) if group.width else 0
        parts.append(top + size * np.arange(group.instances))
        top += size * group.instances
    return np.concatenate(parts), top


def _with_room(state: State, live: int, touched: int, top: int, links: Int64s) -> State:
    """Return the state with room for so many instances and slots, and with these links."""
    slots = blocks.with_room(state.arena.slots, top)
    slots.top[0] = top
    arena = grown(state.arena._replace(slots=slots), ("links",), len(links))
    arena.links[: len(links)] = links
    instances = grown(grown(state.instances, ("rows",), live), ("touched",), touched)
    instances = instances._replace(keys=hash_index.with_room(instances.keys, live))
    return state._replace(arena=arena, instances=instances)


def _link_instances(state: State, nodes: Int64s, counts: Int64s) -> None:
    """Link the instances of nodes, which come one after another, and the nodes of each filter."""
    rows, places = state.instances.rows, state.places.rows
    ends = np.cumsum(counts)
    live = int(counts.sum())
    rows[:live, InstanceColumn.NEXT] = np.arange(1, live + 1)
    rows[ends - 1, InstanceColumn.NEXT] = NONE
    rows[:live, InstanceColumn.PREVIOUS] = np.arange(-1, live - 1)
    rows[ends - counts, InstanceColumn.PREVIOUS] = NONE
    places[nodes, PlaceColumn.FIRST] = ends - counts
    places[nodes, PlaceColumn.WAITING] = counts
    if not len(nodes):
        return
    filters = places[nodes, PlaceColumn.FILTER]
    order = np.argsort(filters, kind="stable")
    filters, nodes = filters[order], nodes[order]
    begins = np.flatnonzero(np.diff(filters, prepend=NONE))
    places[nodes, PlaceColumn.NEXT_ACTIVE] = np.append(nodes[1:], NONE)
    places[nodes[np.append(begins[1:] - 1, len(nodes) - 1)], PlaceColumn.NEXT_ACTIVE] = NONE
    places[nodes, PlaceColumn.PREVIOUS_ACTIVE] = np.append(NONE, nodes[:-1])
    places[nodes[begins], PlaceColumn.PREVIOUS_ACTIVE] = NONE
    state.graph.active[filters[begins]] = nodes[begins]
