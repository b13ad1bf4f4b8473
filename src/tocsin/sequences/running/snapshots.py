"""Snapshots of instances: what waits at which place, with its values and the events that a match may need.

A snapshot names places by their paths, streams, strings and opaque types as such, and events by their order in it. So it fits
any process in which the same subscriptions were added, whatever others there are.

The instances of a node come one after another, in the order of its list; nodes of one form are together. Their slots are
column by column of such a group, because all values of a column have mostly one tag.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct

from tocsin.formats.packed_events import pack_events, unpack_events
from tocsin.matching.encoding.codes import is_exact
from tocsin.model.event import Event
from tocsin.sequences._kernels import garbage_collection
from tocsin.sequences._kernels import snapshots as kernels
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.paths import paths_of
from tocsin.sequences.running.state import (
    NONE,
    InstanceColumn,
    LinkColumn,
    PlaceColumn,
    State,
    StateCounter,
)
from tocsin.sequences.running.values import WIDE, ValueCodec
from tocsin.structures import hash_index
from tocsin.structures.array_types import Bools, Int64s, UInt64s
from tocsin.structures.compact_parts import PartsReader, PartsWriter
from tocsin.structures.interning import InterningTable

_TAGS: Final = len(Tag)
Interned = TypeVar("Interned", bound=Hashable)


class Group(Struct, frozen=True):
    """Nodes whose instances have equally many slots: how many slots, nodes and instances."""

    width: int
    nodes: int
    instances: int


class SavedInstances(Struct, frozen=True):
    """The instances of a snapshot, read and checked."""

    groups: tuple[Group, ...]
    paths: UInt64s  # [nodes, 2]
    counts: Int64s  # [nodes] instances
    starts: Int64s  # [instances]
    ends: Int64s
    births: Int64s
    is_touched: Bools
    tags: Int64s  # [slots] group by group, slot by slot
    values: Int64s  # [slots] a string, large integer, opaque value, event or link by its position in these
    strings: list[str]
    integers: list[int]
    opaque: list[str]
    links: Int64s  # [links, LinkColumn] a link stands after its predecessor
    events: list[Event]


def write_instances(
    state: State, codec: ValueCodec, events: EventStore, streams: InterningTable[str], writer: PartsWriter
) -> None:
    """Write all instances."""
    places = state.places.rows[: hash_index.top_entry(state.graph.entries)]
    nodes = np.flatnonzero(places[:, PlaceColumn.WAITING] > 0)
    forms = places[nodes, PlaceColumn.FORM].astype(np.int64)
    order = np.argsort(forms, kind="stable")
    nodes, forms = nodes[order], forms[order]
    counts = places[nodes, PlaceColumn.WAITING].astype(np.int64)
    found = np.empty(int(counts.sum()), dtype=np.int64)
    rows = state.instances.rows
    kernels.list_instances(rows, places[nodes, PlaceColumn.FIRST].astype(np.int64), found)
    writer.array("paths", paths_of(state, streams, nodes))
    writer.integers("counts", counts)
    starts, ends = rows[found, InstanceColumn.START], rows[found, InstanceColumn.END]
    writer.integers("ends", ends)
    writer.integers("starts", ends - starts)
    writer.integers("births", ends - rows[found, InstanceColumn.BIRTH])
    writer.integers("touched", np.flatnonzero(rows[found, InstanceColumn.TOUCHED] > 0))
    groups = _groups(state, forms, counts)
    writer.about["groups"] = [[one.width, one.nodes, one.instances] for one in groups]
    positions = slot_positions(groups, rows[found, InstanceColumn.BASE])
    _write_values(positions, state, codec, events, writer)


def _groups(state: State, forms: Int64s, counts: Int64s) -> list[Group]:
    """Return the groups of nodes, which are sorted by form."""
    begins = np.flatnonzero(np.diff(forms, prepend=NONE))
    return [
        Group(int(state.forms.width[forms[a]]), b - a, int(counts[a:b].sum()))
        for a, b in pairwise([*begins.tolist(), len(forms)])
    ]


def slot_positions(groups: list[Group] | tuple[Group, ...], bases: Int64s) -> Int64s:
    """Return the positions of all slots of instances, group by group and slot by slot."""
    parts, done = [np.zeros(0, dtype=np.int64)], 0
    for group in groups:
        own = bases[done : done + group.instances]
        parts.append((np.arange(group.width)[:, None] + own[None, :]).reshape(-1))
        done += group.instances
    return np.concatenate(parts)


def _write_values(
    positions: Int64s, state: State, codec: ValueCodec, events: EventStore, writer: PartsWriter
) -> None:
    """Write the values of slots, and whatever they refer to."""
    tags, values = state.arena.slots.rows[positions].T.copy()
    chained = tags == Tag.CHAIN
    links, values[chained] = _links(state, values[chained])
    is_event = tags == Tag.EVENT
    needed = np.unique(np.concatenate([values[is_event], links[:, LinkColumn.EVENT]]))
    values[is_event] = np.searchsorted(needed, values[is_event])
    writer.integers("links.events", np.searchsorted(needed, links[:, LinkColumn.EVENT]))
    writer.integers("links.previous", links[:, LinkColumn.PREVIOUS])
    writer.bytes("events", pack_events(events.several(needed)))
    strings = _listed(tags == Tag.STRING, values, codec.strings)
    integers = _listed(tags == Tag.BIG, values, codec.integers)
    opaque = _listed(tags == Tag.OPAQUE, values, codec.opaque)
    writer.strings("strings", strings)
    writer.strings("integers", list(map(hex, integers)))
    writer.strings("opaque", [one.type for one in opaque])
    writer.runs("tags", tags)
    for tag in Tag:
        if tag is not Tag.MISSING:
            writer.integers(f"values.{int(tag)}", values[tags == tag])


def _listed(is_own: Bools, values: Int64s, table: InterningTable[Interned]) -> list[Interned]:
    """Return the different values of slots that a table has, and write the position of each slot's value among them."""
    codes, values[is_own] = renumbered(values[is_own], table.top)
    return [table.value(code) for code in codes.tolist()]


def renumbered(codes: Int64s, top: int) -> tuple[Int64s, Int64s]:
    """Return the different codes, which are below `top`, and the position of each code among them."""
    is_used = np.zeros(top, dtype=np.bool_)
    is_used[codes] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


def _links(state: State, heads: Int64s) -> tuple[Int64s, Int64s]:
    """Return the links of the chains that have these last links, and the positions of the last links among them."""
    links = state.arena.links[: state.counters[StateCounter.LINKS]]
    return reached_links(links.copy(), heads)


def reached_links(links: Int64s, heads: Int64s) -> tuple[Int64s, Int64s]:
    """Compact links in place to those of the chains that have these last links; return them and the new last links."""
    marks = np.zeros(len(links), dtype=np.uint8)
    moved = np.full(len(links), NONE, dtype=np.int64)
    garbage_collection.mark_links(links, np.ascontiguousarray(heads), marks)
    count = garbage_collection.move_links(links, marks, moved)
    return links[:count], moved[heads]


def read_instances(reader: PartsReader) -> SavedInstances:
    """Return the instances of a snapshot; what does not fit raises `ValueError`, `KeyError` or `TypeError`."""
    groups = tuple(Group(*map(int, group)) for group in reader.about["groups"])
    counts, ends = reader.integers("counts"), reader.integers("ends")
    is_touched = np.zeros(len(ends), dtype=np.bool_)
    is_touched[reader.integers("touched")] = True
    tags = reader.runs("tags")
    values = np.zeros(len(tags), dtype=np.int64)
    for tag in Tag:
        if tag is not Tag.MISSING:
            values[tags == tag] = reader.integers(f"values.{int(tag)}")
    links = [reader.integers("links.events"), reader.integers("links.previous")]
    saved = SavedInstances(
        groups,
        reader.words("paths", 2),
        counts,
        ends - reader.integers("starts"),
        ends,
        ends - reader.integers("births"),
        is_touched,
        tags,
        values,
        reader.strings("strings"),
        [int(one, 16) for one in reader.strings("integers")],
        reader.strings("opaque"),
        np.stack(links, axis=1),
        unpack_events(reader.bytes("events")),
    )
    _check(saved)
    return saved


def _check(saved: SavedInstances) -> None:
    """Raise `ValueError` if the parts of a snapshot contradict each other."""
    done_nodes = done_instances = slots = 0
    for group in saved.groups:
        if min(group.width, group.nodes, group.instances) < 0:
            raise ValueError("a group of places has a negative size")
        own = saved.counts[done_nodes : done_nodes + group.nodes]
        if len(own) != group.nodes or own.sum() != group.instances or (own < 1).any():
            raise ValueError("the instances of a group of places are not as many as it says")
        done_nodes += group.nodes
        done_instances += group.instances
        slots += group.width * group.instances
    sizes = {
        "paths": (len(saved.paths), len(saved.counts)),
        "places": (len(saved.counts), done_nodes),
        "instances": (len(saved.ends), done_instances),
        "slots": (len(saved.tags), slots),
    }
    for name, (size, expected) in sizes.items():
        if size != expected:
            raise ValueError(f"there are {size} {name} instead of {expected}")
    tops = {
        Tag.STRING: len(saved.strings),
        Tag.BIG: len(saved.integers),
        Tag.OPAQUE: len(saved.opaque),
        Tag.EVENT: len(saved.events),
        Tag.CHAIN: len(saved.links),
    }
    if len(saved.tags) and not (0 <= saved.tags.min() <= saved.tags.max() < _TAGS):
        raise ValueError("a value has an unknown kind")
    for tag, top in tops.items():
        _check_positions(saved.values[saved.tags == tag], top)
    _check_positions(saved.links[:, LinkColumn.EVENT], len(saved.events))
    previous = saved.links[:, LinkColumn.PREVIOUS]
    if (previous < NONE).any() or (previous >= np.arange(len(previous))).any():
        raise ValueError("a chain of events does not end")
    if any(-WIDE <= number < WIDE or is_exact(number) for number in saved.integers):
        raise ValueError("a large integer is none")
    if (saved.starts > saved.ends).any() or (saved.births > saved.ends).any():
        raise ValueError("an instance ended before it began")


def _check_positions(positions: Int64s, top: int) -> None:
    if len(positions) and not (positions.min() >= 0 and positions.max() < top):
        raise ValueError("a value refers to what is not there")
