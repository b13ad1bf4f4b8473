"""How expressions get into the predicate lists of their pivots, and out again (OpIndex, §4.3)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.predicates import count_uses, has_residual
from tocsin.matching.conjunction_store._kernels.records import free_all, store_all
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex._kernels.entries import choose, draft, member_count
from tocsin.matching.opindex._kernels.predicate_lists import erase, growth, insert, split_growth
from tocsin.matching.opindex.state import Gate, GateDraft, Pivot, Placement, State, StoredColumn, Top
from tocsin.structures import blocks, free_lists
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import size_of
from tocsin.structures.jit import helper, kernel

_FREE_GATE, _GATES = int(Top.FREE_GATE), int(Top.GATES)
_FREE_PLACEMENT, _PLACEMENTS = int(Top.FREE_PLACEMENT), int(Top.PLACEMENTS)
_FREE, _TOP = int(Pivot.FREE), int(Pivot.TOP)
_MOST_ENTRIES: Final = 1 << 20  # per expression; one with more gets the pivot that every event has


@kernel
def keep(state: State, ids: Int64s, batch: Expressions) -> None:
    """Store expressions under their subscriptions' ids, and count their attributes; there must be room."""
    store_all(state.store, state.records, ids, batch)
    count_uses(state.attributes.uses, batch, 1)


@kernel
def forget(state: State, batch: Expressions) -> None:
    """Free expressions that are withdrawn."""
    count_uses(state.attributes.uses, batch, -1)
    free_all(state.store, state.records, batch)


@kernel
def place(state: State, batch: Expressions, clauses: Int64s, order: Int64s, start: int) -> int:
    """Place expressions in this order, from `start` on; return the number done, fewer than all if capacity is missing.

    Expressions of one pivot that follow each other find its lists in the cache.
    """
    for at in range(start, order.shape[0]):
        i = order[at]
        clause = clauses[i]
        if not _has_draft_room(state, batch, i):
            return at
        copies = choose(state, batch, clause)
        units = draft(state, batch, i, clause < 0)
        if copies * state.tops[Top.EMITTED] > _MOST_ENTRIES:
            copies = choose(state, batch, np.int64(-1))
            units = draft(state, batch, i, True)
        state.tops[Top.COPIES] = copies
        if not _has_room(state, copies):
            return at
        number = batch.numbers[i]
        begin, end = batch.bounds[batch.offsets[i]], batch.bounds[batch.offsets[i + 1]]
        holder = number + (arrays.HAS_RESIDUAL if has_residual(batch, begin, end) else 0)
        for copy in range(copies - 1, -1, -1):  # the first one last, so that it leads the chain
            _place_at(state, number, holder, units, state.chosen[copy])
    return order.shape[0]


@helper
def _place_at(state: State, number: int, holder: int, units: int, field: int) -> None:
    """Place the drafted expression under one of its pivots."""
    pivot = np.int64(state.fields.pivot[field])
    if pivot < 0:
        pivot = _new_pivot(state, field)
    slot, gate = _new_counter(state, pivot), np.int64(-1)
    for opened in range(state.tops[Top.OPENED] - 1, -1, -1):  # the first one last, so that it leads the chain
        new = free_lists.take(state.gates[:, Gate.NEXT], state.tops, _FREE_GATE, _GATES)
        state.gates[new, Gate.NEXT] = gate
        state.gate_draft[opened, GateDraft.NUMBER] = new | arrays.GATE
        gate = new
    for opened in range(state.tops[Top.OPENED]):
        row = state.gates[state.gate_draft[opened, GateDraft.NUMBER] - arrays.GATE]
        row[Gate.STATE] = _at_rest(state.gate_draft[opened, GateDraft.UNITS])
        row[Gate.PARENT] = _target(state, state.gate_draft[opened, GateDraft.PARENT], slot)
    for e in range(state.tops[Top.EMITTED]):
        entry = state.draft[e]
        insert(state, pivot, entry, _target(state, entry[arrays.EntryDraft.TARGET], slot))
    at = state.pivots[pivot, Pivot.COUNTERS] + slot
    state.counters.rows[at, 0] = _at_rest(units)
    state.holders[at] = holder
    state.pivots[pivot, Pivot.MEMBERS] += 1
    placement = free_lists.take(state.placements[:, Placement.NEXT], state.tops, _FREE_PLACEMENT, _PLACEMENTS)
    row = state.placements[placement]
    row[Placement.PIVOT], row[Placement.SLOT], row[Placement.FIRST_GATE] = pivot, slot, gate
    row[Placement.NEXT] = state.store.rows[number, StoredColumn.PLACEMENT]
    state.store.rows[number, StoredColumn.PLACEMENT] = placement


@helper
def _target(state: State, drafted: int, slot: int) -> int:
    """Return the counter or gate that a drafted entry or gate counts towards."""
    return slot if drafted == 0 else state.gate_draft[drafted - 1, GateDraft.NUMBER]


@helper
def _at_rest(units: int) -> int:
    """Return a counter that no event has touched."""
    return units << arrays.COUNT_BITS


@helper
def _new_pivot(state: State, field: int) -> int:
    """Make an empty pivot for a field, and return its number."""
    pivot = state.tops[Top.PIVOTS]
    state.tops[Top.PIVOTS] += 1
    state.fields.pivot[field] = pivot
    for kind in range(arrays.KINDS):
        state.lists[pivot, kind] = -1
    state.pivots[pivot, Pivot.FIELD] = field
    state.pivots[pivot, Pivot.MEMBERS] = 0
    _clear_counters(state, pivot)
    return pivot


@helper
def _clear_counters(state: State, pivot: int) -> None:
    row = state.pivots[pivot]
    row[Pivot.COUNTERS], row[Pivot.CLASS], row[Pivot.TOP], row[Pivot.FREE] = -1, 0, 0, -1


@helper
def _new_counter(state: State, pivot: int) -> int:
    """Return the number, within its pivot, of a free counter."""
    row, counters = state.pivots[pivot], state.counters
    if row[Pivot.COUNTERS] < 0:
        row[Pivot.COUNTERS] = blocks.take(counters, np.int64(0))
    elif row[Pivot.FREE] < 0 and row[Pivot.TOP] == size_of(row[Pivot.CLASS]):
        old = row[Pivot.COUNTERS]
        new = blocks.moved(counters, old, row[Pivot.CLASS], row[Pivot.TOP], row[Pivot.CLASS] + 1)
        for i in range(row[Pivot.TOP]):
            state.holders[new + i] = state.holders[old + i]
        row[Pivot.COUNTERS] = new
        row[Pivot.CLASS] += 1
    return free_lists.take(state.holders[row[Pivot.COUNTERS] :], row, _FREE, _TOP)


@kernel
def withdraw(state: State, batch: Expressions) -> None:
    """Take expressions out of all their placements."""
    for i in range(batch.numbers.shape[0]):
        number = batch.numbers[i]
        placement = np.int64(state.store.rows[number, StoredColumn.PLACEMENT])
        if placement < 0:
            continue
        first = state.pivots[state.placements[placement, Placement.PIVOT], Pivot.FIELD]
        draft(state, batch, i, first == arrays.ALWAYS)
        while placement >= 0:
            row = state.placements[placement]
            following = np.int64(row[Placement.NEXT])
            _withdraw_from(
                state,
                np.int64(row[Placement.PIVOT]),
                np.int64(row[Placement.SLOT]),
                np.int64(row[Placement.FIRST_GATE]),
            )
            free_lists.give(state.placements[:, Placement.NEXT], state.tops, _FREE_PLACEMENT, placement)
            placement = following
        state.store.rows[number, StoredColumn.PLACEMENT] = -1


@helper
def _withdraw_from(state: State, pivot: int, slot: int, gate: int) -> None:
    """Take the drafted expression out of one pivot, and free its counter and gates there."""
    for opened in range(state.tops[Top.OPENED]):
        state.gate_draft[opened, GateDraft.NUMBER] = gate | arrays.GATE
        following = state.gates[gate, Gate.NEXT]
        free_lists.give(state.gates[:, Gate.NEXT], state.tops, _FREE_GATE, gate)
        gate = following
    for e in range(state.tops[Top.EMITTED]):
        entry = state.draft[e]
        erase(state, pivot, entry, _target(state, entry[arrays.EntryDraft.TARGET], slot))
    row = state.pivots[pivot]
    free_lists.give(state.holders[row[Pivot.COUNTERS] :], row, _FREE, slot)
    row[Pivot.MEMBERS] -= 1
    if row[Pivot.MEMBERS] == 0:
        blocks.give(state.counters, row[Pivot.COUNTERS], row[Pivot.CLASS])
        _clear_counters(state, pivot)


# Capacity is checked before an expression is placed, so that placing never stops half way.


@helper
def _has_draft_room(state: State, batch: Expressions, i: int) -> bool:
    """Tell whether the draft arrays can take an expression; reset what the last check found missing."""
    begin, end = batch.bounds[batch.offsets[i]], batch.bounds[batch.offsets[i + 1]]
    gates = end - begin + batch.offsets[i + 1] - batch.offsets[i]
    entries = 2 * (end - begin) + 1 + member_count(batch, begin, end)
    for top in (Top.NEEDED_ENTRIES, Top.NEEDED_SEGMENTS, Top.NEEDED_COUNTERS, Top.COPIES, Top.OPENED):
        state.tops[top] = 0
    return (
        entries <= state.draft.shape[0]
        and entries <= state.chosen.shape[0]
        and gates <= state.gate_draft.shape[0]
    )


@helper
def _has_room(state: State, copies: int) -> bool:
    """Tell whether there is capacity to place the drafted expression; the NEEDED tops say how much it takes."""
    tops = state.tops
    for copy in range(copies):
        pivot = np.int64(state.fields.pivot[state.chosen[copy]])
        tops[Top.NEEDED_COUNTERS] += _counter_growth(state, pivot)
    return (
        _has_entry_room(state, copies)
        and tops[Top.PIVOTS] + copies <= state.pivots.shape[0]
        and tops[Top.GATES] + tops[Top.OPENED] * copies <= state.gates.shape[0]
        and tops[Top.PLACEMENTS] + copies <= state.placements.shape[0]
        and state.counters.top[0] + tops[Top.NEEDED_COUNTERS] <= state.counters.rows.shape[0]
    )


@helper
def _counter_growth(state: State, pivot: int) -> int:
    """Return how many rows one more counter takes at a pivot."""
    if pivot < 0 or state.pivots[pivot, Pivot.COUNTERS] < 0:
        return np.int64(1)
    row = state.pivots[pivot]
    if row[Pivot.FREE] >= 0 or row[Pivot.TOP] < size_of(row[Pivot.CLASS]):
        return np.int64(0)
    return size_of(row[Pivot.CLASS] + 1)


@helper
def _has_entry_room(state: State, copies: int) -> bool:
    """Tell whether there is capacity for the entries and segments of the drafted expression."""
    tops = state.tops
    emitted = tops[Top.EMITTED]
    rows = state.entries.rows.shape[0] - state.entries.top[0]
    segments = state.segments.shape[0] - tops[Top.SEGMENTS]
    # A cheap upper bound first: the largest segment grows for each entry, and the longest lists are split.
    lists, longest = min(emitted, np.int64(arrays.KINDS)), tops[Top.MOST_SEGMENTS]
    growing = emitted * (2 * tops[Top.LARGEST_SEGMENT] + 2) + lists * (18 * longest + 4 * emitted)
    if 2 * copies * growing <= rows and copies * lists * (4 * longest + emitted + 2) <= segments:
        return True
    for copy in range(copies):
        pivot = np.int64(state.fields.pivot[state.chosen[copy]])
        if pivot < 0:
            tops[Top.NEEDED_SEGMENTS] += arrays.KINDS * (emitted + 2)
            continue
        for kind in range(arrays.KINDS):
            more, further = split_growth(state, pivot, kind, emitted)
            tops[Top.NEEDED_ENTRIES] += more
            tops[Top.NEEDED_SEGMENTS] += further
        last = np.int64(-1)
        for e in range(emitted):
            row, more = growth(state, pivot, state.draft[e], emitted)
            tops[Top.NEEDED_ENTRIES] += more if row != last or row < 0 else 0
            last = row
    # Several entries may go into one segment, which then grows several times; and new lists are split.
    tops[Top.NEEDED_ENTRIES] = 2 * tops[Top.NEEDED_ENTRIES] + 12 * copies * emitted
    return tops[Top.NEEDED_ENTRIES] <= rows and tops[Top.NEEDED_SEGMENTS] <= segments
