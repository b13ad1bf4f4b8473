"""The arrays that OpIndex is made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions
from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.structures import blocks
from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt64s, zeros
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown

ALWAYS: Final = FIELDS - 1  # the field that every event has: the pivot of expressions without one
NO_KEY: Final = -(2**63)  # a key that no number has

# Kinds of predicate list, one per operator (§4.2). A value satisfies a contiguous range of a list's keys.
EQ: Final = 0
NE: Final = 1
LT: Final = 2
LE: Final = 3
GT: Final = 4
GE: Final = 5
ANY_VALUE: Final = 6  # any value of the field
REFUTATION: Final = 7  # values that refute a predicate: searched first, and each adds one unit to the counter
KINDS: Final = 8

# A list is stored as its first segment, and in the eight bits below as the logarithm of its segment count.
LOG_BITS: Final = 8
LOG: Final = (1 << LOG_BITS) - 1

# A counter is one integer: the remaining units, above them its units, and above those the last event's number.
COUNT_BITS: Final = 18
EVENT_SHIFT: Final = 2 * COUNT_BITS
MOST_PREDICATES: Final = 1 << (COUNT_BITS - 2)  # per expression: two units each, and one more per refutation
MOST_EVENTS: Final = (1 << (63 - EVENT_SHIFT)) - 1  # events that can be numbered before counters are reset

GATE: Final = 1 << 31  # added to a gate's number where a counter's may stand
HAS_RESIDUAL: Final = 1 << 30  # added to a counter's expression: it has residual predicates

HITS: Final = 2048  # segments that are prefetched before any is searched
_FINER: Final = 8  # logarithm: lists by key may have so many times more segments,
_FINEST: Final = 16  # up to this logarithm
TAIL: Final = 4096  # entries that may wait to be sorted in


class Segment(IntEnum):
    """Columns of `State.segments`."""

    OFFSET = 0  # its first entry, or -1
    COUNT = 1  # entries, including dead ones
    SORTED = 2  # entries in order; later ones follow unsorted
    META = 3  # the class of its block in eight bits, and above them the number of dead entries


class Pivot(IntEnum):
    """Columns of `State.pivots`."""

    FIELD = 0
    COUNTERS = 1  # the first of its counters, or -1
    CLASS = 2  # the class of their block
    TOP = 3  # counters ever used
    FREE = 4  # the first free one, or -1
    MEMBERS = 5


class Gate(IntEnum):
    """Columns of `State.gates`: counters of their own for a clause, or for a predicate with several entries."""

    STATE = 0  # as a counter
    PARENT = 1  # the counter or gate that it counts towards
    NEXT = 2  # the next of the same placement, or of the free list


class EntryDraft(IntEnum):
    """Columns of `State.draft`."""

    KIND = 0
    FIELD = 1
    KEY = 2
    TARGET = 3  # 0 for the expression's counter, else a gate's position in `State.gate_draft` counted from 1


class GateDraft(IntEnum):
    """Columns of `State.gate_draft`."""

    UNITS = 0
    PARENT = 1  # 0 for the expression's counter, else as in `EntryDraft.TARGET`
    NUMBER = 2  # of the gate, once it has one


class StoredColumn(IntEnum):
    """This matcher's columns of `State.store.rows`."""

    PLACEMENT = 2  # its first placement, or -1


class Placement(IntEnum):
    """Columns of `State.placements`: an expression under one of its pivots."""

    PIVOT = 0
    SLOT = 1  # its counter, within the pivot's
    FIRST_GATE = 2
    NEXT = 3  # the expression's next placement, or the next free one


class Top(IntEnum):
    """Entries of `State.tops`: numbers ever used, free lists, and missing capacity."""

    SEGMENTS = 0
    EMITTED = 1  # entries in `State.draft`
    PIVOTS = 2
    GATES = 3
    FREE_GATE = 4
    PLACEMENTS = 5
    FREE_PLACEMENT = 6
    EPOCH = 7  # the number of the current event
    LARGEST_SEGMENT = 8  # capacity of the largest segment's block
    NEEDED_ENTRIES = 9  # missing capacity, as the last failed call found it
    NEEDED_MATCHES = 10
    ENTRIES = 11
    OPENED = 12  # gates in `State.gate_draft`
    MOST_SEGMENTS = 13  # segments of the longest list
    NEEDED_SEGMENTS = 14
    COPIES = 15  # pivots of the current expression
    NEEDED_COUNTERS = 16


class Setting(IntEnum):
    """Entries of `State.settings`."""

    SEGMENTS = 0  # logarithm of a list's most segments,
    EQUAL_SEGMENTS = 1  # and of those of a list by key
    SIGNED = 2  # whether segments have signatures


class Total(IntEnum):
    """Entries of `State.totals`."""

    EVENTS = 0  # decayed number of events
    WEIGHT = 1  # weight of the next event
    SEEN = 2  # events matched, ever
    VISITS = 3  # pivots that events had, ever
    SEARCHES = 4  # segments searched, ever
    TOUCHES = 5  # entries satisfied, ever
    MOVES = 6  # expressions that got another pivot, ever


class Fields(NamedTuple):
    """By field."""

    pivot: Int32s  # the pivot of the field, or -1
    uses: Int32s  # entries with the field


class Attributes(NamedTuple):
    """By attribute."""

    uses: Int32s  # predicates on the attribute
    seen: Float64s  # decayed number of events that had it
    met: Int64s  # the last event that had it


class Pairs(NamedTuple):
    """The current event: its pairs of field and value, the pivots it has, and the segments to search."""

    field: Keys
    key: Keys
    low: Keys
    high: Keys
    key_bits: UInt64s  # signature bits for lists by key,
    field_bits: UInt64s  # and for all others
    key_hash: Keys  # the hash for segments of lists by key,
    attribute: Keys  # and of all others
    pivot: Keys  # by visit: the pivot,
    begin: Keys  # the first of its pairs,
    end: Keys  # the end of its pairs,
    alive: Keys  # and how many of its counters may yet reach zero
    row: Keys  # [HITS + KINDS * pairs] segments to be searched,
    what: Keys  # [HITS + KINDS * pairs] for which visit, kind and pair


class State(NamedTuple):
    """All arrays. Only the holder of the matcher's lock may write."""

    entries: Blocks  # rows: a key; the field above 32 bits and the counter or gate below, negative if dead
    counters: Blocks  # rows: the last event that touched it, its units, and the units left
    holders: Int32s  # [counters] expression; of a free counter, the next free one
    store: ConjunctionStore
    records: Blocks
    signatures: UInt64s  # [segments]
    segments: Int32s  # [segments, Segment]
    free: Int64s  # [16] by the logarithm of their number: the first free segments, or -1
    lists: Int64s  # [pivots, KINDS] by pivot and kind, or -1
    sizes: Int32s  # [pivots, KINDS] entries
    pivots: Int64s  # [pivots, Pivot]
    gates: Int64s  # [gates, Gate]
    placements: Int32s  # [placements, Placement]
    fields: Fields
    attributes: Attributes
    pairs: Pairs
    scratch: Int64s  # [TAIL, 2] for sorting
    draft: Int64s  # [entries, EntryDraft] of the current expression
    gate_draft: Int64s  # [gates, GateDraft] of the current expression
    chosen: Int64s  # [entries] pivot fields of the current expression
    tops: Int64s  # [Top]
    settings: Int64s  # [Setting]
    totals: Float64s  # [Total]


class OpIndexStateAddress(NamedTuple):
    """The address of a `State`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state(segments: int, *, signatures: bool) -> State:
    """Return the arrays of an empty index whose lists have up to so many segments, a power of two."""
    tops = np.zeros(len(Top), dtype=np.int64)
    log = segments.bit_length() - 1
    tops[[Top.FREE_GATE, Top.FREE_PLACEMENT]] = -1
    totals = np.zeros(len(Total), dtype=np.float64)
    totals[Total.WEIGHT] = 1.0
    return zeros(
        State,
        64,
        entries=blocks.new_blocks(2),
        counters=blocks.new_blocks(1),
        store=conjunction_store.new_store(len(StoredColumn) + 2),
        records=blocks.new_blocks(2),
        segments=len(Segment),
        free=np.full(16, -1, dtype=np.int64),
        lists=KINDS,
        sizes=KINDS,
        pivots=len(Pivot),
        gates=len(Gate),
        placements=len(Placement),
        fields=zeros(Fields, 64, pivot=np.full(64, -1, dtype=np.int32)),
        attributes=zeros(Attributes, 8),
        pairs=_new_pairs(256),
        scratch=np.zeros((TAIL, 2), dtype=np.int64),
        draft=len(EntryDraft),
        gate_draft=len(GateDraft),
        tops=tops,
        settings=np.array([log, min(log + _FINER, _FINEST) if log else 0, signatures], dtype=np.int64),
        totals=totals,
    )


def _new_pairs(count: int) -> Pairs:
    row, what = np.zeros((2, HITS + KINDS * count), dtype=np.int64)
    return zeros(Pairs, count, row=row, what=what)


def with_attributes(state: State, count: int) -> State:
    """Return the state with room for so many attributes."""
    if count <= len(state.attributes.seen):
        return state
    attributes = grown(state.attributes, Attributes._fields, count)
    old = len(state.fields.pivot)
    fields = grown(state.fields, Fields._fields, len(attributes.seen) * FIELDS)
    fields.pivot[old:] = -1
    return state._replace(attributes=attributes, fields=fields)


def with_expressions(state: State, batch: Expressions) -> State:
    """Return the state with room to store more expressions."""
    records = blocks.with_room(state.records, conjunction_store.record_rows(batch))
    return state._replace(store=conjunction_store.with_room(state.store, len(batch.numbers)), records=records)


def with_placements(state: State, expressions: int, entries: int, gates: int) -> State:
    """Return the state with room to place one expression of so many entries and gates, and some more.

    Placing has written the capacity that it missed into `tops`.
    """
    tops = state.tops
    copies, some = max(int(tops[Top.COPIES]), 1), min(expressions, 4096)
    segments = int(tops[Top.SEGMENTS]) + int(tops[Top.NEEDED_SEGMENTS]) + 2 * some
    state = grown(state, ("signatures", "segments"), segments)
    state = grown(state, ("lists", "sizes", "pivots"), int(tops[Top.PIVOTS]) + copies + min(expressions, 256))
    state = grown(state, ("gates",), int(tops[Top.GATES]) + copies * int(tops[Top.OPENED]))
    state = grown(state, ("placements",), int(tops[Top.PLACEMENTS]) + copies + some)
    state = grown(grown(grown(state, ("draft",), entries), ("gate_draft",), gates), ("chosen",), entries)
    state = state._replace(
        entries=blocks.with_room(state.entries, int(tops[Top.NEEDED_ENTRIES]) + 4 * some),
        counters=blocks.with_room(state.counters, int(tops[Top.NEEDED_COUNTERS]) + some),
    )
    return grown(state, ("holders",), len(state.counters.rows))


def with_pairs(state: State, count: int) -> State:
    """Return the state with room for an event of so many pairs."""
    if count <= len(state.pairs.field):
        return state
    return state._replace(pairs=_new_pairs(2 * count))
