"""The arrays that OpIndex is made of."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

ALWAYS: Final = FIELDS - 1  # the field that every event has, for forms without a pivot: no attribute uses it
NO_KEY: Final = -(2**63)  # a key that no number has

# Kinds of predicate list. What a value satisfies in one is a range of its keys.
EQ: Final = 0
NE: Final = 1
LT: Final = 2
LE: Final = 3
GT: Final = 4
GE: Final = 5
RUN: Final = 6  # any value of the field
STRIKE: Final = 7  # not a predicate, but what refutes one: it is looked at first, and asks for one unit more
KINDS: Final = 8

# A list is known by its first segment and, in the eight bits below, by the logarithm of how many it has.
LOG_BITS: Final = 8

# Columns of a segment's row
OFFSET: Final = 0  # its first entry, or -1
COUNT: Final = 1  # entries, the dead ones with them
SORTED: Final = 2  # those in order; the others came later
META: Final = 3  # the class of its block in eight bits, and above them how many entries are dead

# Columns of a pivot's row
FIELD: Final = 0
COUNTERS: Final = 1  # the first of its counters, or -1
CLASS: Final = 2  # the class of their block
TOP: Final = 3  # counters ever used
FREE: Final = 4  # the first free one, or -1
MEMBERS: Final = 5

# A counter is one integer: what is left, above it its units, and above them the event that touched it last
COUNT_BITS: Final = 18
EVENT_SHIFT: Final = 2 * COUNT_BITS
MOST_PREDICATES: Final = 1 << (
    COUNT_BITS - 2
)  # in a form: two units each, and one more for each that is refuted
MOST_EVENTS: Final = (1 << (63 - EVENT_SHIFT)) - 1  # that can be numbered

# Columns of a gate's row: a counter of its own, for a clause or for a predicate that needs several entries
STATE: Final = 0  # as a counter
UNITS: Final = 1  # of a gate that is drafted
PARENT: Final = 2  # the counter or gate that it counts towards
NEXT_GATE: Final = 3  # the next of the same placement, or of the free ones
NUMBER: Final = 3  # of a gate that is drafted: its number
GATE: Final = 1 << 31  # added to a gate's number where a counter's might stand

# Columns of a form's row; the first is SIBLING
STORE: Final = 1  # the first record of what it says
RECORDS: Final = 2  # how many there are; negative if they come in clauses
PIVOT: Final = 3  # and these say where it is placed: -1 if nowhere
SLOT: Final = 4
FIRST_GATE: Final = 5
MORE: Final = 6  # a further placement, or -1

# Columns of a further placement's row
EXTRA_PIVOT: Final = 0
EXTRA_SLOT: Final = 1
EXTRA_GATE: Final = 2
EXTRA_NEXT: Final = 3

ASKED: Final = 1 << 30  # added to a counter's form: Python has the last word

# Operators of records that are no predicate
HIGH: Final = 14  # the upper bound of the record before
CLAUSE: Final = 15  # so many predicates follow that are one clause

# Places in `State.tops`
TOP_SEGMENT: Final = 0
EMITTED: Final = 1  # entries of the form at hand, in `State.draft`
TOP_PIVOT: Final = 2
TOP_GATE: Final = 3
FREE_GATE: Final = 4
TOP_EXTRA: Final = 5
FREE_EXTRA: Final = 6
TOP_FORM: Final = 7
FREE_FORM: Final = 8
LIVE_FORMS: Final = 9
PREDICATES: Final = 10
EPOCH: Final = 11  # the number of the event at hand
LARGEST: Final = 12  # entries that the block of the largest segment has room for
NEEDED: Final = 13  # entries that there was no room for
ROOM: Final = 14  # forms that an event may satisfy, if there was no room for them
ENTRIES: Final = 15
OPENED: Final = 16  # gates of the form at hand, in `State.gate_draft`
MOST_SEGMENTS: Final = 17  # that any list has
LACKING: Final = 18  # segments that there was no room for
COPIES: Final = 19  # pivots of the form at hand
SHORT_OF: Final = 20  # counters that there was no room for

# Places in `State.settings`
SEGMENTS: Final = 0  # that a list may have, as a logarithm,
EQUAL_SEGMENTS: Final = 1  # and that one of predicates that ask for a key may have
SIGNED: Final = 2  # whether segments have signatures

# Places in `State.totals`
EVENTS: Final = 0  # decayed number of events seen
WEIGHT: Final = 1  # what the next event adds
SEEN: Final = 2  # events matched, ever
VISITS: Final = 3  # pivots that events had, ever
SEARCHES: Final = 4  # segments searched, ever
TOUCHES: Final = 5  # entries that a value satisfied, ever
MOVES: Final = 6  # forms that were given another pivot, ever

HITS: Final = 2048  # segments that are asked for before any is searched
_FINER: Final = 8  # a list of keys may have so many times more segments, as a logarithm,
_FINEST: Final = 16  # up to so many
TAIL: Final = 4096  # entries that may wait to be sorted in


class Fields(NamedTuple):
    """By field."""

    pivot: NDArray[np.int32]  # the pivot it is, or -1
    uses: NDArray[np.int32]  # entries that look at it


class Attributes(NamedTuple):
    """By attribute."""

    uses: NDArray[np.int32]  # predicates that speak of it
    seen: NDArray[np.float64]  # decayed number of events that had it
    met: NDArray[np.int64]  # the last event that had it


class Pairs(NamedTuple):
    """The event at hand: its pairs, and where to look for each."""

    field: Keys
    key: Keys
    low: Keys
    high: Keys
    equal: NDArray[np.uint64]  # the bits of a signature for predicates that ask for the key,
    other: NDArray[np.uint64]  # and for all others
    equal_place: Keys  # and the places of their segments
    other_place: Keys
    pivot: Keys  # of the pivots that the event has: which,
    begin: Keys  # and from which of its pairs
    end: Keys  # to which
    alive: Keys  # and how many of its counters may yet reach zero
    row: Keys  # [HITS + KINDS * pairs] segments to be searched,
    what: Keys  # [HITS + KINDS * pairs] for which of these pivots, kind and pair


class Expressions(NamedTuple):
    """Conjunctions and clause forms to be placed: a conjunction is clauses of one predicate each.

    The clauses of form i are those from `offsets[i]` to `offsets[i + 1]`, and the predicates of clause c those
    from `bounds[c]` to `bounds[c + 1]`. The members of list `which[q]` are those from `starts` on.
    """

    numbers: Keys  # int64[forms]
    offsets: Keys  # int64[forms + 1]
    bounds: Keys  # int64[clauses + 1]
    tags: Keys  # int64[predicates]
    lows: Keys
    highs: Keys
    pivots: Keys  # int64[predicates] the field that a value must have to satisfy it
    which: Keys  # int64[predicates] for `in` and `not in`
    starts: Keys  # int64[lists + 1]
    fields: Keys  # int64[members]
    keys: Keys  # int64[members]


class State(NamedTuple):
    """All arrays. Only who holds the matcher's lock may write."""

    entries: (
        Blocks  # rows: a key, and above 32 bits the field, below them the counter or gate; dead if negative
    )
    counters: Blocks  # rows: the event that touched it last, its units, and what is left of them
    holders: NDArray[np.int32]  # [counters] form; of a free counter, the next free one
    store: Blocks  # rows: a key, and a tag
    signatures: NDArray[np.uint64]  # [segments]
    segments: NDArray[np.int32]  # [segments, 4]
    free: NDArray[np.int64]  # [16] by the logarithm of how many there are: the first free segments, or -1
    lists: NDArray[np.int64]  # [pivots, KINDS] by pivot and kind, or -1
    sizes: NDArray[np.int32]  # [pivots, KINDS] entries
    pivots: NDArray[np.int64]  # [pivots, 6]
    gates: NDArray[np.int64]  # [gates, 4]
    extras: NDArray[np.int32]  # [further placements, 4]
    forms: NDArray[np.int32]  # [forms, 7]
    owner: NDArray[np.int32]  # [forms] entry of its subscription's id
    ids: HashIndex  # keys: a subscription's id
    first: NDArray[np.int32]  # by entry of `ids`: its newest form
    fields: Fields
    attributes: Attributes
    pairs: Pairs
    scratch: NDArray[np.int64]  # [TAIL, 2] room to sort
    draft: NDArray[np.int64]  # [entries, 4] of the form at hand: kind, field, key, counter or gate
    gate_draft: NDArray[np.int64]  # [gates, 4] of the form at hand
    chosen: NDArray[np.int64]  # [entries] of the form at hand: the fields that are its pivots
    tops: NDArray[np.int64]  # [21]
    settings: NDArray[np.int64]  # [3]
    totals: NDArray[np.float64]  # [7]


def new_state(segments: int, *, signatures: bool) -> State:
    """Return the arrays of an empty index whose lists have up to so many segments, a power of two."""
    tops = np.zeros(21, dtype=np.int64)
    log = segments.bit_length() - 1
    tops[[FREE_GATE, FREE_EXTRA, FREE_FORM]] = -1
    totals = np.zeros(7, dtype=np.float64)
    totals[WEIGHT] = 1.0
    return State(
        blocks.new_blocks(2),
        blocks.new_blocks(1),
        np.zeros(64, dtype=np.int32),
        blocks.new_blocks(2),
        np.zeros(64, dtype=np.uint64),
        np.zeros((64, 4), dtype=np.int32),
        np.full(16, -1, dtype=np.int64),
        np.zeros((64, KINDS), dtype=np.int64),
        np.zeros((64, KINDS), dtype=np.int32),
        np.zeros((64, 6), dtype=np.int64),
        np.zeros((64, 4), dtype=np.int64),
        np.zeros((64, 4), dtype=np.int32),
        np.zeros((64, 7), dtype=np.int32),
        np.zeros(64, dtype=np.int32),
        hash_index.new_hash_index(1),
        np.zeros(64, dtype=np.int32),
        Fields(np.full(64, -1, np.int32), np.zeros(64, np.int32)),
        Attributes(np.zeros(8, np.int32), np.zeros(8, np.float64), np.zeros(8, np.int64)),
        _new_pairs(256),
        np.zeros((TAIL, 2), dtype=np.int64),
        np.zeros((64, 4), dtype=np.int64),
        np.zeros((64, 4), dtype=np.int64),
        np.zeros(64, dtype=np.int64),
        tops,
        np.array([log, min(log + _FINER, _FINEST) if log else 0, signatures], dtype=np.int64),
        totals,
    )


def _new_pairs(count: int) -> Pairs:
    def keys(length: int) -> Keys:
        return np.zeros(length, dtype=np.int64)

    return Pairs(
        keys(count),
        keys(count),
        keys(count),
        keys(count),
        np.zeros(count, dtype=np.uint64),
        np.zeros(count, dtype=np.uint64),
        keys(count),
        keys(count),
        keys(count),
        keys(count),
        keys(count),
        keys(count),
        keys(HITS + KINDS * count),
        keys(HITS + KINDS * count),
    )


def with_attributes(state: State, count: int) -> State:
    """Return the state with room for so many attributes."""
    if count <= len(state.attributes.seen):
        return state
    attributes = grown(state.attributes, ("uses", "seen", "met"), count)
    old = len(state.fields.pivot)
    fields = grown(state.fields, ("pivot", "uses"), len(attributes.seen) * FIELDS)
    fields.pivot[old:] = -1
    return state._replace(attributes=attributes, fields=fields)


def with_forms(state: State, forms: int, records: int) -> State:
    """Return the state with room for more forms of so many records in all."""
    ids = hash_index.with_room(state.ids, forms)
    state = state._replace(ids=ids, store=blocks.with_room(state.store, records))
    state = grown(state, ("first",), len(ids.chain))
    return grown(state, ("forms", "owner"), int(state.tops[TOP_FORM]) + forms)


def with_placements(state: State, forms: int, entries: int, gates: int) -> State:
    """Return the state with room to place one form of so many entries and gates, and some more.

    What placing found wanting, it has written into `tops`.
    """
    tops = state.tops
    copies = max(int(tops[COPIES]), 1)
    segments = int(tops[TOP_SEGMENT]) + int(tops[LACKING]) + 2 * min(forms, 4096)
    state = grown(state, ("signatures", "segments"), segments)
    state = grown(state, ("lists", "sizes", "pivots"), int(tops[TOP_PIVOT]) + copies + min(forms, 256))
    state = grown(state, ("gates",), int(tops[TOP_GATE]) + copies * int(tops[OPENED]))
    state = grown(state, ("extras",), int(tops[TOP_EXTRA]) + copies)
    state = grown(grown(grown(state, ("draft",), entries), ("gate_draft",), gates), ("chosen",), entries)
    state = state._replace(
        entries=blocks.with_room(state.entries, int(tops[NEEDED]) + 4 * min(forms, 4096)),
        counters=blocks.with_room(state.counters, int(tops[SHORT_OF]) + min(forms, 4096)),
    )
    return grown(state, ("holders",), len(state.counters.rows))


def with_pairs(state: State, count: int) -> State:
    """Return the state with room for an event of so many pairs."""
    if count <= len(state.pairs.field):
        return state
    return state._replace(pairs=_new_pairs(2 * count))
