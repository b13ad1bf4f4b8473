"""The arrays of AMKH: stored conjunctions, and the hash table that finds them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions, record_rows
from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt8s, UInt64s, zeros
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

ALWAYS: Final = FIELDS - 1  # the field of the schema that has none: no attribute uses it
NO_KEY: Final = -(2**63)  # a key that no number has
HIGHEST: Final = 2**63 - 1
LOWEST: Final = -(2**63)

MOST_HASHED: Final = 64  # clauses of a subscription; the rest is verified
MOST_POINTS: Final = 64  # that a subscription may be, by its lists of values
MOST_MEMBERS: Final = 8  # of a list that is a point for each value

# Operators of coordinates that are ranges: these bits, above this number
RANGE: Final = 16
HAS_LOWER: Final = 1
LOWER_STRICT: Final = 2
HAS_UPPER: Final = 4
UPPER_STRICT: Final = 8


class StoredColumn(IntEnum):
    """Columns of `State.store.rows` behind SIBLING and RECORD."""

    POINT = 2  # its first point, or -1
    HOME = 3  # which of two indexes it is in, while all are moved from one to the other


class Clause(IntEnum):
    """Columns of a clause, behind its three of key."""

    ID = 3  # unique on its attribute, from 1
    USES = 4  # points that have it for a coordinate
    CLASS = 5  # -1 of an equality
    NEXT = 6  # in its class
    BEFORE = 7


class HashedAttribute(IntEnum):
    """Columns of a hashed attribute: first those that matching reads."""

    WEIGHT = 0
    CLASS_WEIGHT = 1
    EQUALITIES = 2  # clauses
    OTHERS = 3
    UNEQUALS = 4  # of those, `!=`
    BOUNDS = 5  # the first row of its classes' bounds, or -1
    CLASSES = 6  # how many classes it has
    LIST = 7  # the first row of the schemas of which it is the rarest attribute, or -1
    LIST_COUNT = 8
    MET = 9  # the last event with a matched clause,
    ADDENDS = 10  # and where its addends begin in `Scratch.sums`,
    ADDEND_COUNT = 11  # and how many there are
    FIELD = 12
    TOP_ID = 13  # ids ever given
    FREE_IDS = 14  # the first row of the ids to be given again, -1 if there is no room for any
    FREE_COUNT = 15
    FREE_CLASS = 16
    CHAINS = 17  # the first row of its classes' clauses
    CHAINS_CLASS = 18
    BOUNDS_CLASS = 19
    LIST_CLASS = 20
    CUTS = 21  # the row of constants that divide its classes


HASHED_COLUMNS: Final = len(HashedAttribute)

# A class of clauses keeps its extreme constants, so that one comparison decides whether any clause may be satisfied: a row of
# two for each shape of clause. Where constants divide classes, all clauses of a class have one shape, and it has one row.
LOWER: Final = 0  # the least constants of `>=` and `>`
UPPER: Final = 1  # the greatest constants of `<=` and `<`
BOTH: Final = 2  # the least lower and the greatest upper bound
LOOSE: Final = 3  # how many are `!=`, and how many any value of the kind may satisfy
SHAPES: Final = 4


class Chain(IntEnum):
    """Columns of a class's chain of clauses."""

    HEAD = 0  # its first clause, or -1
    LIVE = 1  # its clauses
    STALE = 2  # clauses removed since its extremes were computed


class Bucket(IntEnum):
    """Columns of a bucket, behind its coordinate."""

    MEMBERS = 1  # its first row, or -1
    SIZE = 2  # members, above eight bits for the class of their block
    STAMP = 3  # the last event that came here
    SCHEMA = 4
    NEXT = 5  # of the same schema
    BEFORE = 6


SIZE_BITS: Final = 8


class Schema(IntEnum):
    """Columns of a schema, behind its two of key."""

    POINTS = 2
    PLACES = 3  # the first row of its attributes
    SIZE = 4
    PIVOT = 5  # its rarest attribute
    POSITION = 6  # in that attribute's list
    BUCKET = 7  # its first bucket, or -1
    BUCKETS = 8
    SHARED = 9  # whether it shares a bucket with another, so that its own are not all it has


SINGLE: Final = 1 << 62  # added to a schema in a list if it has one attribute


class Point(IntEnum):
    """Columns of a point."""

    BUCKET = 0
    POSITION = 1
    NEXT = 2  # of the same conjunction, or of the free ones
    COORDINATES = 3  # the first row of its clauses; if there is just one, the clause itself
    SCHEMA = 4


class Top(IntEnum):
    """Places in `State.tops`."""

    EPOCH = 0  # the number of the event at hand
    ROOM = 1  # conjunctions that an event may satisfy, if there was no room for them
    SUMS = 2  # coordinates of one attribute each, likewise


class IndexTop(IntEnum):
    """Places in `Index.tops`."""

    TOP_ATTRIBUTE = 0
    TOP_POINT = 1
    FREE_POINT = 2
    LIVE_POINTS = 3
    LARGEST_BUCKET = 4
    LARGEST_LIST = 5
    LARGEST_IDS = 6
    LARGEST_CLASSES = 7  # that any attribute has, or is about to have
    RESUME = 8  # points of a conjunction that were placed before room ran out,
    DRAFTED = 9  # and its clauses that are hashed,
    POINTS = 10  # and the points that it is to have


class Setting(IntEnum):
    """Places in `Index.settings`."""

    CLASS_COUNT = 0  # B; 0 is as many as there are ids
    BUCKET_COUNT = 1  # M; 0 is as many as there are coordinates
    SPLIT = 2  # whether equalities, classes and schemas have weights of their own
    RANKED = 3  # whether constants divide classes, not ids
    WIDTH = 4  # clauses that are hashed of one subscription
    DEFAULT = 5  # the `Hashing` of attributes that come later


class Total(IntEnum):
    """Places in `State.totals`."""

    EVENTS = 0  # decayed number of events seen
    SHARE = 1  # the weight of the next event
    SEEN = 2  # events matched since the counts were reset
    EXAMINED = 3
    MATCHED = 4
    PROBED = 5
    LOOKED_AT = 6  # schemas


PROBES: Final = 1024  # buckets that are prefetched before any is opened
CANDIDATES: Final = 1024  # subscriptions that are prefetched before any is verified


class Cursor(IntEnum):
    """Places in `Scratch.cursor`."""

    VISIT = 0
    ROW = 1
    LEFT = 2  # products of the schema at hand that are still to be written
    AT_SCHEMA = 3
    WALK = 4  # the next bucket of the schema at hand, where all are scanned; or -1
    SWEEP = 5  # likewise of all buckets
    PRODUCTS = 6  # coordinates so far of schemas that share buckets


class Scratch(NamedTuple):
    """The event at hand, or the conjunction."""

    field: Keys  # [pairs]
    key: Keys
    low: Keys
    high: Keys
    place: Keys  # its attribute's row
    head: Keys  # where to look for an equality
    visits: Keys  # [pairs] attributes that are the rarest of some schema
    sums: UInt64s  # addends of the matched clauses of each attribute to a coordinate
    digits: Keys  # [MOST_HASHED] which of them is at hand, by attribute of a schema
    cursor: Keys  # [7]
    probe: UInt64s  # [PROBES] coordinates
    entry: Keys  # [PROBES] their buckets
    candidate: Keys  # [CANDIDATES]
    draft: Int64s  # [predicates, 8] the clauses of a conjunction, by attribute
    chosen: Keys  # [MOST_HASHED] of those, which are hashed
    clauses: Keys  # [MOST_HASHED] of a point


class FieldUse(NamedTuple):
    """By field: its use in conjunctions, and its frequency among events."""

    uses: Int32s  # predicates on it
    others: Int32s  # of those, other than equalities
    seen: Float64s  # decayed number of events that had it,
    since: Float64s  # EVENTS when its first predicate was added
    slot: Int32s  # its first pair in the event at hand, from 1; 0 if there is none


class Index(NamedTuple):
    """Conjunctions as points, hashed under one scheme."""

    hashing: UInt8s  # [fields] its `Hashing`
    row_of_field: Int32s  # [fields] its row in `attributes`, or -1
    attributes: Int64s  # [attributes, HashedAttribute]
    clauses: HashIndex  # keys: operator and field, and two constants
    ids: Blocks  # rows: ids to be given again
    bounds: Blocks  # rows: two extreme constants of a class
    chains: Blocks  # rows: a class's clauses
    cuts: Int64s  # [rows * 3 * (B - 1)] ascending, for lower, upper and both bounds; first by kind
    schemas: HashIndex  # keys: a hash of its attributes, and a number to tell apart those that share it
    schema_attributes: Blocks  # rows: an attribute, in ascending order
    schema_lists: Blocks  # rows: a signature, and a schema
    buckets: HashIndex  # keys: a coordinate
    members: Blocks  # rows: a signature; the first record above 32 bits, the point below
    points: Int32s  # [points, 5]
    coordinates: Blocks  # rows: a clause
    tops: Int64s  # [11]
    settings: Int64s  # [6]


class State(NamedTuple):
    """All arrays but the index. Written under the matcher's lock alone."""

    store: ConjunctionStore  # rows: SIBLING, RECORD, POINT, HOME
    records: Blocks
    # Keys: the code of a list, a field, a key; beside them how many conjunctions have the list
    lists: HashIndex
    fields: FieldUse
    tops: Int64s  # [3]
    totals: Float64s  # [7]
    scratch: Scratch


class Hashed(NamedTuple):
    """The state together with one index, as a kernel takes both for a single event."""

    state: State
    hashed: Index


class AmkhStateAddress(NamedTuple):
    """The address of a `Hashed`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state() -> State:
    """Return the state of a matcher without conjunctions."""
    totals = np.zeros(len(Total), dtype=np.float64)
    totals[Total.SHARE] = 1.0
    return State(
        conjunction_store.new_store(4),
        blocks.new_blocks(2),
        hash_index.new_hash_index(3, 1),
        zeros(FieldUse, 64),
        np.zeros(len(Top), dtype=np.int64),
        totals,
        new_scratch(),
    )


def new_index(settings: Int64s, cuts: Int64s) -> Index:
    """Return an index without points."""
    tops = np.zeros(len(IndexTop), dtype=np.int64)
    tops[IndexTop.FREE_POINT] = -1
    tops[IndexTop.TOP_ATTRIBUTE] = 1
    hashed = np.zeros((64, len(HashedAttribute)), dtype=np.int64)
    # For the schema without attributes
    hashed[0, HashedAttribute.FIELD] = ALWAYS
    hashed[
        0, [HashedAttribute.FREE_IDS, HashedAttribute.BOUNDS, HashedAttribute.LIST, HashedAttribute.MET]
    ] = -1
    return zeros(
        Index,
        64,
        hashing=np.full(64, settings[Setting.DEFAULT], dtype=np.uint8),
        row_of_field=np.full(64, -1, dtype=np.int32),
        attributes=hashed,
        clauses=hash_index.new_hash_index(3, len(Clause)),
        ids=blocks.new_blocks(1),
        bounds=blocks.new_blocks(2),
        chains=blocks.new_blocks(len(Chain)),
        cuts=cuts,
        schemas=hash_index.new_hash_index(2, len(Schema)),
        schema_attributes=blocks.new_blocks(1),
        schema_lists=blocks.new_blocks(2),
        buckets=hash_index.new_hash_index(1, len(Bucket)),
        members=blocks.new_blocks(2),
        points=len(Point),
        coordinates=blocks.new_blocks(1),
        tops=tops,
        settings=settings,
    )


def new_scratch() -> Scratch:
    """Return room for an event of 256 pairs and for a conjunction of 64 predicates."""
    digits, chosen, clauses = np.zeros((3, MOST_HASHED), dtype=np.int64)
    return zeros(
        Scratch,
        256,
        sums=np.zeros(1024, dtype=np.uint64),
        digits=digits,
        cursor=np.zeros(len(Cursor), dtype=np.int64),
        probe=np.zeros(PROBES, dtype=np.uint64),
        entry=np.zeros(PROBES, dtype=np.int64),
        candidate=np.zeros(CANDIDATES, dtype=np.int64),
        draft=np.zeros((64, 8), dtype=np.int64),
        chosen=chosen,
        clauses=clauses,
    )


def with_fields(state: State, attributes: int) -> State:
    """Return the state with room for so many attributes."""
    if attributes * FIELDS <= len(state.fields.uses):
        return state
    return state._replace(fields=grown(state.fields, FieldUse._fields, attributes * FIELDS))


def with_index_fields(index: Index, attributes: int) -> Index:
    """Return the index with room for the fields of so many attributes."""
    old = len(index.row_of_field)
    if attributes * FIELDS <= old:
        return index
    index = grown(index, ("hashing", "row_of_field"), attributes * FIELDS)
    index.row_of_field[old:] = -1
    index.hashing[old:] = index.settings[Setting.DEFAULT]
    return index


def with_expressions(state: State, expressions: Expressions) -> State:
    """Return the state with room to store expressions, and the members of their lists."""
    return state._replace(
        store=conjunction_store.with_room(state.store, len(expressions.numbers)),
        records=blocks.with_room(state.records, record_rows(expressions)),
        lists=hash_index.with_room(state.lists, len(expressions.keys)),
    )


def with_points(index: Index, conjunctions: int, width: int) -> Index:
    """Return the index with room for one more point of so many clauses, and for some more."""
    tops = index.tops
    more = min(conjunctions, 4096)
    wide = min(width, MOST_HASHED)
    classes = wide * (
        3 * int(tops[IndexTop.LARGEST_CLASSES]) + 4 * int(index.settings[Setting.CLASS_COUNT]) + 8
    )
    index = grown(index, ("attributes",), int(tops[IndexTop.TOP_ATTRIBUTE]) + wide + 64)
    index = grown(index, ("points",), int(tops[IndexTop.TOP_POINT]) + more + 1)
    return index._replace(
        clauses=hash_index.with_room(index.clauses, wide + more),
        ids=blocks.with_room(index.ids, wide * (3 * int(tops[IndexTop.LARGEST_IDS]) + 4) + more),
        bounds=blocks.with_room(index.bounds, SHAPES * classes + more),
        chains=blocks.with_room(index.chains, classes + more),
        schemas=hash_index.with_room(index.schemas, 1 + more),
        schema_attributes=blocks.with_room(index.schema_attributes, 2 * wide + 2 + more),
        schema_lists=blocks.with_room(index.schema_lists, 3 * int(tops[IndexTop.LARGEST_LIST]) + 4 + more),
        buckets=hash_index.with_room(index.buckets, 1 + more),
        members=blocks.with_room(index.members, 3 * int(tops[IndexTop.LARGEST_BUCKET]) + 4 + more),
        coordinates=blocks.with_room(index.coordinates, 2 * wide + 2 + more),
    )


def with_pairs(scratch: Scratch, pairs: int, sums: int) -> Scratch:
    """Return the scratch with room for an event of so many pairs, whose matched clauses are so many."""
    scratch = grown(scratch, ("field", "key", "low", "high", "place", "head", "visits"), pairs)
    return grown(scratch, ("sums",), sums)
