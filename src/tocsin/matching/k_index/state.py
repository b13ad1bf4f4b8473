"""The arrays that k-index is made of."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.structures import blocks, hash_index, sorted_runs
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.sorted_runs import SortedRuns

LEAF: Final = 256  # entries in the largest block of a posting list; a longer list has several
MOST_PREDICATES: Final = 1 << 16  # in a form

# A key is a place, and one or two integers. Its place is a field, and below it a kind and a number: of two
# predicates of one form on one attribute, the second looks at keys of its own.
DUP_BITS: Final = 20
KIND_BITS: Final = 4
VALUE: Final = 0  # the attribute has this value
RUN: Final = 1  # it has a value of this kind
# 2 to 6 are the operators of `Op` from LT to BETWEEN: a range that holds
NOTHING: Final = 7  # what is always there: the paper's list Z

# A posting list's size word: the size K, whether it is of clause forms, whether its entries count for a ranking,
# and which clause they are in. Above it stands the class of the list's block.
SIZE_BITS: Final = 20
CLAUSAL: Final = 1 << 20
SILENT: Final = 1 << 21
CLAUSE_SHIFT: Final = 22
CLASS_SHIFT: Final = 44
NO_CLAUSE: Final = (1 << 20) - 1

# Columns of a key's row, behind the three integers in the hash index
HEADERS: Final = (
    3  # its lists: the first header, their number above 32 bits, and above 56 the class of the block
)
NO_BLOCK: Final = 63  # the class of a block that is not there yet

# Columns of `key_rows`
FLAGS: Final = 0
NEXT_RANGE: Final = 1  # the next closed range with the same lower bound, or -1
EXPANDED: Final = 1  # a flag: the range is posted under each of its values, too

# Columns of a lane's row: the ranges of one field, kind and number
LANE_PLACE: Final = 0
LANE_RUN: Final = 1
LANE_NEXT: Final = 2  # the next of the same field, or of the free ones
LANE_KEYS: Final = 3
LANE_PLAIN: Final = 4  # those that are not expanded

# Flags of a field
FRACTIONAL: Final = 1  # some constant is no whole number
WIDE: Final = 2  # its constants lie too far apart for ranges to be expanded

# Columns of a form's row
STORE: Final = 0  # the first record of what it says; of a free number, the next free one
RECORDS: Final = 1
FIRST_MEMBER: Final = 2
TWIN: Final = 3  # the next form with the same digest
CLAUSES: Final = 4  # clauses with lists, or 0 for a conjunction
FORM_FLAGS: Final = 5
PREDICATE_COUNT: Final = 6

ASKED: Final = 1  # Python has the last word
LOOSE: Final = 2  # some clause is satisfied by an absent attribute
WEIGHED: Final = 4  # some predicate has a weight other than 1
IN_CLAUSES: Final = 8  # it was given in clauses

# Columns of a member's row: that a subscription has a form; the first is SIBLING
FORM: Final = 1
NEXT_MEMBER: Final = 2  # of the same form
PREVIOUS_MEMBER: Final = 3

# Operators of records that are no predicate
WEIGHT_RECORD: Final = 13  # the weight of the predicate before
HIGH: Final = 14  # the upper bound of the predicate before
CLAUSE: Final = 15  # so many predicates follow that are one clause

# Columns of a drafted entry
PLACE: Final = 0
LOW: Final = 1
HIGHEST: Final = 2
SIZE: Final = 3
WORD: Final = 4
EXPANDING: Final = 5

# Places in `Posted.counts`
LISTS: Final = 0
MOST_LEAVES: Final = 1  # blocks that a list ever had

# Places in `Directory.tops`
TOP_LANE: Final = 0
FREE_LANE: Final = 1
MOST_HEADERS: Final = 2  # that a key ever had
ENTRIES: Final = 3

# Places in `Book.tops`
TOP_FORM: Final = 0
FREE_FORM: Final = 1
LIVE_FORMS: Final = 2
TOP_MEMBER: Final = 3
FREE_MEMBER: Final = 4
LIVE_MEMBERS: Final = 5
PREDICATES: Final = 6
ASKED_FORMS: Final = 7  # of which Python has the last word

# Places in `Draft.tops`
DRAFTED: Final = 0  # entries of the forms at hand
RESUME: Final = 1  # how many of them are placed
NEEDED: Final = 2  # entries of the form that there was no room for
STAMP: Final = 3  # the form, clause or event at hand
MOST_SIZE: Final = 4  # that a form ever had
MOST_CLAUSES: Final = 5

# Places in `Draft.settings`
EXPANSION: Final = 0  # the widest range that is expanded into values
ABSENCE: Final = 1  # whether an absent attribute satisfies what is negated

# Places in `State.totals`
SEEN: Final = 0  # events matched, ever
LOOKED: Final = 1  # lists that were gone through, ever
STEPS: Final = 2  # entries that lists were brought to, ever
CANDIDATES: Final = 3  # forms of which enough was found to be looked at, ever
PRUNED: Final = 4  # sizes and candidates that a ranking passed over, ever


class Words(NamedTuple):
    """Blocks of posting entries, in the sizes of `tocsin.structures.blocks`."""

    words: NDArray[np.int32]  # a form's number, and in the lowest bit whether it is an `in`
    free: NDArray[np.int64]  # [64] by class: the first free block, or -1
    top: NDArray[np.int64]  # [1] words ever used


class Fields(NamedTuple):
    """By field."""

    low: NDArray[np.int64]  # the domain over which open ranges are expanded; none while it is above
    high: NDArray[np.int64]
    wanted_low: NDArray[np.int64]  # the domain that it is to become
    wanted_high: NDArray[np.int64]
    flags: NDArray[np.uint8]
    lane: NDArray[np.int32]  # its first lane, or -1
    values: NDArray[np.int32]  # keys of its values
    runs: NDArray[np.int32]  # keys that ask for any value
    dups: NDArray[np.int32]  # numbers that its keys may have


class Lists(NamedTuple):
    """The event at hand: the keys that it has, and their lists by size. All have one length but the last four."""

    key: NDArray[np.int64]  # the keys
    row: NDArray[np.int64]  # headers of lists
    source: NDArray[np.int64]  # which of the keys each is of
    following: NDArray[np.int64]  # the next of the same size, or -1
    packed: NDArray[np.uint64]  # of the lists that are gone through: entry and list, ascending
    which: NDArray[np.int64]  # by list: its place in `row`
    at: NDArray[np.int64]  # by list: where it has come to,
    end: NDArray[np.int64]  # and where its block ends
    shelf: NDArray[np.int64]  # its block in the directory, and the last one there
    last_shelf: NDArray[np.int64]
    bound: NDArray[np.float64]  # by list: the most that one entry of it scores
    head: NDArray[np.int64]  # [sizes] the first list of a size, or -1
    counts: NDArray[np.int64]  # [sizes]
    counter: NDArray[np.int32]  # [clauses]
    score: NDArray[np.float64]  # [clauses]


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
    weights: NDArray[np.float64]  # [predicates], or none if all are 1
    which: Keys  # int64[predicates] for `in` and `not in`
    starts: Keys  # int64[lists + 1]
    fields: Keys  # int64[members]
    keys: Keys  # int64[members]


class Posted(NamedTuple):
    """Posting lists by header."""

    headers: Blocks  # rows: a list's first entry and above 32 bits their number; its size word
    limits: NDArray[
        np.float64
    ]  # by header: no entry of the list weighs more. None until one weighs other than 1
    entries: Words
    shelves: (
        Blocks  # of lists of several blocks: how many, and the class; then first entry, and block and count
    )
    counts: NDArray[np.int64]  # [2]


class Directory(NamedTuple):
    """Keys, and where their lists are."""

    keys: HashIndex  # place, low, high, and beside them the key's headers
    key_rows: NDArray[np.int32]  # [keys, 2]
    posted: Posted
    lanes: NDArray[np.int64]  # [lanes, 5]
    runs: SortedRuns
    fields: Fields
    refusals: NDArray[np.int64]  # [sizes] entries that refuse a form
    tops: NDArray[np.int64]  # [4]


class Book(NamedTuple):
    """What forms say, and whose they are."""

    forms: NDArray[np.int32]  # [forms, 7]
    digests: HashIndex  # a digest, and beside it the first form that has it
    members: NDArray[np.int32]  # [members, 4]
    owner: NDArray[np.int32]  # [members] entry of its subscription's id
    ids: HashIndex  # keys: a subscription's id
    first: NDArray[np.int32]  # by entry of `ids`: its newest member
    store: Blocks  # rows: a key, and a tag
    records: NDArray[np.int64]  # [records, 2] of the form at hand
    tops: NDArray[np.int64]  # [8]


class Draft(NamedTuple):
    """The forms at hand: their entries."""

    rows: NDArray[np.int64]  # [entries, 6]
    weights: NDArray[np.float64]  # [entries]
    stamp: NDArray[np.int64]  # by attribute: the form, clause or event that spoke of it last,
    spoken: NDArray[np.int32]  # by attribute: and in how many predicates
    settings: NDArray[np.int64]  # [2]
    tops: NDArray[np.int64]  # [6]


class State(NamedTuple):
    """All arrays. Only who holds the matcher's lock may write."""

    directory: Directory
    book: Book
    draft: Draft
    lists: Lists
    weight: NDArray[np.float64]  # by attribute: what the event at hand gives it
    totals: NDArray[np.float64]  # [5]


def new_state(expansion: int, *, absence: bool) -> State:
    """Return the arrays of an empty index."""
    posted = Posted(
        blocks.new_blocks(2),
        np.empty(0, dtype=np.float64),
        Words(np.zeros(1024, np.int32), np.full(64, -1, np.int64), np.zeros(1, np.int64)),
        blocks.new_blocks(2),
        np.zeros(2, dtype=np.int64),
    )
    directory = Directory(
        hash_index.new_hash_index(3, 1),
        np.zeros((64, 2), dtype=np.int32),
        posted,
        np.zeros((64, 5), dtype=np.int64),
        sorted_runs.new_sorted_runs(),
        _no_fields(64),
        np.zeros(64, dtype=np.int64),
        np.array([0, -1, 0, 0], dtype=np.int64),
    )
    book = Book(
        np.zeros((64, 7), dtype=np.int32),
        hash_index.new_hash_index(1, 1),
        np.zeros((64, 4), dtype=np.int32),
        np.zeros(64, dtype=np.int32),
        hash_index.new_hash_index(1),
        np.zeros(64, dtype=np.int32),
        blocks.new_blocks(2),
        np.zeros((64, 2), dtype=np.int64),
        np.array([0, -1, 0, 0, -1, 0, 0, 0], dtype=np.int64),
    )
    draft = Draft(
        np.zeros((64, 6), dtype=np.int64),
        np.zeros(64, dtype=np.float64),
        np.zeros(8, dtype=np.int64),
        np.zeros(8, dtype=np.int32),
        np.array([expansion, absence], dtype=np.int64),
        np.zeros(6, dtype=np.int64),
    )
    return State(directory, book, draft, _new_lists(256), np.ones(8, np.float64), np.zeros(5, np.float64))


def _no_fields(count: int) -> Fields:
    def wide() -> NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)

    def narrow() -> NDArray[np.int32]:
        return np.zeros(count, dtype=np.int32)

    flags = np.zeros(count, dtype=np.uint8)
    fields = Fields(wide(), wide(), wide(), wide(), flags, narrow(), narrow(), narrow(), narrow())
    _rest(fields, 0)
    return fields


def _rest(fields: Fields, begin: int) -> None:
    """Let fields from `begin` on have no domain and no lane."""
    for low, high in ((fields.low, fields.high), (fields.wanted_low, fields.wanted_high)):
        low[begin:], high[begin:] = 0, -1
    fields.lane[begin:] = -1


def _new_lists(count: int) -> Lists:
    def keys(length: int = count) -> NDArray[np.int64]:
        return np.zeros(length, dtype=np.int64)

    return Lists(
        keys(),
        keys(),
        keys(),
        keys(),
        np.zeros(count, dtype=np.uint64),
        keys(),
        keys(),
        keys(),
        keys(),
        keys(),
        np.zeros(count, dtype=np.float64),
        keys(64),
        keys(64),
        np.zeros(64, dtype=np.int32),
        np.zeros(64, dtype=np.float64),
    )


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
    _rest(fields, known)
    return state._replace(directory=state.directory._replace(fields=fields))


def with_forms(state: State, forms: int, records: int, most: int) -> State:
    """Return the state with room for more forms of so many records in all, of which one has the `most`."""
    book = state.book
    ids = hash_index.with_room(book.ids, forms)
    digests = hash_index.with_room(book.digests, forms)
    book = book._replace(ids=ids, digests=digests, store=blocks.with_room(book.store, records))
    book = grown(book, ("first",), len(ids.chain))
    book = grown(book, ("forms",), int(book.tops[TOP_FORM]) + forms)
    book = grown(book, ("records",), most)
    return state._replace(book=grown(book, ("members", "owner"), int(book.tops[TOP_MEMBER]) + forms))


def with_entries(state: State, entries: int) -> State:
    """Return the state with room to place one more entry, and about as many as are said."""
    directory, posted = state.directory, state.directory.posted
    headers = 4 * int(directory.tops[MOST_HEADERS]) + 8 + entries // 2
    posted = posted._replace(
        headers=blocks.with_room(posted.headers, headers),
        shelves=blocks.with_room(posted.shelves, 4 * int(posted.counts[MOST_LEAVES]) + 16),
        entries=grown(posted.entries, ("words",), int(posted.entries.top[0]) + 4 * LEAF + entries),
    )
    if len(posted.limits):
        posted = grown(posted, ("limits",), len(posted.headers.rows))
    keys = hash_index.with_room(directory.keys, 2 + entries // 8)
    directory = directory._replace(keys=keys, posted=posted, runs=sorted_runs.with_room(directory.runs, 16))
    directory = grown(directory, ("key_rows",), len(keys.chain))
    lanes = int(directory.tops[TOP_LANE]) + 2 + entries // 256
    return state._replace(directory=grown(directory, ("lanes",), lanes))


def with_limits(state: State) -> State:
    """Return the state with a limit for each list's weights; all that is there weighs 1."""
    posted = state.directory.posted
    if len(posted.limits):
        return state
    posted = posted._replace(limits=np.ones(len(posted.headers.rows), dtype=np.float64))
    return state._replace(directory=state.directory._replace(posted=posted))


def with_draft(state: State, entries: int) -> State:
    """Return the state with room for so many drafted entries."""
    return state._replace(draft=grown(state.draft, ("rows", "weights"), entries))


def with_sizes(state: State, size: int, clauses: int) -> State:
    """Return the state with room for forms of so large a size, and of so many clauses."""
    sizes = 2 * size + 4
    directory = grown(state.directory, ("refusals",), sizes)
    lists = grown(state.lists, ("head", "counts"), sizes)
    return state._replace(directory=directory, lists=grown(lists, ("counter", "score"), clauses + 1))


def with_lists(state: State) -> State:
    """Return the state with twice the room for an event's keys and lists."""
    columns = tuple(name for name in Lists._fields if name not in ("head", "counts", "counter", "score"))
    return state._replace(lists=grown(state.lists, columns, 2 * len(state.lists.key)))
