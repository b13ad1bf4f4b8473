"""What the kernels of sequences work on, all of it arrays.

A *place* is a node or an end. Every place is entered by one edge, so an edge is known by the place it enters, and a
place by the place it is entered from: automata that begin alike share their places. What the places of many
subscriptions have in common, all but constants, is a *form*.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import Blocks
from tocsin.structures.hash_index import HashIndex

NONE: Final = -1
FOREVER: Final = 2**63 - 1

# the programs of a form, and of each where it begins, where it ends and where its constants are
TEST: Final = 0
ASSIGN: Final = 1
GUARD: Final = 2
REST: Final = 3
REBIND: Final = 4
REBIND_ASSIGN: Final = 5
PROGRAMS: Final = 6
BEGIN: Final = 0
FINISH: Final = 1
CONSTANT: Final = 2

# the columns of a place
SOURCE: Final = 0  # the place it is entered from; a start node is -1 - its stream
FORM: Final = 1
CONSTANTS: Final = 2  # where those of its programs begin
FILTER: Final = 3
ALWAYS: Final = 4  # the first of the places it leads to whose edge has no static part
NEXT_ALWAYS: Final = 5
FIRST: Final = 6  # instance; of an end, its first holder
WAITING: Final = 7  # how many instances
NEXT_ACTIVE: Final = 8  # of the nodes that have instances and its filter
PREVIOUS_ACTIVE: Final = 9
KEYED: Final = 10  # whether its instances are found by their keys
SATISFIED: Final = 11  # the first of the places it leads to whose static part holds now
NEXT_SATISFIED: Final = 12
FEEDS: Final = 13  # of an end: how many publish what comes out
STATICS: Final = 14  # 1 if its edge has a static part, 2 if its rebind edge has, or both
USES: Final = 15  # places that it leads to, or subscriptions that it ends
PLACE: Final = 16

# the columns of an instance
NODE: Final = 0
START: Final = 1
END: Final = 2
BIRTH: Final = 3  # when the first event of its first step ended
BASE: Final = 4  # its first slot
NEXT: Final = 5  # at its node
PREVIOUS: Final = 6
KEY_NEXT: Final = 7  # among those with its key
KEY_PREVIOUS: Final = 8
ENTRY: Final = 9  # of its key, or NONE
TOUCHED: Final = 10  # its number among those that go when the epoch ends, from 1, or 0
INSTANCE: Final = 11

# why an instance died
EXPIRED: Final = 0  # it has lasted too long
STOPPED: Final = 1  # its next event let it take no edge
DROPPED: Final = 2  # there was no memory for it
REASONS: Final = 3

# the columns of an output
OUTPUT: Final = 6  # end, arrival, start, birth, first slot, when

# counters
EPOCH: Final = 0
LIVE: Final = 1  # instances
TOP: Final = 2  # instances ever used
FREE: Final = 3  # the first instance to be used again
TOUCHED_COUNT: Final = 4
STAMP: Final = 5  # the event at hand, by a number of its own
OUTPUTS: Final = 6
OUTPUT_ROWS: Final = 7
NUMBER: Final = 8  # the number of the first arrival at hand
LINKS: Final = 9
VISITED: Final = 10  # nodes that were looked at
MATCHED: Final = 11  # static predicates that held
LOOKED: Final = 12  # instances that were looked at
MADE: Final = 13  # instances that were made
FEEDING: Final = 14  # whether an output of this epoch is an event for others
COUNTERS: Final = 16

# what a kernel needs more room for
NEED_AFFECTED: Final = 0
NEED_EXPIRED: Final = 1
NEED_MOVES: Final = 2
NEED_TOUCHED: Final = 3
NEED_INSTANCES: Final = 4
NEED_SLOTS: Final = 5
NEED_OUTPUTS: Final = 6
NEED_OUTPUT_SLOTS: Final = 7
NEED_LINKS: Final = 8
NEED_KEYS: Final = 9
NEEDS: Final = 10

SCRATCH: Final = 64  # values that a program may compute on its way


class Program(NamedTuple):
    """All instructions, and all constants."""

    code: NDArray[np.int32]  # [instructions, 4]
    constants: Blocks  # [values, 2]


class Forms(NamedTuple):
    """What places have in common, by form."""

    programs: NDArray[np.int32]  # [forms, PROGRAMS, 3]
    width: NDArray[np.int32]  # [forms] slots of an instance, or of an output
    is_end: NDArray[np.uint8]  # [forms]
    rebinds: NDArray[np.uint8]  # [forms] 1 if there is a rebind edge, 2 if it has a static part
    keys: NDArray[np.int32]  # [forms] the first of its keys
    key_count: NDArray[np.int32]  # [forms]
    key_columns: NDArray[np.int32]  # [keys]
    key_slots: NDArray[np.int32]  # [keys]


class Places(NamedTuple):
    """Nodes and ends, by the number of their entry in the graph's `entries`."""

    rows: NDArray[np.int32]  # [places, PLACE] what every event looks at, side by side
    longest: NDArray[np.int64]  # ticks that an instance may last here
    stamp: NDArray[np.int64]  # the last event for which SATISFIED was written
    rebound: NDArray[np.int64]  # the last event for which the rebind edge's static part held
    previous_always: NDArray[np.int32]
    deaths: NDArray[np.int64]  # [places, REASONS]
    last_death: NDArray[np.int64]  # [places, 4] reason, event, when, start
    upkeep: NDArray[np.int64]  # changes of its keys, or what they would be
    spared: NDArray[np.int64]  # instances that were not looked at for their keys


class Graph(NamedTuple):
    """The merged automata."""

    entries: HashIndex  # (source, digest, digest) -> place
    filters: HashIndex  # (stream, digest, digest) -> filter
    active: NDArray[np.int32]  # [filters] the first of its nodes that have instances
    filter_uses: NDArray[np.int32]  # [filters]
    stream_filter: NDArray[np.int32]  # [streams] the filter of nodes that look at every event of it
    stream_always: NDArray[np.int32]  # [streams] the first place that is entered by every event


class Holders(NamedTuple):
    """Who holds an end: subscriptions, and sequences that publish to others."""

    number: NDArray[np.int64]  # the subscription, or NONE
    end: NDArray[np.int32]
    next: NDArray[np.int32]
    previous: NDArray[np.int32]
    since: NDArray[np.int64]  # what began by then is not for it


class Arena(NamedTuple):
    """The slots of all instances, and chains of events."""

    slots: Blocks  # [values, 2]
    links: NDArray[np.int64]  # [links, 2] an event's number, and the link before


class Instances(NamedTuple):
    """Instances, and the index of their keys."""

    rows: NDArray[np.int64]  # [instances, INSTANCE]
    touched: NDArray[np.int64]  # those that go when the epoch ends
    keys: HashIndex  # (node, kind, value) -> entry, with its first instance


class Outputs(NamedTuple):
    """What the arrivals at hand have completed."""

    rows: NDArray[np.int64]  # [outputs, OUTPUT]
    slots: NDArray[np.int64]  # [values, 2]


class Scratch(NamedTuple):
    """What one event needs."""

    values: NDArray[np.int64]  # [SCRATCH, 2]
    affected: NDArray[np.int64]  # [instances]
    expired: NDArray[np.int64]  # [instances]
    moves: NDArray[np.int64]  # [moves, 3] instance or NONE, place, whether it rebinds


class Texts(NamedTuple):
    """Strings by code, as UTF-8."""

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    bytes: NDArray[np.uint8]


class Bigs(NamedTuple):
    """Integers of more than 64 bits that no float equals, by code."""

    nearest: NDArray[np.float64]
    low: NDArray[np.float64]  # the floats between which it lies
    high: NDArray[np.float64]
    rank: NDArray[np.int64]  # its place in the order of all


class State(NamedTuple):
    """All of it."""

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
    counters: NDArray[np.int64]  # [COUNTERS]
    needs: NDArray[np.int64]  # [NEEDS] how much room was needed, by the one who returned for it


def new_state() -> State:
    """Return the state of no automata."""
    return State(
        Program(np.zeros((0, 4), dtype=np.int32), blocks.new_blocks(2)),
        Forms(
            np.zeros((0, PROGRAMS, 3), dtype=np.int32), _i4(), _u1(), _u1(), _i4(), _i4(), _i4(), _i4()
        ),
        Places(
            np.zeros((0, PLACE), dtype=np.int32), _i8(), _i8(), _i8(), _i4(),
            np.zeros((0, REASONS), dtype=np.int64), np.zeros((0, 4), dtype=np.int64), _i8(), _i8(),
        ),
        Graph(hash_index.new_hash_index(3), hash_index.new_hash_index(3), _i4(), _i4(), _i4(), _i4()),
        Holders(_i8(), _i4(), _i4(), _i4(), _i8()),
        Arena(blocks.new_blocks(2), np.zeros((64, 2), dtype=np.int64)),
        Instances(
            np.zeros((64, INSTANCE), dtype=np.int64), np.zeros(64, dtype=np.int64), hash_index.new_hash_index(3, 1)
        ),
        Outputs(np.zeros((64, OUTPUT), dtype=np.int64), np.zeros((64, 2), dtype=np.int64)),
        Scratch(
            np.zeros((SCRATCH, 2), dtype=np.int64),
            np.zeros(64, dtype=np.int64),
            np.zeros(64, dtype=np.int64),
            np.zeros((64, 3), dtype=np.int64),
        ),
        Texts(_i8(), _i8(), _u1()),
        Bigs(_f8(), _f8(), _f8(), _i8()),
        _counters(),
        np.zeros(NEEDS, dtype=np.int64),
    )  # fmt: skip


def _counters() -> NDArray[np.int64]:
    counters = np.zeros(COUNTERS, dtype=np.int64)
    counters[EPOCH] = -FOREVER - 1
    counters[FREE] = NONE
    return counters


def _i4() -> NDArray[np.int32]:
    return np.zeros(0, dtype=np.int32)


def _i8() -> NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64)


def _u1() -> NDArray[np.uint8]:
    return np.zeros(0, dtype=np.uint8)


def _f8() -> NDArray[np.float64]:
    return np.zeros(0, dtype=np.float64)
