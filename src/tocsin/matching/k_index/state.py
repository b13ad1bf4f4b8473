"""The arrays that k-index is made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.conjunction_store.state import (
    ConjunctionStore,
    Expressions,
    new_store,
    record_rows,
    with_room,
)
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures import blocks, hash_index, sorted_runs
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.sorted_runs import SortedRuns

LEAF: Final = 256  # entries in the largest block of a posting list; a longer list has several
MOST_PREDICATES: Final = 1 << 16  # per expression

# A key is a slot, and one or two integers. A slot is a field, and below it a kind and a number: a second predicate of an
# expression on the same attribute has keys with another number, so that one value cannot count for both.
OCCURRENCE_BITS: Final = 20
KIND_BITS: Final = 4
VALUE: Final = 0  # the attribute has this value
ANY_VALUE: Final = 1  # it has a value of this kind
# Kinds 2 to 6 are the operators of `Op` from LT to BETWEEN: a range that holds.
ALWAYS: Final = 7  # every event has this key: the paper's list Z

# The size word of a posting list: the size K, flags, and the clause of its entries. Above it is the class of its block.
SIZE_BITS: Final = 20
CLAUSAL: Final = 1 << 20  # its expressions have clauses
SILENT: Final = 1 << 21  # its entries do not count for a ranking
CLAUSE_SHIFT: Final = 22
CLASS_SHIFT: Final = 44
NO_CLAUSE: Final = (1 << 20) - 1

NO_BLOCK: Final = 63  # the class of a missing block
EXPANDED: Final = 1  # a flag of a key: the range is posted under each of its values, too

# Flags of a field
FRACTIONAL: Final = 1  # some constant is no whole number
WIDE: Final = 2  # its constants lie too far apart for ranges to be expanded

# Flags of an expression
HAS_RESIDUAL: Final = 1
LOOSE: Final = 2  # some clause is satisfied by an absent attribute
WEIGHED: Final = 4  # some predicate has a weight other than 1

_BY_SIZE_OR_CLAUSE: Final = (
    "head",
    "counts",
    "counter",
    "score",
)  # arrays of `Lists`; the others are by list


class Key(IntEnum):
    """Columns of `Directory.keys`."""

    SLOT = 0
    LOW = 1
    HIGH = 2
    HEADERS = (
        3  # its lists: the first header, their number above 32 bits, and above 56 the class of their block
    )


class KeyRow(IntEnum):
    """Columns of `Directory.key_rows`."""

    FLAGS = 0
    NEXT_RANGE = 1  # the next closed range with the same lower bound, or -1


class Lane(IntEnum):
    """Columns of `Directory.lanes`: the ranges of one slot, in the order of their bounds."""

    SLOT = 0
    RUN = 1
    NEXT = 2  # the next of the same field, or of the free list
    KEYS = 3
    PLAIN = 4  # keys that are not expanded


class Expression(IntEnum):
    """Columns of `ExpressionTable.rows`."""

    RECORD = 0  # the first row of its record; of a free number, the next free one
    LENGTH = 1  # the rows of its record; negative for a CNF
    FIRST_MEMBER = 2  # or -1 if the number is free
    TWIN = 3  # the next expression with the same digest
    CLAUSES = 4  # clauses with lists, or 0 for a conjunction
    FLAGS = 5
    PREDICATES = 6


class Member(IntEnum):
    """This matcher's columns of `State.store.rows`: a number there is a subscription's share in an expression."""

    EXPRESSION = 1
    NEXT = 2  # of the same expression
    PREVIOUS = 3


class Entry(IntEnum):
    """Columns of `Draft.rows`."""

    SLOT = 0
    LOW = 1
    HIGH = 2
    SIZE = 3
    WORD = 4
    EXPANDING = 5


class PostedCount(IntEnum):
    """Entries of `Posted.counts`."""

    LISTS = 0
    MOST_BLOCKS = 1  # of the longest list ever


class DirectoryTop(IntEnum):
    """Entries of `Directory.tops`."""

    LANES = 0
    FREE_LANE = 1
    MOST_HEADERS = 2  # that a key ever had
    ENTRIES = 3


class TableTop(IntEnum):
    """Entries of `ExpressionTable.tops`."""

    EXPRESSIONS = 0
    FREE_EXPRESSION = 1
    LIVE_EXPRESSIONS = 2
    RESIDUAL_EXPRESSIONS = 3  # expressions with residual predicates


class DraftTop(IntEnum):
    """Entries of `Draft.tops`."""

    DRAFTED = 0  # entries drafted
    RESUME = 1  # entries of those that are placed
    NEEDED = 2  # entries of the expression that did not fit
    STAMP = 3  # the current expression, clause or event
    MOST_SIZE = 4  # that an expression ever had
    MOST_CLAUSES = 5


class Setting(IntEnum):
    """Entries of `Draft.settings`."""

    EXPANSION = 0  # the widest range that is expanded into values
    ABSENCE = 1  # whether an absent attribute satisfies a negation


class Total(IntEnum):
    """Entries of `State.totals`, counted since the matcher was made."""

    SEEN = 0  # events matched
    LOOKED = 1  # lists merged
    STEPS = 2  # cursor movements
    CANDIDATES = 3  # expressions that enough lists contain
    PRUNED = 4  # sizes and candidates that a ranking skipped


class Words(NamedTuple):
    """Blocks of posting entries, in the sizes of `tocsin.structures.blocks`."""

    words: NDArray[
        np.int32
    ]  # an expression's number, and in the lowest bit whether the entry holds or refuses
    free: NDArray[np.int64]  # [64] by class: the first free block, or -1
    top: NDArray[np.int64]  # [1] words ever used


class Fields(NamedTuple):
    """By field."""

    low: NDArray[
        np.int64
    ]  # the domain over which open ranges are expanded; empty while `low` is above `high`
    high: NDArray[np.int64]
    wanted_low: NDArray[np.int64]  # the domain that it grows to
    wanted_high: NDArray[np.int64]
    flags: NDArray[np.uint8]
    lane: NDArray[np.int32]  # its first lane, or -1
    values: NDArray[np.int32]  # keys of its values
    runs: NDArray[np.int32]  # keys that ask for any value
    occurrences: NDArray[np.int32]  # numbers that its slots may have


class Lists(NamedTuple):
    """The current event's keys, and their lists by size."""

    key: NDArray[np.int64]  # the keys
    row: NDArray[np.int64]  # headers of lists
    source: NDArray[np.int64]  # the key of each list, as a position in `key`
    following: NDArray[np.int64]  # the next list of the same size, or -1
    packed: NDArray[np.uint64]  # cursors of the lists that are merged: entry and list, ascending
    which: NDArray[np.int64]  # by merged list: its position in `row`
    at: NDArray[np.int64]  # by merged list: its current entry,
    end: NDArray[np.int64]  # and the end of its block
    shelf: NDArray[np.int64]  # by merged list: the directory row of its block, and the last one
    last_shelf: NDArray[np.int64]
    bound: NDArray[np.float64]  # by merged list: the highest score of an entry
    head: NDArray[np.int64]  # [sizes] the first list of a size, or -1
    counts: NDArray[np.int64]  # [sizes]
    counter: NDArray[np.int32]  # [clauses]
    score: NDArray[np.float64]  # [clauses]


class Posted(NamedTuple):
    """Posting lists by header."""

    headers: Blocks  # rows: a list's first entry, above 32 bits the number of entries; its size word
    limits: NDArray[np.float64]  # [headers] the highest weight in the list; empty while all weights are 1
    entries: Words
    shelves: Blocks  # directories: their number of blocks and class; then per block first entry, and start and count
    counts: NDArray[np.int64]  # [PostedCount]


class Directory(NamedTuple):
    """Keys, and where their lists are."""

    keys: HashIndex  # [Key]
    key_rows: NDArray[np.int32]  # [keys, KeyRow]
    posted: Posted
    lanes: NDArray[np.int64]  # [lanes, Lane]
    runs: SortedRuns
    fields: Fields
    refusals: NDArray[np.int64]  # [sizes] entries that refuse an expression
    tops: NDArray[np.int64]  # [DirectoryTop]


class ExpressionTable(NamedTuple):
    """Expressions, interned: one that several subscriptions have is stored once."""

    rows: NDArray[np.int32]  # [expressions, Expression]
    digests: HashIndex  # a digest, and beside it the first expression that has it
    records: Blocks  # rows: a key, and a tag
    scratch: NDArray[np.int64]  # [rows, 2] the record of the current expression
    tops: NDArray[np.int64]  # [TableTop]


class Draft(NamedTuple):
    """Entries of the current expressions."""

    rows: NDArray[np.int64]  # [entries, Entry]
    weights: NDArray[np.float64]  # [entries]
    stamp: NDArray[np.int64]  # by attribute: the last expression, clause or event that had it,
    spoken: NDArray[np.int32]  # by attribute: and in how many predicates
    settings: NDArray[np.int64]  # [Setting]
    tops: NDArray[np.int64]  # [DraftTop]


class State(NamedTuple):
    """All arrays. Only the holder of the matcher's lock may write."""

    store: ConjunctionStore
    directory: Directory
    table: ExpressionTable
    draft: Draft
    lists: Lists
    weight: NDArray[np.float64]  # by attribute: its weight in the current event
    totals: NDArray[np.float64]  # [Total]


def new_state(expansion: int, *, absence: bool) -> State:
    """Return the arrays of an empty index."""
    posted = Posted(
        blocks.new_blocks(2),
        np.empty(0, dtype=np.float64),
        Words(np.zeros(1024, np.int32), np.full(64, -1, np.int64), np.zeros(1, np.int64)),
        blocks.new_blocks(2),
        np.zeros(len(PostedCount), dtype=np.int64),
    )
    directory = Directory(
        hash_index.new_hash_index(3, 1),
        np.zeros((64, len(KeyRow)), dtype=np.int32),
        posted,
        np.zeros((64, len(Lane)), dtype=np.int64),
        sorted_runs.new_sorted_runs(),
        _new_fields(64),
        np.zeros(64, dtype=np.int64),
        np.array([0, -1, 0, 0], dtype=np.int64),
    )
    table = ExpressionTable(
        np.zeros((64, len(Expression)), dtype=np.int32),
        hash_index.new_hash_index(1, 1),
        blocks.new_blocks(2),
        np.zeros((64, 2), dtype=np.int64),
        np.array([0, -1, 0, 0], dtype=np.int64),
    )
    draft = Draft(
        np.zeros((64, len(Entry)), dtype=np.int64),
        np.zeros(64, dtype=np.float64),
        np.zeros(8, dtype=np.int64),
        np.zeros(8, dtype=np.int32),
        np.array([expansion, absence], dtype=np.int64),
        np.zeros(len(DraftTop), dtype=np.int64),
    )
    store, totals = new_store(len(Member) + 1), np.zeros(len(Total), np.float64)
    return State(store, directory, table, draft, _new_lists(256), np.ones(8, np.float64), totals)


def _new_fields(count: int) -> Fields:
    types: dict[str, Any] = dict.fromkeys(("low", "high", "wanted_low", "wanted_high"), np.int64) | {
        "flags": np.uint8
    }
    fields = Fields(*(np.zeros(count, types.get(name, np.int32)) for name in Fields._fields))
    _clear_fields(fields, 0)
    return fields


def _clear_fields(fields: Fields, begin: int) -> None:
    """Give fields from `begin` on no domain and no lane."""
    for low, high in ((fields.low, fields.high), (fields.wanted_low, fields.wanted_high)):
        low[begin:], high[begin:] = 0, -1
    fields.lane[begin:] = -1


def _new_lists(count: int) -> Lists:
    lengths = dict.fromkeys(_BY_SIZE_OR_CLAUSE, 64)
    types: dict[str, Any] = {
        "packed": np.uint64,
        "bound": np.float64,
        "counter": np.int32,
        "score": np.float64,
    }
    return Lists(*(np.zeros(lengths.get(name, count), types.get(name, np.int64)) for name in Lists._fields))


def with_attributes(state: State, count: int) -> State:
    """Return the state with room for so many attributes."""
    old = len(state.weight)
    if count <= old:
        return state
    draft = grown(state.draft, ("stamp", "spoken"), count)
    state = grown(state._replace(draft=draft), ("weight",), count)
    state.weight[old:] = 1.0
    known = len(state.directory.fields.low)
    fields = grown(state.directory.fields, Fields._fields, len(draft.stamp) * FIELDS)
    _clear_fields(fields, known)
    return state._replace(directory=state.directory._replace(fields=fields))


def with_expressions(state: State, batch: Expressions) -> State:
    """Return the state with room to store more expressions."""
    table, count = state.table, len(batch.numbers)
    table = table._replace(
        digests=hash_index.with_room(table.digests, count),
        records=blocks.with_room(table.records, record_rows(batch)),
    )
    table = grown(table, ("rows",), int(table.tops[TableTop.EXPRESSIONS]) + count)
    # A predicate takes up to three rows, and a clause one.
    most = 4 * int(np.diff(batch.bounds[batch.offsets]).max()) + 1
    return state._replace(store=with_room(state.store, count), table=grown(table, ("scratch",), most))


def with_entries(state: State, entries: int) -> State:
    """Return the state with room to place one more entry, and about as many as given."""
    directory, posted = state.directory, state.directory.posted
    headers = 4 * int(directory.tops[DirectoryTop.MOST_HEADERS]) + 8 + entries // 2
    posted = posted._replace(
        headers=blocks.with_room(posted.headers, headers),
        shelves=blocks.with_room(posted.shelves, 4 * int(posted.counts[PostedCount.MOST_BLOCKS]) + 16),
        entries=grown(posted.entries, ("words",), int(posted.entries.top[0]) + 4 * LEAF + entries),
    )
    if len(posted.limits):
        posted = grown(posted, ("limits",), len(posted.headers.rows))
    keys = hash_index.with_room(directory.keys, 2 + entries // 8)
    directory = directory._replace(keys=keys, posted=posted, runs=sorted_runs.with_room(directory.runs, 16))
    directory = grown(directory, ("key_rows",), len(keys.chain))
    lanes = int(directory.tops[DirectoryTop.LANES]) + 2 + entries // 256
    return state._replace(directory=grown(directory, ("lanes",), lanes))


def with_limits(state: State) -> State:
    """Return the state with a limit for each list's weights; all weights so far are 1."""
    posted = state.directory.posted
    if len(posted.limits):
        return state
    posted = posted._replace(limits=np.ones(len(posted.headers.rows), dtype=np.float64))
    return state._replace(directory=state.directory._replace(posted=posted))


def with_draft(state: State, entries: int) -> State:
    """Return the state with room for so many drafted entries."""
    return state._replace(draft=grown(state.draft, ("rows", "weights"), entries))


def with_sizes(state: State, size: int, clauses: int) -> State:
    """Return the state with room for expressions of such a size, and of so many clauses."""
    sizes = 2 * size + 4
    directory = grown(state.directory, ("refusals",), sizes)
    lists = grown(state.lists, ("head", "counts"), sizes)
    return state._replace(directory=directory, lists=grown(lists, ("counter", "score"), clauses + 1))


def with_lists(state: State) -> State:
    """Return the state with twice the room for an event's keys and lists."""
    columns = tuple(name for name in Lists._fields if name not in _BY_SIZE_OR_CLAUSE)
    return state._replace(lists=grown(state.lists, columns, 2 * len(state.lists.key)))
