"""The arrays that k-index is made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures import blocks, hash_index, sorted_runs
from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt8s, UInt64s, zeros
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

# Arrays of `Lists`; the others are by list
_BY_SIZE_OR_CLAUSE: Final = ("head", "counts", "counter", "score")


class Key(IntEnum):
    """Columns of `Directory.keys`."""

    SLOT = 0
    LOW = 1
    HIGH = 2
    # Its lists: the first header, their number above 32 bits, and above 56 the class of their block
    HEADERS = 3


class KeyRow(IntEnum):
    """Columns of `Directory.key_rows`."""

    FLAGS = 0
    NEXT_RANGE = 1  # the next closed range with the same lower bound, or -1


class RangeList(IntEnum):
    """Columns of `Directory.range_lists`: the ranges of one slot, in the order of their bounds."""

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

    RANGE_LISTS = 0
    FREE_RANGE_LIST = 1
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

    # An expression's number, and in the lowest bit whether the entry holds or refuses
    words: Int32s
    free: Int64s  # [64] by class: the first free block, or -1
    top: Int64s  # [1] words ever used


class Fields(NamedTuple):
    """By field."""

    # The domain over which open ranges are expanded; empty while `low` is above `high`
    low: Int64s
    high: Int64s
    wanted_low: Int64s  # the domain that it grows to
    wanted_high: Int64s
    flags: UInt8s
    range_list: Int32s  # its first list of ranges, or -1
    values: Int32s  # keys of its values
    runs: Int32s  # keys that ask for any value
    occurrences: Int32s  # numbers that its slots may have


class Lists(NamedTuple):
    """The current event's keys, and their lists by size."""

    key: Int64s  # the keys
    row: Int64s  # headers of lists
    source: Int64s  # the key of each list, as a position in `key`
    following: Int64s  # the next list of the same size, or -1
    packed: UInt64s  # cursors of the lists that are merged: entry and list, ascending
    which: Int64s  # by merged list: its position in `row`
    at: Int64s  # by merged list: its current entry,
    end: Int64s  # and the end of its block
    shelf: Int64s  # by merged list: the directory row of its block, and the last one
    last_shelf: Int64s
    bound: Float64s  # by merged list: the highest score of an entry
    head: Int64s  # [sizes] the first list of a size, or -1
    counts: Int64s  # [sizes]
    counter: Int32s  # [clauses]
    score: Float64s  # [clauses]


class Posted(NamedTuple):
    """Posting lists by header."""

    headers: Blocks  # rows: a list's first entry, above 32 bits the number of entries; its size word
    limits: Float64s  # [headers] the highest weight in the list; empty while all weights are 1
    entries: Words
    shelves: Blocks  # directories: their number of blocks and class; then per block first entry, and start and count
    counts: Int64s  # [PostedCount]


class Directory(NamedTuple):
    """Keys, and where their lists are."""

    keys: HashIndex  # [Key]
    key_rows: Int32s  # [keys, KeyRow]
    posted: Posted
    range_lists: Int64s  # [range_lists, RangeList]
    runs: SortedRuns
    fields: Fields
    refusals: Int64s  # [sizes] entries that refuse an expression
    tops: Int64s  # [DirectoryTop]


class ExpressionTable(NamedTuple):
    """Expressions, interned: one that several subscriptions have is stored once."""

    rows: Int32s  # [expressions, Expression]
    digests: HashIndex  # a digest, and beside it the first expression that has it
    records: Blocks  # rows: a key, and a tag
    scratch: Int64s  # [rows, 2] the record of the current expression
    tops: Int64s  # [TableTop]


class Draft(NamedTuple):
    """Entries of the current expressions."""

    rows: Int64s  # [entries, Entry]
    weights: Float64s  # [entries]
    stamp: Int64s  # by attribute: the last expression, clause or event that had it,
    spoken: Int32s  # by attribute: and in how many predicates
    settings: Int64s  # [Setting]
    tops: Int64s  # [DraftTop]


class State(NamedTuple):
    """All arrays. Only the holder of the matcher's lock may write."""

    store: ConjunctionStore
    directory: Directory
    table: ExpressionTable
    draft: Draft
    lists: Lists
    weight: Float64s  # by attribute: its weight in the current event
    totals: Float64s  # [Total]


class KIndexStateAddress(NamedTuple):
    """The address of a `State`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state(expansion: int, *, absence: bool) -> State:
    """Return the arrays of an empty index."""
    headers, shelves = blocks.new_blocks(2), blocks.new_blocks(2)
    words = Words(np.zeros(1024, np.int32), np.full(64, -1, np.int64), np.zeros(1, np.int64))
    counts = np.zeros(len(PostedCount), dtype=np.int64)
    directory = zeros(
        Directory,
        64,
        keys=hash_index.new_hash_index(3, 1),
        key_rows=len(KeyRow),
        posted=Posted(headers, np.empty(0, dtype=np.float64), words, shelves, counts),
        range_lists=len(RangeList),
        runs=sorted_runs.new_sorted_runs(),
        fields=zeros(Fields, 64 * FIELDS),
        tops=np.array([0, -1, 0, 0], dtype=np.int64),
    )
    _clear_fields(directory.fields, 0)
    table = zeros(
        ExpressionTable,
        64,
        rows=len(Expression),
        digests=hash_index.new_hash_index(1, 1),
        records=blocks.new_blocks(2),
        scratch=2,
        tops=np.array([0, -1, 0, 0], dtype=np.int64),
    )
    settings = np.array([expansion, absence], dtype=np.int64)
    draft = zeros(Draft, 64, rows=len(Entry), settings=settings, tops=np.zeros(len(DraftTop), dtype=np.int64))
    store, totals = conjunction_store.new_store(len(Member) + 1), np.zeros(len(Total), np.float64)
    return State(store, directory, table, draft, zeros(Lists, 256), np.ones(64, np.float64), totals)


def _clear_fields(fields: Fields, begin: int) -> None:
    """Give fields from `begin` on no domain and no list of ranges."""
    for low, high in ((fields.low, fields.high), (fields.wanted_low, fields.wanted_high)):
        low[begin:], high[begin:] = 0, -1
    fields.range_list[begin:] = -1


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
        records=blocks.with_room(table.records, conjunction_store.record_rows(batch)),
    )
    table = grown(table, ("rows",), int(table.tops[TableTop.EXPRESSIONS]) + count)
    # A predicate takes up to three rows, and a clause one.
    most = 4 * int(np.diff(batch.bounds[batch.offsets]).max()) + 1
    return state._replace(
        store=conjunction_store.with_room(state.store, count), table=grown(table, ("scratch",), most)
    )


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
    range_lists = int(directory.tops[DirectoryTop.RANGE_LISTS]) + 2 + entries // 256
    return state._replace(directory=grown(directory, ("range_lists",), range_lists))


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
