"""The arrays that Le Subscribe's matchers are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures import chunked_lists, hash_index, marks, sorted_runs
from tocsin.structures.array_types import Float32s, Float64s, Int32s, Int64s, UInt8s, zeros
from tocsin.structures.chunked_lists import ChunkedLists
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.marks import Marks
from tocsin.structures.sorted_runs import SortedRuns

# Values of the predicate vector while an event is matched.
FALSE: Final = 0
TRUE: Final = 1
EVALUATE: Final = 2  # the indexes do not mark it: compare the event's value with the constants
RESIDUAL: Final = 3  # evaluated in Python

FALLBACK: Final = 0  # the access predicate of conjunctions without an equality: every event satisfies it
CLUSTER: Final = 2  # the column, beside an access predicate's key, of its first cluster
SLOTS: Final = 2  # the first column of slots in a cluster; without slots there is no hint either
HINTED: Final = 1 << 16  # while there are no more slots than this, a hint holds the first two
WIDEST: Final = 4  # attributes in a table's schema: their slots fill a key of two integers
NO_SLOT: Final = 0xFFFFFFFF


class ClusterTotal(IntEnum):
    """Places in `State.totals`."""

    EVENTS = 0  # decayed number of events seen
    WEIGHT = 1  # of the next event
    STAMP = 2  # a number that each event has for itself
    CHECKS = 3  # conjunctions checked, ever
    SEEN = 4  # events matched, ever
    VISITS = 5  # clusters visited, ever
    REACHED = 6  # access predicates that the last event satisfied; they are in `scratch`
    SUSPECTS = 7  # how many there are
    PENDING = 8  # their benefit margins
    TOLERANCE = 9  # the benefit margin from which an access predicate is suspect


# Statuses of an access predicate
CALM: Final = 0
SUSPECT: Final = 1
SETTLED: Final = 2  # maintenance has left it as it is


class Predicates(NamedTuple):
    """The registry: one slot for each distinct predicate. By slot."""

    entries: HashIndex  # keys: tag, low, high
    marks: Marks  # the predicate vector
    uses: Int32s  # conjunctions that hold it
    hits: Float64s  # of an equality: decayed number of events that satisfied it
    access: Int32s  # of an equality: the access predicate it is alone, or -1


class FieldState(NamedTuple):
    """By field: its predicates, and the value of the event at hand."""

    equalities: Int32s  # distinct constants of `=`
    others: Int32s  # distinct other predicates; one on ANY counts in all fields of its attribute
    posted: Int32s  # members of lists, and constants of `!=`
    present: Int32s  # of ANY: the slot of `is present`, or -1
    missing: Int32s  # of ANY: the slot of `is missing`, or -1
    runs: Int32s  # [fields, 4] run of `<`, `<=`, `>`, `>=`, or -1
    is_wide: UInt8s  # [fields, 4] whether the run is too wide to be marked for each event
    stamp: Int64s  # the event that last had a value here
    # The equality its value satisfies, or -1; of TEXT, which may have several, the last
    slot: Int32s
    low: Int64s
    high: Int64s


class Postings(NamedTuple):
    """Which list predicates name a (field, key)."""

    entries: HashIndex  # keys: field, key
    first: Int32s  # by entry: its first node
    slot: Int32s  # by node
    following: Int32s  # by node: the next of its entry, or of the free list
    counters: Int64s  # nodes ever used, first free node


class ConjunctionColumn(IntEnum):
    """Columns of `State.store.rows` behind SIBLING: where a conjunction is in the clusters."""

    CHUNK = 1
    PLACE = 2


class Access(NamedTuple):
    """Access predicates: one or more equality slots, and the clusters of conjunctions they lead to. By number."""

    entries: HashIndex  # keys: slots, two to an integer; beside them, its first cluster or -1
    members: Int32s  # conjunctions in all its clusters
    hits: Float64s  # decayed number of events that satisfied it
    table: Int32s  # the table it belongs to, or -1
    status: UInt8s  # CALM, SUSPECT or SETTLED
    settled: Float32s  # its benefit margin when maintenance last settled it


class Tables(NamedTuple):
    """Multi-attribute hash tables. By number: width 0 is not in use, a negative one is being emptied."""

    fields: Int32s  # [tables, WIDEST] ascending
    width: Int32s
    members: Int64s  # conjunctions
    # How many times more probable its keys are than independent values would be
    correlation: Float64s
    used: Int64s  # [1] numbers ever used


class State(NamedTuple):
    """All of a matcher's arrays. Written under the matcher's lock alone."""

    predicates: Predicates
    fields: FieldState
    runs: SortedRuns
    postings: Postings
    store: ConjunctionStore  # rows: SIBLING, CHUNK, PLACE
    access: Access
    clusters: ChunkedLists  # columns: conjunctions, hints, the slots still to be checked
    # in a cluster's row: NEXT, the next of the same access predicate, or -1, and TAG, that predicate
    tables: Tables
    suspects: Int32s  # access predicates satisfied too often for the number of their conjunctions
    totals: Float64s  # [10]
    scratch: Int64s  # room for one conjunction or one event's work


class ClusterStateAddress(NamedTuple):
    """The address of a `State`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state(scratch: int = 4096) -> State:
    """Return the arrays of an empty matcher."""
    state = State(
        zeros(Predicates, 64, entries=hash_index.new_hash_index(3), marks=marks.new_marks()),
        zeros(FieldState, 64, runs=4, is_wide=4),
        sorted_runs.new_sorted_runs(),
        zeros(Postings, 64, entries=hash_index.new_hash_index(2), counters=np.array([0, -1], dtype=np.int64)),
        conjunction_store.new_store(3),
        zeros(Access, 64, entries=hash_index.new_hash_index(2, extra=1)),
        chunked_lists.new_chunked_lists(),
        zeros(Tables, 64, fields=WIDEST, used=np.zeros(1, dtype=np.int64)),
        np.zeros(4096, dtype=np.int32),
        np.zeros(10, dtype=np.float64),
        np.zeros(scratch, dtype=np.int64),
    )
    _clear_fields(state.fields, 0)
    state.totals[ClusterTotal.WEIGHT] = 1.0
    state.totals[ClusterTotal.TOLERANCE] = np.inf
    hash_index.insert(state.access.entries, -1, -1, 0)  # entry 0 is FALLBACK
    state.access.entries.keys[FALLBACK, CLUSTER] = -1
    state.access.table[FALLBACK] = -1
    return state


def with_fields(state: State, attributes: int) -> State:
    """Return the state with room for so many attributes."""
    fields = state.fields
    old = len(fields.stamp)
    if attributes * FIELDS <= old:
        return state
    fields = grown(fields, FieldState._fields, attributes * FIELDS)
    _clear_fields(fields, old)
    return state._replace(fields=fields)


def _clear_fields(fields: FieldState, begin: int) -> None:
    """Give fields from `begin` on no runs, and no slots of `is present` and `is missing`."""
    fields.present[begin:] = fields.missing[begin:] = fields.runs[begin:] = -1


def with_room(state: State, conjunctions: int, predicates: int, widest: int) -> State:
    """Return the state with room for more conjunctions, with so many predicates in all and at most `widest` each."""
    held, access = state.predicates, state.access
    index = hash_index.with_room(held.entries, predicates)
    slots = len(index.chain)
    held = grown(held._replace(entries=index), ("uses", "hits", "access"), slots)
    held = held._replace(marks=marks.with_room(held.marks, slots))
    entries = hash_index.with_room(access.entries, conjunctions)
    access = grown(
        access._replace(entries=entries),
        ("members", "hits", "table", "status", "settled"),
        len(entries.chain),
    )
    clusters = chunked_lists.with_room(state.clusters, conjunctions, widest + SLOTS)
    state = state._replace(
        predicates=held,
        access=access,
        clusters=clusters,
        store=conjunction_store.with_room(state.store, conjunctions),
    )
    return grown(state, ("scratch",), max(8 * widest + 64, 4 * slots // 64))


def with_runs(state: State, predicates: int) -> State:
    """Return the state with room for more ordered constants and list members."""
    postings = state.postings
    index = hash_index.with_room(postings.entries, predicates)
    postings = grown(postings._replace(entries=index), ("first",), len(index.chain))
    postings = grown(postings, ("slot", "following"), int(postings.counters[0]) + predicates)
    return state._replace(runs=sorted_runs.with_room(state.runs, predicates), postings=postings)
