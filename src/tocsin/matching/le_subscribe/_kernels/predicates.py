"""Phase 1: the registry of predicates, their indexes, and which of them an event satisfies (Le Subscribe, 2.1)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.predicates import is_in_order
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.le_subscribe.state import (
    EVALUATE,
    FALSE,
    RESIDUAL,
    TRUE,
    ClusterStateAddress,
    ClusterTotal,
    Postings,
    State,
)
from tocsin.structures import free_lists, hash_index, marks, sorted_runs
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Float64s, Int32s, Int64s
from tocsin.structures.jit import helper, kernel

_TOP, _FREE = 0, 1  # places in `Postings.counters`

WIDE: Final = 1024  # a run with more constants than this is evaluated, not marked
_NARROW: Final = 256  # and with fewer than this is marked again
PRIOR: Final = 64.0  # the weight, in events, of the assumed selectivity


@kernel
def register_predicates(
    address: ClusterStateAddress,
    batch: EncodedConjunctions,
    start: int,
    evaluates_wide: bool,
    slots: Int64s,
) -> int:
    """Find or make the slot of each predicate from `start` on, and count its use.

    Returns how many were done: fewer than all if there was no room. A new slot is written as -1 - slot.
    """
    state: State = load(address)
    index = state.predicates.entries
    marks.clear(state.predicates.marks)
    for i in range(start, batch.tags.shape[0]):
        tag, low, high = batch.tags[i], batch.lows[i], batch.highs[i]
        slot = hash_index.find(index, tag, low, high)
        if slot >= 0:
            state.predicates.uses[slot] += 1
            slots[i] = slot
            continue
        if not _fits(state, tag):
            return i
        slot = hash_index.insert(index, tag, low, high)
        state.predicates.uses[slot] = 1
        state.predicates.hits[slot] = 0.0
        state.predicates.access[slot] = -1
        _enter(state, slot, evaluates_wide)
        slots[i] = -1 - slot
    return batch.tags.shape[0]


@helper
def _fits(state: State, tag: int) -> bool:
    """Tell whether one more predicate with this tag fits into the arrays."""
    op, field = tag >> FIELD_BITS, tag & FIELD_MASK
    if state.predicates.entries.counters[1] + 1 >= state.predicates.uses.shape[0]:
        return False
    if Op.LT <= op <= Op.GE:
        return sorted_runs.has_room(state.runs, np.int64(state.fields.runs[field, op - Op.LT]))
    if op == Op.NE:
        return _posting_fits(state.postings)
    return True


@helper
def _posting_fits(postings: Postings) -> bool:
    return postings.entries.counters[1] + 1 < postings.first.shape[0] and (
        postings.counters[_FREE] >= 0 or postings.counters[_TOP] < postings.slot.shape[0]
    )


@helper
def _enter(state: State, slot: int, evaluates_wide: bool) -> None:
    """Put a new slot into the index that its operator asks for."""
    keys = state.predicates.entries.keys
    op, field, key = keys[slot, 0] >> FIELD_BITS, keys[slot, 0] & FIELD_MASK, keys[slot, 1]
    rest = FALSE
    _count_other(state, op, field, 1)
    if op == Op.EQ:
        state.fields.equalities[field] += 1
    elif Op.LT <= op <= Op.GE:
        run = np.int64(state.fields.runs[field, op - Op.LT])
        if run < 0:
            run = sorted_runs.new_run(state.runs)
            state.fields.runs[field, op - Op.LT] = run
        sorted_runs.insert(state.runs, run, key, slot)
        if evaluates_wide and state.runs.size[run] > WIDE and not state.fields.is_wide[field, op - Op.LT]:
            state.fields.is_wide[field, op - Op.LT] = 1
            _rest_all(state, run, EVALUATE)
        rest = EVALUATE if state.fields.is_wide[field, op - Op.LT] else FALSE
    elif op == Op.NE:
        _post_one(state.fields.posted, state.postings, slot, field, key)
        rest = EVALUATE
    elif op == Op.PRESENT:
        state.fields.present[field] = slot
    elif op == Op.MISSING:
        state.fields.missing[field] = slot
        rest = TRUE
    elif op == Op.RESIDUAL:
        rest = RESIDUAL
    elif op != Op.IN:
        rest = EVALUATE
    marks.set_rest(state.predicates.marks, slot, rest)


@helper
def _count_other(state: State, op: int, field: int, change: int) -> None:
    """Count a predicate that is no equality where `observe` looks for it."""
    if op in (Op.EQ, Op.RESIDUAL):
        return
    kind = field % FIELDS
    if kind != Field.ANY:
        state.fields.others[field] += change
        return
    for other in range(FIELDS):
        state.fields.others[field - kind + other] += change


@helper
def _rest_all(state: State, run: int, rest: int) -> None:
    """Change the resting value of all of a run's slots; a wide run is not walked for each event."""
    runs = state.runs
    for at in range(runs.leaves[run]):
        leaf = runs.words[runs.shelf[run] + at]
        for i in range(runs.count[leaf]):
            marks.set_rest(state.predicates.marks, runs.values[leaf, i], rest)


@helper
def _post_one(posted: Int32s, postings: Postings, slot: int, field: int, key: int) -> None:
    """Prepend a predicate's slot to the postings of a value."""
    entry = hash_index.find(postings.entries, field, key, 0)
    if entry < 0:
        entry = hash_index.insert(postings.entries, field, key, 0)
        postings.first[entry] = -1
    node = free_lists.take(postings.following, postings.counters, _FREE, _TOP)
    postings.slot[node] = slot
    postings.following[node] = postings.first[entry]
    postings.first[entry] = node
    posted[field] += 1


@helper
def _unpost_one(posted: Int32s, postings: Postings, slot: int, field: int, key: int) -> None:
    """Remove a predicate's slot from the postings of a value."""
    entry = hash_index.find(postings.entries, field, key, 0)
    before, node = np.int64(-1), np.int64(postings.first[entry])
    while postings.slot[node] != slot:
        before = node
        node = np.int64(postings.following[node])
    if before < 0:
        postings.first[entry] = postings.following[node]
    else:
        postings.following[before] = postings.following[node]
    free_lists.give(postings.following, postings.counters, _FREE, node)
    posted[field] -= 1
    if postings.first[entry] < 0:
        hash_index.remove(postings.entries, entry)


@kernel
def post(posted: Int32s, postings: Postings, slot: int, fields: Int64s, keys: Int64s, start: int) -> int:
    """Enter a list's members from `start` on; return how many were done: fewer than all if there was no room."""
    for i in range(start, fields.shape[0]):
        if not _posting_fits(postings):
            return i
        _post_one(posted, postings, slot, fields[i], keys[i])
    return fields.shape[0]


@kernel
def unpost(posted: Int32s, postings: Postings, slot: int, fields: Int64s, keys: Int64s) -> None:
    """Take out a list's members."""
    for i in range(fields.shape[0]):
        _unpost_one(posted, postings, slot, fields[i], keys[i])


@helper
def release_slot(state: State, slot: int) -> bool:
    """Give back one use of a slot; return True if it was the last, and the slot is free."""
    predicates = state.predicates
    predicates.uses[slot] -= 1
    if predicates.uses[slot] > 0:
        return False
    tag, key = predicates.entries.keys[slot, 0], predicates.entries.keys[slot, 1]
    op, field = tag >> FIELD_BITS, tag & FIELD_MASK
    _count_other(state, op, field, -1)
    if op == Op.EQ:
        state.fields.equalities[field] -= 1
    elif Op.LT <= op <= Op.GE:
        run = np.int64(state.fields.runs[field, op - Op.LT])
        sorted_runs.delete(state.runs, run, key)
        if state.fields.is_wide[field, op - Op.LT] and state.runs.size[run] < _NARROW:
            state.fields.is_wide[field, op - Op.LT] = 0
            _rest_all(state, run, FALSE)
    elif op == Op.NE:
        _unpost_one(state.fields.posted, state.postings, slot, field, key)
    elif op == Op.PRESENT:
        state.fields.present[field] = -1
    elif op == Op.MISSING:
        state.fields.missing[field] = -1
    hash_index.remove(predicates.entries, slot)
    return True


@helper
def observe(state: State, events: EncodedEvents, event: int) -> int:
    """Set the predicate vector for an event: mark the satisfied predicates, and keep the values of the others.

    Costs one look-up for each pair, and one write for each satisfied predicate. Equalities are counted. Returns how
    many of them the event satisfies: they are the first that the vector lists as touched.
    """
    predicates, fields, vector = state.predicates, state.fields, state.predicates.marks
    marks.clear(vector)
    state.totals[ClusterTotal.STAMP] += 1.0
    stamp = np.int64(state.totals[ClusterTotal.STAMP])
    weight = state.totals[ClusterTotal.WEIGHT]
    state.totals[ClusterTotal.EVENTS] += weight
    touched = np.int64(0)
    busy = False
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        slot = np.int64(-1)
        if fields.equalities[field] > 0:
            slot = hash_index.find(predicates.entries, field, events.keys[j], events.keys[j])
            if slot >= 0:
                touched = marks.touch(vector, slot, TRUE, touched)
                predicates.hits[slot] += weight
        fields.stamp[field] = stamp
        fields.slot[field] = slot
        busy |= fields.others[field] > 0 or field % FIELDS == Field.BIG
    vector.count[0] = touched
    if busy:
        for j in range(events.offsets[event], events.offsets[event + 1]):
            _observe_others(
                state, np.int64(events.fields[j]), events.keys[j], events.lows[j], events.highs[j]
            )
    return touched


@helper
def _observe_others(state: State, field: int, key: int, low: int, high: int) -> None:
    """Mark the predicates other than equalities that a value satisfies, and keep the value for evaluation."""
    fields = state.fields
    if fields.posted[field] > 0:
        _strike(state, field, key)
    kind = field % FIELDS
    present = np.int64(fields.present[field - kind + Field.ANY])
    if present >= 0:
        marks.mark(state.predicates.marks, present, TRUE)
    missing = np.int64(fields.missing[field - kind + Field.ANY])
    if missing >= 0:
        marks.mark(state.predicates.marks, missing, FALSE)
    if kind == Field.BIG:  # it has a place in the order of numbers, but equals none
        field += Field.NUMBER - Field.BIG
        fields.stamp[field] = np.int64(state.totals[ClusterTotal.STAMP])
        fields.slot[field] = -1
    if fields.others[field] > 0:
        fields.low[field] = low
        fields.high[field] = high
        _mark_runs(state, field, low, high)


@helper
def _strike(state: State, field: int, key: int) -> None:
    """Mark the lists that contain a value: `in` is true, `not in` and `!=` are false."""
    postings, predicates = state.postings, state.predicates
    entry = hash_index.find(postings.entries, field, key, 0)
    if entry < 0:
        return
    node = np.int64(postings.first[entry])
    while node >= 0:
        slot = np.int64(postings.slot[node])
        is_in = (predicates.entries.keys[slot, 0] >> FIELD_BITS) == Op.IN
        marks.mark(predicates.marks, slot, TRUE if is_in else FALSE)
        node = np.int64(postings.following[node])


@helper
def _mark_runs(state: State, field: int, low: int, high: int) -> None:
    """Mark the satisfied ordered predicates: a value lies at or between `low` and `high`, which are neighbours."""
    for which in range(4):
        run = np.int64(state.fields.runs[field, which])
        if run < 0 or state.fields.is_wide[field, which]:
            continue
        if which >= Op.GT - Op.LT:
            limit = high if which == Op.GT - Op.LT else low + 1
            _mark_below(state, run, limit)
        else:
            limit = low + 1 if which == 0 else high
            _mark_from(state, run, limit)


@helper
def _mark_below(state: State, run: int, limit: int) -> None:
    """Mark the predicates of a sorted run whose constants are below `limit` as true."""
    runs, vector = state.runs, state.predicates.marks
    for at in range(runs.leaves[run]):
        leaf = np.int64(runs.words[runs.shelf[run] + at])
        for i in range(runs.count[leaf]):
            if runs.keys[leaf, i] >= limit:
                return
            marks.mark(vector, runs.values[leaf, i], TRUE)


@helper
def _mark_from(state: State, run: int, limit: int) -> None:
    """Mark the predicates of a sorted run whose constants are `limit` or more as true."""
    runs, vector = state.runs, state.predicates.marks
    for at in range(runs.leaves[run] - 1, -1, -1):
        leaf = np.int64(runs.words[runs.shelf[run] + at])
        for i in range(runs.count[leaf] - 1, -1, -1):
            if runs.keys[leaf, i] < limit:
                return
            marks.mark(vector, runs.values[leaf, i], TRUE)


@helper
def evaluate(state: State, slot: int) -> bool:
    """Return whether the event at hand satisfies a predicate that the indexes do not mark."""
    keys, fields = state.predicates.entries.keys, state.fields
    tag = keys[slot, 0]
    op, field = tag >> FIELD_BITS, tag & FIELD_MASK
    if fields.stamp[field] != np.int64(state.totals[ClusterTotal.STAMP]):
        return False
    if op < Op.LT or op > Op.NOT_BETWEEN:
        return True  # `!=` or `not in`: `_strike` marks it false if its list has the value
    return is_in_order(op, fields.low[field], fields.high[field], keys[slot, 1], keys[slot, 2])


@helper
def selectivity(state: State, slot: int) -> float:
    """Return the probability that an event satisfies an equality: counted, and while little is known, assumed.

    Where no event has been seen, the constants of a field are taken to be equally likely.
    """
    field = state.predicates.entries.keys[slot, 0] & FIELD_MASK
    assumed = 1.0 / (1.0 + state.fields.equalities[field])
    doubt = PRIOR * state.totals[ClusterTotal.WEIGHT]
    return (state.predicates.hits[slot] + doubt * assumed) / (state.totals[ClusterTotal.EVENTS] + doubt)


@kernel
def decay(totals: Float64s, hits: Float64s, reached: Float64s, factor: float) -> None:
    """Let all counts so far weigh less by `factor`, in constant time: the next events weigh more instead."""
    totals[ClusterTotal.WEIGHT] /= factor
    if totals[ClusterTotal.WEIGHT] > 1e100:
        scale = 1.0 / totals[ClusterTotal.WEIGHT]
        for i in range(hits.shape[0]):
            hits[i] *= scale
        for i in range(reached.shape[0]):
            reached[i] *= scale
        totals[ClusterTotal.EVENTS] *= scale
        totals[ClusterTotal.WEIGHT] = 1.0
