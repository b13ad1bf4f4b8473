"""The arrays that the adaptive matcher is made of.

A *code* is the number of a distinct predicate; conjunctions are lists of codes. A *slot* is what an event may have a value in: a
field of an attribute, or a level of cells of such a field (see `Grids`). A *cluster* holds the conjunctions with one access path.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.matching.encoding.codes import FIELDS, Op
from tocsin.model.errors import MatcherError
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt16s, UInt64s
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
OP_BITS: Final = 40  # in the key of a code: the operator above these bits, and the slot below
SLOT_MASK: Final = (1 << OP_BITS) - 1
TRUE: Final = 14  # the operator of the code that every event satisfies: 0
CELL: Final = 13  # the operator of codes that stand for a cell of a grid; `Op` ends below it
INSIDE: Final = sum(1 << op for op in (Op.EQ, Op.LT, Op.LE, Op.GT, Op.GE, Op.BETWEEN))
"""The operators that ask for a value in a closed interval."""

ORDER: Final = 7  # the field of strings' places in the order: an opaque value has no slot of its own
WIDEST: Final = 4  # codes of an access path at most
CODE_BITS: Final = 32
NO_CODE: Final = 0x7FFFFFFF  # in the key of an access path
PRESENCE: Final = 0x7FFFFFFE  # in the key of an access path: the number before is a slot
EVERY_EVENT: Final = -1  # the key of the access path of conjunctions that every event reaches
ABSENT: Final = -2  # for a code: the slot has no value; -1 is a value that no equality asks for
ALWAYS: Final = 0  # the entry of the access path that every event reaches
LEVELS: Final = 12
VALUES: Final = 16  # of a slot that are kept, a power of two
MOST_WORDS: Final = 2**30 - 1
MOST_EVENTS: Final = (1 << 15) - 1  # that can be numbered
CHUNK: Final = 512  # events that are matched together
CHUNK_WORDS: Final = CHUNK // 64
HOT: Final = 4_096
BIT_ROWS: Final = 1 << 14
MOST_COLUMNS: Final = 512
HOT_BIT: Final = 1 << 31  # in the word of an access path's place
LARGE_BIT: Final = 1 << 30
SUSPECTS: Final = 4_096  # clusters that are noted for the next review
DRAWN: Final = 1_024  # conjunctions that are drawn for it
MOST_BOUNDS: Final = 1 << (LEVELS - 2)

# In the head of a conjunction in a cluster: its codes, those that are checked, whether Python has to evaluate more, and whether
# what the checks look at is there too
SIZE_BITS: Final = 14
SIZE_MASK: Final = (1 << SIZE_BITS) - 1
RESIDUAL_BIT: Final = 28
BOUNDS_BIT: Final = 29
BOUNDS: Final = 3  # words of it: the slot, and the upper halves of the least and the greatest key


class Code(IntEnum):
    """Columns of `State.predicates.entries.keys`."""

    TAG = 0  # operator and slot
    LOW = 1  # the closed interval that a value must be in; of a list, its code
    HIGH = 2
    USE = 3  # the entry of its access path, plus one, and the weighted events that have it, as a 32-bit float


class Access(IntEnum):
    """Columns of `State.access.keys`, by access path."""

    FIRST = 0  # its codes, two to an integer
    SECOND = 1
    PLACE = 2  # where its cluster begins, whether it is hot, whether it is large, and how many words it has
    WORK = 3  # words of conjunctions that are gone, and the weighted events that reached it, as a 32-bit float; of a large cluster its row instead of the words


class Slot(IntEnum):
    """Columns of `Slots.rows`."""

    FIELD = 0
    CLUSTER = 1  # the entry of the access path of its presence, plus one
    EQUALITIES = 2  # distinct codes of equalities, or cells that are access paths
    GRID = 3  # the number of its grid, plus one
    LISTS = 4  # members of lists that are access paths
    COLUMN = 5  # the column of its values in a chunk of events, plus one; -1 if it may have none


class Value(IntEnum):
    """Columns of `Slots.values` and `Room.more`."""

    LOW = 0  # where the value lies: between two neighbouring keys, or at one
    HIGH = 1
    CODE = 2  # of the equality with this value, or that it is in this cell; -1, or ABSENT
    NEXT = 3  # twice the row of the slot's next value, plus two; one more if the value is between keys


class GridRow(IntEnum):
    """Columns of `Grids.rows`."""

    SLOT = 0
    FIRST = 1  # its bounds
    COUNT = 2  # of bounds, a power of two
    LEVELS = 3  # a bit for each level that has cells in use
    TOTAL = 4  # weighted events that were counted, as a float


class Large(IntEnum):
    """Columns of `LargeClusters.rows`."""

    ENTRY = 0  # of the access path, or -1 if the row is free
    FIRST = 1  # its first checks; of a free row, the next free one
    CLASS = 2  # of their block
    COUNT = 3  # of them
    GONE = 4  # words of conjunctions that are gone
    SECTION = 5  # the first of its sections
    SECTIONS = 6
    DIVIDED = 7  # first checks that are in sections
    PARTS = 8  # that were divided one after the other
    VISITS = 9  # counted events that reached it since it was divided,
    CHECKS = 10  # and what they were checked against: conjunctions, and half of the sections


class Section(IntEnum):
    """Columns of `LargeClusters.sections`."""

    SLOTS = 0  # two slots, and what their values must be at least and at most; the second may be -1
    LOW = 1
    HIGH = 2
    SECOND_LOW = 3
    SECOND_HIGH = 4
    BEGIN = 5  # its first checks, counted from the first of the cluster; none if it holds other sections
    END = 6
    NEXT = 7  # the section to go on with if the values are others, counted from the cluster's first


class Total(IntEnum):
    """Places in `State.totals`."""

    EVENTS = 0  # weighted
    WEIGHT = 1  # of the next event
    CHECKS = 2  # conjunctions that were verified for the events that were counted, not weighted
    PROBES = 3  # access paths that were looked up for these
    COUNTED = 4  # these events
    VISITS = 5  # clusters that they reached
    ALONE = 6  # the share of events that come in batches too small to be evaluated together


class Top(IntEnum):
    """Places in `State.tops`."""

    SLOTS = 0
    TABLES = 1
    GRIDS = 2
    NEEDED = 3  # room that the last kernel wanted for results
    SUSPECTS = 4  # clusters that were noted
    DRAWN = 5  # conjunctions that were drawn from what was checked
    NUMBER = 6  # of the event at hand, from 1 on: see `Predicates.marks`
    NEEDED_PAIRS = 7  # room that the last kernel wanted for pairs
    UNCOUNTED = 8  # of an event's number, the bits of which none is set if the event is counted
    NEEDED_MEMBERS = 9  # room that the last kernel wanted for members of lists
    WIDEST = 10  # codes of the widest conjunction that was added
    NEEDED_POSTINGS = 11  # room that the last kernel wanted for postings
    NEEDED_CHECKS = 12  # room that the last kernel wanted for first checks of large clusters
    LARGE = 13  # words from which on a cluster is large


class ListRow(IntEnum):
    """Columns of `State.lists`, by the vocabulary's code of a list."""

    FIRST = 0  # its members
    COUNT = 1
    LINKS = 2  # the row of its first link, or -1


class Link(IntEnum):
    """Columns of `State.links.rows`: for each member of a list that is an access path, where the value leads to it."""

    POINT = 0  # the code of the equality with the member
    POSITION = 1  # in the value's postings


class Posting(IntEnum):
    """Columns of `State.postings.rows`: the lists that have a value, behind a row with their number and the class of the block."""

    ENTRY = 0  # of the list's access path; of the first row, how many there are
    LINK = 1  # the row that says where this one is; of the first row, the class


class Predicates(NamedTuple):
    """The distinct predicates, by code."""

    entries: HashIndex  # keys: `Code`
    uses: Int32s  # predicates of conjunctions, codes of access paths and links that name it
    linked: Int32s  # of an equality: the first row of its postings, plus one
    bits: Int32s  # the row of its bits for a chunk of events, if `Dense.codes` has the code there
    marks: UInt16s  # whether the event at hand satisfies it: twice the event's number, one more if not; others are of earlier events


class Slots(NamedTuple):
    """What an event may have values in."""

    of: Int32s  # by field: its slot, plus one
    rows: Int64s  # [slots, Slot]
    seen: Float64s  # [slots] weighted events that have a value there
    drawn: Int64s  # [slots, VALUES] values of events that were counted; HIGHEST where there is none yet
    values: Int64s  # [slots, Value] of the event at hand


class Words(NamedTuple):
    """The clusters: blocks of words, in the sizes of `tocsin.structures.blocks`."""

    rows: Int32s
    free: Int64s  # [classes] the first free block, or -1
    top: Int64s  # [1] words ever in use


class LargeClusters(NamedTuple):
    """What large clusters have besides words: the first checks of all conjunctions next to each other, maybe in sections.

    The conjunctions of a section ask for similar values of two slots. It holds first checks, or the sections behind it, up to the
    one that is to go on with.
    """

    rows: Int64s  # [rows, Large]
    counters: Int64s  # [2] the first free row, or -1, and rows ever in use
    checks: Blocks  # the word of a first check, and where the conjunction is in the cluster in the upper half
    sections: Int64s  # [sections, Section]
    top: Int64s  # [1] sections ever in use


class Tables(NamedTuple):
    """Combinations of slots whose values together are the key of an access path."""

    slots: Int32s  # [tables, WIDEST]
    width: Int32s  # [tables] slots of each; 0 if it is free
    members: Int64s  # [tables] access paths
    correlation: Float64s  # [tables] the probability of its keys over that of independent values


class Grids(NamedTuple):
    """Cells of the values of a slot: intervals are put into the smallest cell that has all of them.

    A cell of level 0 lies between two bounds. One of level k spans 2**k of these, and they overlap by half.
    """

    rows: Int64s  # [grids, GridRow]
    levels: Int32s  # [grids, LEVELS] the slot of each level, plus one
    bounds: Blocks  # ascending, and the weighted events between each and the one before, as a float


class Room(NamedTuple):
    """What is known of the event at hand."""

    more: Int64s  # [pairs, Value] values beyond the first of a slot
    touched: Int32s  # slots with values
    reached: Int64s  # entries of access paths
    probes: Int64s  # [probes, 3] the keys of tables that are looked up, and their buckets
    used: Int64s  # [4] of each of these


class DenseCount(IntEnum):
    """Places in `Dense.used`."""

    ROWS = 0  # of bits
    HOT = 1  # places of the table in use
    COLUMNS = 2
    PAIRS = 3
    IS_ON = 4  # whether hot clusters are put off to the end of the chunk at hand
    FIRST = 5  # the first event of the chunk
    LEAST = 6  # events that a chunk must have for that
    IS_SHARED = 7  # whether several threads match: then nothing that others read may change,
    FAULT = 8  # and what stands in the way of a chunk is noted: a slot plus one, or the entry of an access path, plus one, less than 0


class Dense(NamedTuple):
    """Room to evaluate clusters for a chunk of events at once, a bit for each event.

    A cluster is *hot* if many events reach it.
    """

    hot: Int32s  # [HOT] the entries of hot access paths, plus one, by hash
    hits: UInt64s  # [HOT, CHUNK_WORDS] the events that reached each
    columns: Int64s  # [columns, CHUNK] the value of each event in a slot
    present: UInt64s  # [columns, CHUNK_WORDS] the events that have one
    slots: Int32s  # [columns]
    codes: Int32s  # [BIT_ROWS] the predicates whose bits are known
    bits: UInt64s  # [BIT_ROWS + 1, CHUNK_WORDS] the events that satisfy them; the last row is for others
    satisfied: UInt64s  # [CHUNK_WORDS] by the conjunction at hand
    pairs: Int64s  # matches: an event and a conjunction
    counts: Int64s  # [CHUNK] matches of each event
    used: Int64s  # [DenseCount]


class Review(NamedTuple):
    """What some events were checked against, for the next review."""

    suspects: Int32s  # entries of access paths
    drawn: Int32s  # conjunctions, each as often as it was checked


class State(NamedTuple):
    """All that a matcher holds."""

    store: ConjunctionStore  # its columns: `Stored`
    predicates: Predicates
    slots: Slots
    access: HashIndex  # keys: `Access`
    words: Words
    large: LargeClusters
    tables: Tables
    grids: Grids
    lists: Int64s  # [codes, ListRow]
    members: Blocks  # slots and keys, ascending
    links: Blocks
    postings: Blocks
    room: Room
    dense: Dense
    review: Review
    tops: Int64s  # [Top]
    totals: Float64s  # [Total]


class Stored(IntEnum):
    """The matcher's columns of `ConjunctionStore.rows`."""

    PATH = 1  # the entry of the access path, or -1
    OFFSET = 2  # where it begins in the cluster


class AdaptiveStateAddress(NamedTuple):
    """The address of a `State`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state() -> State:
    """Return an empty state, in which every event is counted."""
    words = Words(np.zeros(64, dtype=np.int32), *blocks.new_blocks(1)[1:])
    totals = np.zeros(len(Total))
    totals[Total.WEIGHT] = 1.0
    predicates = hash_index.new_hash_index(3, 1)
    hash_index.insert(predicates, TRUE << OP_BITS, 0, 0)
    access = hash_index.new_hash_index(2, len(Access) - 2)
    hash_index.insert(access, EVERY_EVENT, EVERY_EVENT, 0)
    return State(
        conjunction_store.new_store(1 + len(Stored)),
        Predicates(
            predicates,
            np.zeros(64, dtype=np.int32),
            np.zeros(64, dtype=np.int32),
            np.zeros(64, dtype=np.int32),
            np.zeros(64, dtype=np.uint16),
        ),
        Slots(
            np.zeros(64, dtype=np.int32),
            np.zeros((64, len(Slot)), dtype=np.int64),
            np.zeros(64),
            np.full((64, VALUES), HIGHEST, dtype=np.int64),
            absent(np.zeros((64, len(Value)), dtype=np.int64)),
        ),
        access,
        words,
        LargeClusters(
            np.zeros((4, len(Large)), dtype=np.int64),
            np.array([-1, 0]),
            blocks.new_blocks(1),
            np.zeros((4, len(Section)), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        ),
        Tables(
            np.zeros((8, WIDEST), dtype=np.int32),
            np.zeros(8, dtype=np.int32),
            np.zeros(8, dtype=np.int64),
            np.zeros(8),
        ),
        Grids(
            np.zeros((4, len(GridRow)), dtype=np.int64),
            np.zeros((4, LEVELS), dtype=np.int32),
            blocks.new_blocks(2),
        ),
        np.zeros((8, len(ListRow)), dtype=np.int64),
        blocks.new_blocks(2),
        blocks.new_blocks(len(Link)),
        blocks.new_blocks(len(Posting)),
        new_room(64),
        new_dense(),
        Review(np.zeros(SUSPECTS, dtype=np.int32), np.zeros(DRAWN, dtype=np.int32)),
        np.zeros(len(Top), dtype=np.int64),
        totals,
    )


def new_dense(hot: int = 1, rows: int = 0) -> Dense:
    """Return room for a chunk of events, without columns; there is little before some cluster is hot."""
    return Dense(
        np.zeros(hot, dtype=np.int32),
        np.zeros((hot, CHUNK_WORDS), dtype=np.uint64),
        np.zeros((1, CHUNK), dtype=np.int64),
        np.zeros((1, CHUNK_WORDS), dtype=np.uint64),
        np.zeros(1, dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
        np.zeros((rows + 1, CHUNK_WORDS), dtype=np.uint64),
        np.zeros(CHUNK_WORDS, dtype=np.uint64),
        np.zeros(1_024, dtype=np.int64),
        np.zeros(CHUNK, dtype=np.int64),
        np.zeros(len(DenseCount), dtype=np.int64),
    )


def with_dense(state: State) -> State:
    """Return the state with room for hot clusters."""
    if len(state.dense.hot) == HOT:
        return state
    return state._replace(dense=new_dense(HOT, BIT_ROWS)._replace(used=state.dense.used))


def with_more_columns(state: State) -> State:
    """Return the state with twice as many columns, or the first few."""
    count = min(max(2 * len(state.dense.slots), 16), MOST_COLUMNS)
    return state._replace(dense=grown(state.dense, ("columns", "present", "slots"), count))


def absent(values: Int64s) -> Int64s:
    """Return slots' values, all of them absent: no interval has them."""
    values[:, Value.LOW], values[:, Value.HIGH] = LOWEST, HIGHEST
    values[:, Value.CODE], values[:, Value.NEXT] = ABSENT, 0
    return values


def new_room(size: int) -> Room:
    """Return room for an event with up to `size` values, cells included."""
    return Room(
        np.zeros((size, len(Value)), dtype=np.int64),
        np.zeros(size, dtype=np.int32),
        np.zeros(4 * size, dtype=np.int64),
        np.zeros((4 * size, 3), dtype=np.int64),
        np.zeros(4, dtype=np.int64),
    )


def with_twice_the_room(state: State) -> State:
    """Return the state with twice as much room for what an event reaches."""
    return state._replace(room=new_room(2 * len(state.room.touched)))


def with_attributes(state: State, attributes: int) -> State:
    """Return the state with room for the fields of so many attributes."""
    if len(state.slots.of) >= attributes * FIELDS:
        return state  # the same one: its address need not be written again
    return state._replace(slots=grown(state.slots, ("of",), attributes * FIELDS))


def with_slots(state: State, more: int) -> State:
    """Return the state with room for so many more slots."""
    slots, before = state.slots, len(state.slots.values)
    slots = grown(slots, ("rows", "seen", "drawn", "values"), int(state.tops[Top.SLOTS]) + more)
    absent(slots.values[before:])
    slots.drawn[before:] = HIGHEST
    return state if slots is state.slots else state._replace(slots=slots)


def with_codes(state: State, more: int) -> State:
    """Return the state with room for so many more distinct predicates."""
    predicates = state.predicates
    entries = hash_index.with_room(predicates.entries, more)
    predicates = grown(
        predicates._replace(entries=entries), ("uses", "linked", "bits", "marks"), len(entries.chain)
    )
    return state._replace(predicates=predicates)


def with_access(state: State, more: int) -> State:
    """Return the state with room for so many more access paths."""
    return state._replace(access=hash_index.with_room(state.access, more))


def with_words(state: State, more: int) -> State:
    """Return the state with room for so many more words of clusters; raise `MatcherError` if that is more than can be numbered."""
    wanted = int(state.words.top[0]) + more
    if wanted > MOST_WORDS:
        raise MatcherError(
            f"`adaptive` holds {MOST_WORDS:,} words of conjunctions at most, and {wanted:,} are needed; use several matchers"
        )
    return state._replace(words=grown(state.words, ("rows",), wanted))


def with_lists(state: State, codes: int, members: int) -> State:
    """Return the state with room for lists up to a code, and for their members and links."""
    lists = state.lists
    if len(lists) < codes:
        lists = np.zeros((codes + codes // 2, lists.shape[1]), dtype=np.int64)
        lists[: len(state.lists)] = state.lists
    if len(lists) == len(state.lists) and not members:
        return state
    return state._replace(
        lists=lists,
        members=blocks.with_room(state.members, members),
        links=blocks.with_room(state.links, members),
    )


def with_postings(state: State, rows: int) -> State:
    """Return the state with room for so many more rows of postings."""
    return state._replace(postings=blocks.with_room(state.postings, rows))


def with_first_checks(state: State, checks: int, clusters: int) -> State:
    """Return the state with room for so many more first checks of large clusters, and for so many more of these."""
    large = state.large._replace(checks=blocks.with_room(state.large.checks, checks))
    large = grown(large, ("rows",), int(large.counters[1]) + clusters)
    return state._replace(large=large)


def with_new_memory(state: State, words: int, checks: int) -> State:
    """Return the state with empty memory for so many words and first checks; where they are now is known to the old state alone."""
    memory = grown(state.words._replace(rows=np.zeros(1, dtype=np.int32)), ("rows",), words)
    first = grown(state.large.checks._replace(rows=np.zeros((1, 1), dtype=np.int64)), ("rows",), checks)
    return state._replace(words=memory, large=state.large._replace(checks=first))


def with_table(state: State, slots: tuple[int, ...], correlation: float) -> State:
    """Return the state with one more table."""
    used = int(state.tops[Top.TABLES])
    free = np.flatnonzero(state.tables.width[:used] == 0)
    tables = grown(state.tables, ("slots", "width", "members", "correlation"), used + 1)
    table = int(free[0]) if len(free) else used
    tables.slots[table, : len(slots)] = slots
    tables.width[table], tables.members[table], tables.correlation[table] = len(slots), 0, correlation
    state.tops[Top.TABLES] = max(used, table + 1)
    return state._replace(tables=tables)
