"""How likely events are to satisfy predicates, from the events that came.

Counts are weighted: a later event counts for more, so that old ones fade without a pass over all counters. Before there are
events, a value is taken to be as likely as any other value that subscriptions ask for.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.grids import share_inside
from tocsin.matching.adaptive._kernels.predicates import float_of
from tocsin.matching.adaptive.state import (
    CELL,
    CHUNK,
    CODE_BITS,
    EVERY_EVENT,
    HIGHEST,
    INSIDE,
    OP_BITS,
    PRESENCE,
    SLOT_MASK,
    VALUES,
    WIDEST,
    Access,
    Code,
    DenseCount,
    ListRow,
    Slot,
    State,
    Top,
    Total,
)
from tocsin.matching.encoding.codes import Op
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper

# Measured, in nanoseconds
ALONE: Final = 6.0  # to check a conjunction for an event
TOGETHER: Final = 12.0  # to check one for a chunk of events, when the bits of its predicates are known
BITS: Final = 60.0  # the bits of a predicate
PRIOR: Final = 8.0  # events that the guess is worth
ATTRIBUTES: Final = 64.0  # of an event, where none has come
_LOW_HALF: Final = 0xFFFFFFFF
_RANGE: Final = 0.3  # of an interval, where nothing is known
_NEGATIVE: Final = 0.9
_FEW: Final = 16  # members of a list that are looked up


@helper
def presence(state: State, slot: int) -> float:
    """Return the probability that an event has a value in a slot."""
    prior = PRIOR * state.totals[Total.WEIGHT]
    guess = min(ATTRIBUTES / max(np.float64(state.tops[Top.SLOTS]), 1.0), 1.0)
    return min((state.slots.seen[slot] + prior * guess) / (state.totals[Total.EVENTS] + prior), 1.0)


@helper
def expected(state: State, code: int) -> float:
    """Return the probability that an event satisfies a predicate."""
    keys = state.predicates.entries.keys
    tag = keys[code, Code.TAG]
    op, slot = tag >> OP_BITS, tag & SLOT_MASK
    if op == Op.RESIDUAL:
        return 1.0
    if op == CELL:
        return _measured(state, code, slot, presence(state, -1 - state.slots.rows[slot, Slot.FIELD]))
    there = presence(state, slot)
    if op == Op.EQ:
        return _measured(state, code, slot, there)
    if op == Op.PRESENT:
        return there
    if op == Op.MISSING:
        return 1.0 - there
    if op == Op.IN:
        return min(_of_list(state, keys[code, Code.LOW]), there)
    if (INSIDE >> op) & 1:
        grid = state.slots.rows[slot, Slot.GRID]
        if grid > 0:
            return there * share_inside(state, grid - 1, keys[code, Code.LOW], keys[code, Code.HIGH])
        return there * _share_drawn(state, slot, keys[code, Code.LOW], keys[code, Code.HIGH])
    return there * _NEGATIVE


@helper
def _share_drawn(state: State, slot: int, low: int, high: int) -> float:
    """Return the share of a slot's values that is expected in an interval, by those that were drawn of events."""
    inside, known = _RANGE, 1.0
    for i in range(VALUES):
        value = state.slots.drawn[slot, i]
        if value != HIGHEST:
            known += 1.0
            inside += low <= value <= high
    return inside / known


@helper
def _measured(state: State, code: int, slot: int, there: float) -> float:
    """Return the probability of an equality or a cell, which are counted."""
    others = max(np.float64(state.slots.rows[slot, Slot.EQUALITIES]), 1.0)
    prior = PRIOR * state.totals[Total.WEIGHT]
    seen = float_of(state.predicates.entries.keys[code, Code.USE])
    return min((seen + prior * there / others) / (state.totals[Total.EVENTS] + prior), there)


@helper
def _of_list(state: State, code: int) -> float:
    """Return the probability of a value in a list."""
    row, total, found = state.lists[code], 0.0, np.int64(0)
    for m in range(row[ListRow.FIRST], row[ListRow.FIRST] + min(row[ListRow.COUNT], _FEW)):
        slot, key = state.members.rows[m, 0], state.members.rows[m, 1]
        point = hash_index.find(state.predicates.entries, (np.int64(Op.EQ) << OP_BITS) | slot, key, key)
        if point >= 0:
            total += _measured(state, point, slot, presence(state, slot))
        else:
            total += presence(state, slot) / (1.0 + state.slots.rows[slot, Slot.EQUALITIES])
        found += 1
    return total * row[ListRow.COUNT] / max(found, 1)


@helper
def chance_of_path(state: State, entry: int) -> float:
    """Return how likely it is at least that an event reaches an access path.

    A few hits are no evidence: of many unlikely paths some are reached by chance, and what they hold would move for nothing.
    """
    first, second = state.access.keys[entry, Access.FIRST], state.access.keys[entry, Access.SECOND]
    if first == EVERY_EVENT:
        return 1.0
    chance = 1.0
    if first & _LOW_HALF == PRESENCE:
        chance = presence(state, first >> CODE_BITS)
    else:
        for which in range(WIDEST):
            code = code_at(first, second, which)
            if code >= 0:
                chance *= _at_least(state, code)
    return min(max(chance, _evidence(state, float_of(state.access.keys[entry, Access.WORK]))), 1.0)


@helper
def together(state: State, codes: Int64s, size: int) -> float:
    """Return the nanoseconds that a conjunction takes for a chunk of events: bits that others need are shared."""
    bits = 0.0
    for j in range(size):
        bits += 1.0 / max(np.float64(state.predicates.uses[codes[j]]), 1.0)
    return TOGETHER + BITS * bits


@helper
def cost_of(state: State, chance: float, codes: Int64s, size: int) -> float:
    """Return what a conjunction costs an event, in checks, on a path that so many events reach.

    Where many events are matched together, a hot cluster costs the same however many events reach it. Some events come alone.
    """
    if state.dense.used[DenseCount.HOT] == 0:
        return chance
    return min(chance, together(state, codes, size) / (CHUNK * ALONE) + state.totals[Total.ALONE] * chance)


@helper
def _at_least(state: State, code: int) -> float:
    """Return how likely it is at least that an event satisfies a predicate."""
    likely = expected(state, code)
    tag = state.predicates.entries.keys[code, Code.TAG]
    op = tag >> OP_BITS
    if op != Op.EQ and op != CELL:  # noqa: PLR1714 - the compiler takes no tuple of both
        return likely
    slot = tag & SLOT_MASK
    guess = presence(state, slot) / max(np.float64(state.slots.rows[slot, Slot.EQUALITIES]), 1.0)
    return max(min(likely, guess), _evidence(state, float_of(state.predicates.entries.keys[code, Code.USE])))


@helper
def _evidence(state: State, hits: float) -> float:
    """Return the share of events that is sure after so many weighted hits."""
    sure = hits - 2.0 * np.sqrt(hits * state.totals[Total.WEIGHT])
    return max(sure, 0.0) / (state.totals[Total.EVENTS] + PRIOR * state.totals[Total.WEIGHT])


@helper
def code_at(first: int, second: int, which: int) -> int:
    """Return one code of an access path, or -1."""
    half = first if which < 2 else second
    if half < 0:
        return np.int64(-1)
    code = half >> CODE_BITS if which % 2 == 0 else half & _LOW_HALF
    if code >= PRESENCE or (which == 0 and half & _LOW_HALF == PRESENCE):
        return np.int64(-1)
    return code
