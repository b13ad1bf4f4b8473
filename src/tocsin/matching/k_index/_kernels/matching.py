"""Which forms an event satisfies (Whang et al., 2.3 and 4.2)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.k_index._kernels.cursors import FORM_SHIFT, LIST, open_lists, skip
from tocsin.matching.k_index._kernels.event_keys import unfold
from tocsin.matching.k_index._kernels.postings import COUNT_SHIFT, OFFSET
from tocsin.matching.k_index.state import (
    ABSENCE,
    ASKED,
    CANDIDATES,
    CLASS_SHIFT,
    CLAUSE,
    CLAUSE_SHIFT,
    CLAUSES,
    FIRST_MEMBER,
    FORM_FLAGS,
    HIGH,
    LEAF,
    LOOKED,
    LOOSE,
    MOST_SIZE,
    NEXT_MEMBER,
    NO_CLAUSE,
    RECORDS,
    SEEN,
    STEPS,
    STORE,
    WEIGHT_RECORD,
    State,
)
from tocsin.structures.jit import helper, kernel

_WORD_SHIFT: Final = 32
_CLAUSE: Final = (1 << (CLASS_SHIFT - CLAUSE_SHIFT)) - 1
_NE, _NOT_BETWEEN, _NOT_IN = int(Op.NE), int(Op.NOT_BETWEEN), int(Op.NOT_IN)
_RESIDUAL, _MISSING = int(Op.RESIDUAL), int(Op.MISSING)


@kernel
def match(
    state: State,
    events: EncodedEvents,
    start: int,
    found: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[int, bool]:
    """Write the members whose form each event from `start` on satisfies; return how many events were done.

    Those of event i are `found[offsets[i]:offsets[i + 1]]`. Fewer events than all are done if there is no room: in
    `found`, or, if the second that is returned is True, for the event's lists.
    """
    for event in range(start, events.offsets.shape[0] - 1):
        count = offsets[event]
        if unfold(state.directory, state.draft, state.lists, events, event) < 0:
            return event, True
        for k in range(state.draft.tops[MOST_SIZE], -1, -1):
            needed = max(k, np.int64(1))
            if count >= 0 and state.lists.counts[2 * k] >= needed:
                if k <= 1 and state.directory.refusals[2 * k] == 0:
                    count = _take_all(state, 2 * k, count, found)
                else:
                    count = _match_conjunctions(state, k, count, found)
            if count >= 0 and state.lists.counts[2 * k + 1] >= needed:
                count = _match_clauses(state, k, count, found)
        if count < 0:
            return event, False
        offsets[event + 1] = count
        state.totals[SEEN] += 1.0
    return events.offsets.shape[0] - 1, False


@helper
def tell(state: State, number: int, count: int, found: NDArray[np.int64]) -> int:
    """Write the members of a form that is satisfied; return the new number of those found, or -1 if there is no room."""
    form = state.book.forms[number]
    unsure = np.int64(NEEDS_RESIDUAL if form[FORM_FLAGS] & ASKED else 0)
    member = np.int64(form[FIRST_MEMBER])
    while member >= 0:
        if count == found.shape[0]:
            return np.int64(-1)
        found[count] = member + unsure
        count += 1
        member = np.int64(state.book.members[member, NEXT_MEMBER])
    return count


@helper
def _take_all(state: State, size: int, count: int, found: NDArray[np.int64]) -> int:
    """Tell all entries of a size for which one suffices, where none refuses: no order is needed for that."""
    lists, posted = state.lists, state.directory.posted
    headers, shelves = posted.headers.rows, posted.shelves.rows
    i = lists.head[size]
    while i >= 0:
        header = headers[lists.row[i], 0]
        begin, length = header & OFFSET, header >> COUNT_SHIFT
        shelf, last = np.int64(0), np.int64(0)
        if length > LEAF:
            shelf, last = begin + 1, begin + shelves[begin, 0]
        while True:
            if shelf > 0:
                begin, length = shelves[shelf, 1] & OFFSET, shelves[shelf, 1] >> COUNT_SHIFT
            for at in range(begin, begin + length):
                if count >= 0:
                    count = tell(state, np.int64(posted.entries.words[at]) >> 1, count, found)
            if shelf == last:
                break
            shelf += 1
        i = lists.following[i]
    return count


@helper
def _match_conjunctions(state: State, k: int, count: int, found: NDArray[np.int64]) -> int:
    """Tell the conjunctions of size `k` of which as many lists have an entry, and none that refuses.

    What the first `k` cursors stand at is a conjunction, or it is not in enough lists: then all that come before the
    form of the last of them are passed over. Entries that refuse come first, so it is enough to look at the first.
    """
    lists, posted, packed = state.lists, state.directory.posted, state.lists.packed
    needed = max(k, np.int64(1))
    left = open_lists(posted, lists, 2 * k)
    state.totals[LOOKED] += left
    while left >= needed:
        first = packed[0] >> np.uint64(FORM_SHIFT)
        last = packed[needed - 1] >> np.uint64(FORM_SHIFT)
        moved, target = np.int64(0), np.int64(last)
        if first == last:
            target += 1
            state.totals[CANDIDATES] += 1.0
            if (packed[0] >> np.uint64(_WORD_SHIFT)) & np.uint64(1):
                count = tell(state, np.int64(first), count, found)
                if count < 0:
                    return count
            last += np.uint64(1)
        while moved < left and packed[moved] >> np.uint64(FORM_SHIFT) < last:
            moved += 1
        state.totals[STEPS] += moved
        left = skip(posted, lists, moved, left, target)
    return count


@helper
def _match_clauses(state: State, k: int, count: int, found: NDArray[np.int64]) -> int:
    """Tell the clause forms of size `k` that are satisfied: as many lists have an entry, and each clause a true one."""
    lists, posted, packed = state.lists, state.directory.posted, state.lists.packed
    needed = max(k, np.int64(1))
    left = open_lists(posted, lists, 2 * k + 1)
    state.totals[LOOKED] += left
    while left >= needed:
        first = packed[0] >> np.uint64(FORM_SHIFT)
        last = packed[needed - 1] >> np.uint64(FORM_SHIFT)
        if first == last:
            last += np.uint64(1)
            state.totals[CANDIDATES] += 1.0
        moved = np.int64(0)
        while moved < left and packed[moved] >> np.uint64(FORM_SHIFT) < last:
            moved += 1
        if last == first + np.uint64(1) and moved >= needed and is_satisfied(state, np.int64(first), moved):
            count = tell(state, np.int64(first), count, found)
            if count < 0:
                return count
        state.totals[STEPS] += moved
        left = skip(posted, lists, moved, left, np.int64(last))
    return count


@helper
def is_satisfied(state: State, number: int, entries: int) -> bool:
    """Tell whether a clause form is satisfied, of which the first cursors stand at so many entries.

    A clause begins with the number of its predicates that an absent attribute satisfies. An entry that holds counts
    one up, one that refuses one down, and what is above zero at the end is satisfied.
    """
    lists, form = state.lists, state.book.forms[number]
    clauses = np.int64(form[CLAUSES])
    for clause in range(clauses):
        lists.counter[clause] = 0
    if form[FORM_FLAGS] & LOOSE:
        _begin_counters(state, np.int64(form[STORE]), np.int64(form[RECORDS]))
    for i in range(entries):
        n = np.int64(lists.packed[i] & np.uint64(LIST))
        clause = clause_of(state.directory.posted.headers.rows[lists.row[lists.which[n]], 1])
        if clause != NO_CLAUSE:
            holds = (lists.packed[i] >> np.uint64(_WORD_SHIFT)) & np.uint64(1)
            lists.counter[clause] += 1 if holds else -1
    satisfied = True
    for clause in range(clauses):
        satisfied &= lists.counter[clause] > 0
    return satisfied


@helper
def clause_of(size_word: int) -> int:
    """Return the clause that the entries of a list are in."""
    return (size_word >> CLAUSE_SHIFT) & _CLAUSE


@helper
def _begin_counters(state: State, first: int, count: int) -> None:
    """Set the counters of a form's clauses to how many predicates an absent attribute satisfies."""
    rows, absence = state.book.store.rows, state.draft.settings[ABSENCE] != 0
    clause, absent, left = np.int64(0), np.int64(0), np.int64(0)
    residual = False
    for at in range(first, first + count):
        op = rows[at, 1] >> FIELD_BITS
        if op == CLAUSE:
            left, absent, residual = rows[at, 0], np.int64(0), False
            continue
        if op not in (HIGH, WEIGHT_RECORD):
            residual |= op == _RESIDUAL
            absent += op == _MISSING or (absence and op in (_NE, _NOT_IN, _NOT_BETWEEN))
            left -= 1
            if left <= 0:  # a conjunction's records are not marked: each is a clause
                if not residual:
                    state.lists.counter[clause] = absent
                    clause += 1
                absent, residual = np.int64(0), False
