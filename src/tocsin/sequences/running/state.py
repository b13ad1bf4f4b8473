"""The arrays that the kernels of sequences work on.

A *place* is a state of the merged automata: a node or an end. One edge enters each place, so an edge
is named by the place it enters, and automata with equal prefixes share their places. Places that differ only in their
constants share a *form*. The AI-index finds the instances at a node by a key, the values that an equality demands.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt8s, zeros
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

NONE: Final = -1
FOREVER: Final = 2**63 - 1


class FormProgram(IntEnum):
    """The programs of a form."""

    TEST = 0
    ASSIGN = 1
    GUARD = 2
    REST = 3  # the guard without the equalities that the AI-index has decided
    REBIND = 4
    REBIND_ASSIGN = 5


class SpanColumn(IntEnum):
    """The columns of `Forms.programs`: where a program begins and ends, and where its constants begin."""

    BEGIN = 0
    FINISH = 1
    CONSTANT = 2


class PlaceColumn(IntEnum):
    """The columns of `Places.rows`."""

    SOURCE = 0  # the place it is entered from; a start node is -1 - its stream
    FORM = 1
    CONSTANTS = 2  # the first constant of its programs
    FILTER = 3
    ALWAYS = 4  # the first of the places it leads to whose edge has no static part
    NEXT_ALWAYS = 5
    FIRST = 6  # instance; of an end, its first holder
    WAITING = 7  # how many instances
    NEXT_ACTIVE = 8  # of the nodes that have instances and its filter
    PREVIOUS_ACTIVE = 9
    KEYED = 10  # whether the AI-index finds its instances by their keys
    SATISFIED = 11  # the first of the places it leads to whose static part holds for this event
    NEXT_SATISFIED = 12
    FEEDS = 13  # of an end: how many holders publish its outputs
    STATICS = 14  # 1 if its edge has a static part, 2 if its rebind edge has, or both
    USES = 15  # places that it leads to, or holders of an end


class InstanceColumn(IntEnum):
    """The columns of `Instances.rows`."""

    NODE = 0
    START = 1
    END = 2
    BIRTH = 3  # when the first event of its first step ended
    BASE = 4  # its first slot
    NEXT = 5  # at its node; of a free row, the next free row
    PREVIOUS = 6
    KEY_NEXT = 7  # among those with its key
    KEY_PREVIOUS = 8
    ENTRY = 9  # of its key, or NONE
    TOUCHED = 10  # its number, from 1, among those to be released at the end of the epoch, or 0


class Death(IntEnum):
    """Why an instance died."""

    EXPIRED = 0  # it has lasted too long
    STOPPED = 1  # its next event satisfied no edge
    DROPPED = 2  # the memory limit was reached


class DeathColumn(IntEnum):
    """The columns of `Places.last_death`."""

    REASON = 0
    EVENT = 1


class MoveColumn(IntEnum):
    """The columns of `Scratch.moves`."""

    AFFECTED = 0  # the number of an affected instance, or NONE for a start node
    PLACE = 1
    REBINDS = 2


class LinkColumn(IntEnum):
    """The columns of `Arena.links`."""

    EVENT = 0
    PREVIOUS = 1


class OutputColumn(IntEnum):
    """The columns of `Outputs.rows`."""

    END = 0  # the place
    EVENT = 1  # its row in the batch
    STARTED = 2
    BIRTH = 3
    BASE = 4  # its first slot
    ENDED = 5


class StateCounter(IntEnum):
    """Positions in `State.counters`."""

    EPOCH = 0  # the end of the event at hand
    LIVE = 1  # instances
    TOP = 2  # instance rows ever used
    FREE = 3  # the first free instance row
    TOUCHED = 4
    STAMP = 5  # a number of its own for the event at hand
    OUTPUTS = 6
    OUTPUT_SLOTS = 7
    NUMBER = 8  # of the first event of the batch
    LINKS = 9
    VISITED = 10  # nodes visited
    MATCHED = 11  # static predicates satisfied
    EXAMINED = 12  # instances examined
    MADE = 13  # instances made
    FEEDING = 14  # whether an output of this epoch is an event for other sequences


class Need(IntEnum):
    """Positions in `State.needs`: the arrays that a kernel can run out of."""

    AFFECTED = 0
    EXPIRED = 1
    MOVES = 2
    TOUCHED = 3
    INSTANCES = 4
    SLOTS = 5
    OUTPUTS = 6
    OUTPUT_SLOTS = 7
    LINKS = 8
    KEYS = 9


SCRATCH: Final = 64  # values that a program may compute on its way


class Program(NamedTuple):
    """All instructions, and all constants."""

    code: Int32s  # [instructions, 4]
    constants: Blocks  # [values, 2]


class Forms(NamedTuple):
    """What places have in common, by form."""

    programs: Int32s  # [forms, FormProgram, SpanColumn]
    width: Int32s  # [forms] slots of an instance, or of an output
    is_end: UInt8s  # [forms]
    rebinds: UInt8s  # [forms] 1 if there is a rebind edge, 2 if it has a static part
    keys: Int32s  # [forms] the first of its keys
    key_count: Int32s  # [forms]
    key_columns: Int32s  # [keys]
    key_slots: Int32s  # [keys]


class Places(NamedTuple):
    """Nodes and ends, by the number of their entry in the graph's `entries`."""

    rows: Int32s  # [places, PlaceColumn] read for every event: a row fills one cache line
    longest: Int64s  # [places] ticks that an instance may last here
    stamp: Int64s  # [places] the last event for which SATISFIED was written
    rebound: Int64s  # [places] the last event that satisfied the rebind edge's static part
    previous_always: Int32s  # [places]
    deaths: Int64s  # [places, Death]
    last_death: Int64s  # [places, DeathColumn]
    upkeep: Int64s  # [places] changes of its keys, or how many there would be
    spared: Int64s  # [places] instances that its keys spared, or would have


class Graph(NamedTuple):
    """The merged automata."""

    entries: HashIndex  # (source, digest, digest) -> place
    filters: HashIndex  # (stream, digest, digest) -> filter
    active: Int32s  # [filters] the first of its nodes that have instances
    filter_uses: Int32s  # [filters]
    stream_filter: Int32s  # [streams] the filter of nodes that take every event of it
    stream_always: Int32s  # [streams] the first place that every event enters


class Holders(NamedTuple):
    """The holders of ends: subscriptions, and sequences in parentheses that others read."""

    number: Int64s  # the subscription, or NONE
    end: Int32s
    next: Int32s
    previous: Int32s
    since: Int64s  # the epoch at which it was added; older instances do not concern it


class Arena(NamedTuple):
    """The slots of all instances, and chains of events."""

    slots: Blocks  # [values, 2]
    links: Int64s  # [links, LinkColumn]


class Instances(NamedTuple):
    """Instances, and the index of their keys."""

    rows: Int64s  # [instances, InstanceColumn]
    touched: Int64s  # those to be released at the end of the epoch
    keys: HashIndex  # (node, kind, value) -> entry, with its first instance


class Outputs(NamedTuple):
    """The sequences that the batch at hand has completed."""

    rows: Int64s  # [outputs, OutputColumn]
    slots: Int64s  # [values, 2]


class Scratch(NamedTuple):
    """Working memory of one event."""

    values: Int64s  # [SCRATCH, 2]
    affected: Int64s  # [instances]
    expired: Int64s  # [instances]
    moves: Int64s  # [moves, MoveColumn]


class Texts(NamedTuple):
    """Strings by code, as UTF-8."""

    offsets: Int64s
    lengths: Int64s
    bytes: UInt8s


class Bigs(NamedTuple):
    """Integers of more than 64 bits that no float equals, by code."""

    nearest: Float64s
    low: Float64s  # the floats between which it lies
    high: Float64s
    rank: Int64s  # its position in the order of all


class State(NamedTuple):
    """The whole state."""

    program: Program
    forms: Forms
    places: Places
    graph: Graph
    holders: Holders
    arena: Arena
    instances: Instances
    outputs: Outputs
    scratch: Scratch
    texts: Texts
    bigs: Bigs
    counters: Int64s  # [StateCounter]
    needs: Int64s  # [Need] how much room the last event needs, if the kernel returned for it


_GROWING: Final = (
    ("scratch", "affected", Need.AFFECTED), ("scratch", "expired", Need.EXPIRED), ("scratch", "moves", Need.MOVES),
    ("instances", "rows", Need.INSTANCES), ("instances", "touched", Need.TOUCHED), ("arena", "links", Need.LINKS),
    ("outputs", "rows", Need.OUTPUTS), ("outputs", "slots", Need.OUTPUT_SLOTS),
)  # fmt: skip


class AutomatonStateAddress(NamedTuple):
    """The address of a `State`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state() -> State:
    """Return the state of no automata."""
    counters = np.zeros(len(StateCounter), dtype=np.int64)
    counters[StateCounter.EPOCH] = -FOREVER - 1
    counters[StateCounter.FREE] = NONE
    return State(
        zeros(Program, 0, code=4, constants=blocks.new_blocks(2)),
        zeros(Forms, 0, programs=np.zeros((0, len(FormProgram), len(SpanColumn)), dtype=np.int32)),
        zeros(Places, 0, rows=len(PlaceColumn), deaths=len(Death), last_death=len(DeathColumn)),
        zeros(Graph, 0, entries=hash_index.new_hash_index(3), filters=hash_index.new_hash_index(3)),
        zeros(Holders, 0),
        zeros(Arena, 64, slots=blocks.new_blocks(2), links=len(LinkColumn)),
        zeros(Instances, 64, rows=len(InstanceColumn), keys=hash_index.new_hash_index(3, 1)),
        zeros(Outputs, 64, rows=len(OutputColumn), slots=2),
        zeros(Scratch, SCRATCH, values=2, moves=len(MoveColumn)),
        zeros(Texts, 0),
        zeros(Bigs, 0),
        counters,
        np.zeros(len(Need), dtype=np.int64),
    )


def with_room(state: State) -> State:
    """Return the state with room for what its last event needed."""
    needs = state.needs.tolist()
    for part, column, need in _GROWING:
        state = state._replace(**{part: grown(getattr(state, part), (column,), needs[need])})
    keys = hash_index.with_room(state.instances.keys, needs[Need.KEYS])
    slots = blocks.with_room(state.arena.slots, needs[Need.SLOTS])
    instances, arena = state.instances._replace(keys=keys), state.arena._replace(slots=slots)
    return state._replace(instances=instances, arena=arena)
