"""The arrays that Le Subscribe's matchers are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures import chunked_lists, hash_index, marks, sorted_runs
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
    uses: NDArray[np.int32]  # conjunctions that hold it
    hits: NDArray[np.float64]  # of an equality: decayed number of events that satisfied it
    access: NDArray[np.int32]  # of an equality: the access predicate it is alone, or -1


class FieldState(NamedTuple):
    """By field: its predicates, and the value of the event at hand."""

    equalities: NDArray[np.int32]  # distinct constants of `=`
    others: NDArray[np.int32]  # distinct other predicates; one on ANY counts in all fields of its attribute
    posted: NDArray[np.int32]  # members of lists, and constants of `!=`
    present: NDArray[np.int32]  # of ANY: the slot of `is present`, or -1
    missing: NDArray[np.int32]  # of ANY: the slot of `is missing`, or -1
    runs: NDArray[np.int32]  # [fields, 4] run of `<`, `<=`, `>`, `>=`, or -1
    is_wide: NDArray[np.uint8]  # [fields, 4] whether the run is too wide to be marked for each event
    stamp: NDArray[np.int64]  # the event that last had a value here
    slot: NDArray[
        np.int32
    ]  # the equality its value satisfies, or -1; of TEXT, which may have several, the last
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Postings(NamedTuple):
    """Which list predicates name a (field, key)."""

    entries: HashIndex  # keys: field, key
    first: NDArray[np.int32]  # by entry: its first node
    slot: NDArray[np.int32]  # by node
    following: NDArray[np.int32]  # by node: the next of its entry, or of the free list
    counters: NDArray[np.int64]  # nodes ever used, first free node


class ConjunctionColumn(IntEnum):
    """Columns of `State.store.rows` behind SIBLING: where a conjunction is in the clusters."""

    CHUNK = 1
    PLACE = 2


class Access(NamedTuple):
    """Access predicates: one or more equality slots, and the clusters of conjunctions they lead to. By number."""

    entries: HashIndex  # keys: slots, two to an integer; beside them, its first cluster or -1
    members: NDArray[np.int32]  # conjunctions in all its clusters
    hits: NDArray[np.float64]  # decayed number of events that satisfied it
    table: NDArray[np.int32]  # the table it belongs to, or -1
    status: NDArray[np.uint8]  # CALM, SUSPECT or SETTLED
    settled: NDArray[np.float32]  # its benefit margin when maintenance last settled it


class Tables(NamedTuple):
    """Multi-attribute hash tables. By number: width 0 is not in use, a negative one is being emptied."""

    fields: NDArray[np.int32]  # [tables, WIDEST] ascending
    width: NDArray[np.int32]
    members: NDArray[np.int64]  # conjunctions
    correlation: NDArray[
        np.float64
    ]  # how many times more probable its keys are than independent values would be
    used: NDArray[np.int64]  # [1] numbers ever used


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
    suspects: NDArray[np.int32]  # access predicates satisfied too often for the number of their conjunctions
    totals: NDArray[np.float64]  # [10]
    scratch: NDArray[np.int64]  # room for one conjunction or one event's work


def new_state(scratch: int = 4096) -> State:
    """Return the arrays of an empty matcher."""
    state = State(
        Predicates(hash_index.new_hash_index(3), marks.new_marks(), _int32(), _float64(), _int32()),
        FieldState(
            _int32(),
            _int32(),
            _int32(),
            np.full(64, -1, np.int32),
            np.full(64, -1, np.int32),
            np.full((64, 4), -1, np.int32),
            np.zeros((64, 4), np.uint8),
            _int64(),
            _int32(),
            _int64(),
            _int64(),
        ),
        sorted_runs.new_sorted_runs(),
        Postings(
            hash_index.new_hash_index(2), _int32(), _int32(), _int32(), np.array([0, -1], dtype=np.int64)
        ),
        conjunction_store.new_store(3),
        Access(
            hash_index.new_hash_index(2, extra=1),
            _int32(),
            _float64(),
            _int32(),
            np.zeros(64, np.uint8),
            np.zeros(64, np.float32),
        ),
        chunked_lists.new_chunked_lists(),
        Tables(
            np.zeros((64, WIDEST), np.int32),
            _int32(),
            _int64(),
            _float64(),
            np.zeros(1, np.int64),
        ),
        np.zeros(4096, dtype=np.int32),
        np.zeros(10, dtype=np.float64),
        np.zeros(scratch, dtype=np.int64),
    )
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
    fields = grown(
        fields,
        (
            *("equalities", "others", "posted", "present", "missing", "runs", "is_wide"),
            *("stamp", "slot", "low", "high"),
        ),
        attributes * FIELDS,
    )
    fields.present[old:] = -1
    fields.missing[old:] = -1
    fields.runs[old:] = -1
    return state._replace(fields=fields)


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


def _int32() -> NDArray[np.int32]:
    return np.zeros(64, dtype=np.int32)


def _int64() -> NDArray[np.int64]:
    return np.zeros(64, dtype=np.int64)


def _float64() -> NDArray[np.float64]:
    return np.zeros(64, dtype=np.float64)
