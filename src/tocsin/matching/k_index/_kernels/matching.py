"""Matching an event: the posting lists of its keys are merged, size by size (Whang et al., §2.3 and §4.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NO_STATE_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.conjunction_store.state import CLAUSE_ROW, HIGH_ROW, WEIGHT_ROW
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.cursors import EXPRESSION_SHIFT, LIST, open_lists, skip
from tocsin.matching.k_index._kernels.event_keys import find_lists
from tocsin.matching.k_index._kernels.packing import clause_of
from tocsin.matching.k_index._kernels.postings import block_at, block_count
from tocsin.matching.k_index.state import (
    DraftTop,
    Expression,
    KIndexStateAddress,
    Member,
    Setting,
    State,
    Total,
)
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_WORD_SHIFT: Final = 32


@kernel
def match(
    state: State, events: EncodedEvents, start: int, found: Int64s, offsets: Int64s
) -> tuple[int, bool]:
    """Write the members whose expressions each event from `start` on satisfies; return the number of events done.

    The matches of event i are `found[offsets[i]:offsets[i + 1]]`. It stops at an event for which `found` has no room, or,
    if it also returns True, for whose lists there is no room. Conjunctions of size K have the size 2 K in arrays by size,
    and clausal expressions 2 K + 1.
    """
    for event in range(start, events.offsets.shape[0] - 1):
        count = offsets[event]
        if find_lists(state.directory, state.draft, state.lists, events, event) < 0:
            return event, True
        for k in range(state.draft.tops[DraftTop.MOST_SIZE], -1, -1):
            for size in range(2 * k, 2 * k + 2):
                if count < 0 or state.lists.counts[size] < max(k, np.int64(1)):
                    continue
                if size <= 2 and size & 1 == 0 and state.directory.refusals[size] == 0:
                    count = _take_all(state, size, count, found)
                else:
                    count = _merge(state, size, count, found)
        if count < 0:
            return event, False
        offsets[event + 1] = count
        state.totals[Total.SEEN] += 1.0
    return events.offsets.shape[0] - 1, False


@kernel
def match_event(address: KIndexStateAddress, event: SingleEventAddress) -> int:
    """Find the members whose expressions a single event satisfies, and write their ids: see `gather_single`."""
    state: State = load(address)
    single: SingleEvent = load(event)
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    done, lists_full = match(state, single.events, np.int64(0), single.found, single.offsets)
    if done == 0:
        return np.int64(NO_STATE_ROOM if lists_full else NO_ROOM)
    return gather_single(state.store, single)


@helper
def write_members(state: State, number: int, count: int, found: Int64s) -> int:
    """Write the members of a satisfied expression; return the new number found, or -1 if there is no room."""
    row = state.table.rows[number]
    residual = np.int64(NEEDS_RESIDUAL if row[Expression.FLAGS] & arrays.HAS_RESIDUAL else 0)
    member = np.int64(row[Expression.FIRST_MEMBER])
    while member >= 0:
        if count == found.shape[0]:
            return np.int64(-1)
        found[count] = member + residual
        count += 1
        member = np.int64(state.store.rows[member, Member.NEXT])
    return count


@helper
def _take_all(state: State, size: int, count: int, found: Int64s) -> int:
    """Write the members of all entries of a size for which one list suffices and none refuses, without merging."""
    lists, posted = state.lists, state.directory.posted
    i = lists.head[size]
    while i >= 0:
        header = posted.headers.rows[lists.row[i], 0]
        for n in range(block_count(posted, header)):
            begin, length = block_at(posted, header, n)
            for at in range(begin, begin + length):
                if count >= 0:
                    count = write_members(state, np.int64(posted.entries.words[at]) >> 1, count, found)
        i = lists.following[i]
    return count


@helper
def _merge(state: State, size: int, count: int, found: Int64s) -> int:
    """Write the members of satisfied expressions of a size: as many lists contain one as its size, and none refuses it.

    The first K cursors point to one expression, which is a candidate, or it is in too few lists: then all cursors before
    the expression of the K-th skip to it. Entries that refuse a conjunction sort first, so the first cursor decides.
    """
    lists, posted, packed = state.lists, state.directory.posted, state.lists.packed
    is_clausal, needed = size & 1 != 0, max(size >> 1, np.int64(1))
    left = open_lists(posted, lists, size)
    state.totals[Total.LOOKED] += left
    while left >= needed:
        first = packed[0] >> np.uint64(EXPRESSION_SHIFT)
        last = packed[needed - 1] >> np.uint64(EXPRESSION_SHIFT)
        is_candidate = first == last
        last += np.uint64(is_candidate)
        moved = np.int64(0)
        while moved < left and packed[moved] >> np.uint64(EXPRESSION_SHIFT) < last:
            moved += 1
        if is_candidate:
            state.totals[Total.CANDIDATES] += 1.0
            if holds(state, np.int64(first), moved, is_clausal):
                count = write_members(state, np.int64(first), count, found)
                if count < 0:
                    return count
        state.totals[Total.STEPS] += moved
        left = skip(posted, lists, moved, left, np.int64(last))
    return count


@helper
def holds(state: State, number: int, entries: int, is_clausal: bool) -> bool:
    """Tell whether a candidate is satisfied, to which the first `entries` cursors point."""
    if is_clausal:
        return _is_satisfied(state, number, entries)
    return (state.lists.packed[0] >> np.uint64(_WORD_SHIFT)) & np.uint64(1) != 0


@helper
def _is_satisfied(state: State, number: int, entries: int) -> bool:
    """Tell whether a clausal expression is satisfied, to which the first `entries` cursors point (§4.2).

    The counter of a clause begins with the number of its predicates that absent attributes satisfy. An entry that holds
    adds one, an entry that refuses subtracts one, and the clause is satisfied if the counter ends above zero.
    """
    lists, row = state.lists, state.table.rows[number]
    clauses = np.int64(row[Expression.CLAUSES])
    for clause in range(clauses):
        lists.counter[clause] = 0
    if row[Expression.FLAGS] & arrays.LOOSE:
        _begin_counters(state, np.int64(row[Expression.RECORD]), abs(np.int64(row[Expression.LENGTH])))
    for i in range(entries):
        n = np.int64(lists.packed[i] & np.uint64(LIST))
        clause = clause_of(state.directory.posted.headers.rows[lists.row[lists.which[n]], 1])
        if clause != arrays.NO_CLAUSE:
            holds = (lists.packed[i] >> np.uint64(_WORD_SHIFT)) & np.uint64(1)
            lists.counter[clause] += 1 if holds else -1
    satisfied = True
    for clause in range(clauses):
        satisfied &= lists.counter[clause] > 0
    return satisfied


@helper
def _begin_counters(state: State, first: int, count: int) -> None:
    """Set the counters of an expression's clauses to the number of predicates that absent attributes satisfy."""
    rows, absence = state.table.records.rows, state.draft.settings[Setting.ABSENCE] != 0
    clause, absent, left = np.int64(0), np.int64(0), np.int64(0)
    residual = False
    for at in range(first, first + count):
        op = rows[at, 1] >> FIELD_BITS
        if op == CLAUSE_ROW:
            left, absent, residual = rows[at, 0], np.int64(0), False
            continue
        if op not in (HIGH_ROW, WEIGHT_ROW):
            residual |= op == Op.RESIDUAL
            absent += op == Op.MISSING or (absence and op in (Op.NE, Op.NOT_IN, Op.NOT_BETWEEN))
            left -= 1
            if left <= 0:  # a conjunction has no rows for clauses: each predicate is one
                if not residual:
                    state.lists.counter[clause] = absent
                    clause += 1
                absent, residual = np.int64(0), False
