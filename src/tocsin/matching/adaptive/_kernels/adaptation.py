"""Reviewing clusters by what events cost, a bounded step at a time: which conjunctions have a better access path now."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.access import chance_of, choose, dimension, is_implied
from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    copy_codes,
    large_of,
    length_of,
    start_of,
    words_in,
)
from tocsin.matching.adaptive._kernels.expectations import chance_of_path, cost_of, expected
from tocsin.matching.adaptive._kernels.predicates import float_of, with_float
from tocsin.matching.adaptive._kernels.sections import QUICK, share_checked
from tocsin.matching.adaptive.state import (
    INSIDE,
    OP_BITS,
    SLOT_MASK,
    Access,
    Code,
    Large,
    Slot,
    State,
    Stored,
    Top,
    Total,
)
from tocsin.matching.encoding.codes import FIELDS, Field, Op
from tocsin.matching.le_subscribe._kernels.greedy import MOST, Sample
from tocsin.structures.array_types import Float64s, Int32s, Int64s
from tocsin.structures.jit import helper, kernel

_LEAST_SHARE: Final = 0.01  # of the conjunctions of a divided cluster that is checked
_WIDER: Final = 2.0  # sections than the bounds of their conjunctions


@kernel
def gather_suspects(state: State, offset: int, numbers: Int64s) -> tuple[int, int]:
    """Write the conjunctions of the clusters that were noted, from an offset in the last one on.

    Return how many there was room for, and the offset to go on from.
    """
    tops, count = state.tops, np.int64(0)
    while tops[Top.SUSPECTS] > 0:
        place = state.access.keys[state.review.suspects[tops[Top.SUSPECTS] - 1], Access.PLACE]
        at, start, end = np.int64(0), start_of(place), words_in(place)
        while at < end:
            number = np.int64(state.words.rows[start + at + NUMBER])
            if at >= offset and number >= 0:
                if count == numbers.shape[0]:
                    return count, at
                numbers[count] = number
                count += 1
            at += length_of(np.int64(state.words.rows[start + at + HEAD]))
        tops[Top.SUSPECTS] -= 1
        offset = np.int64(0)
    return count, np.int64(0)


@kernel
def draw(
    state: State,
    numbers: Int32s,
    scale: float,
    placed: float,
    sample: Sample,
    demand: Float64s,
    scratch: Int64s,
) -> float:
    """Write conjunctions into a sample, by the parts that a key may have of them; return what they cost an event, in checks.

    Each stands for `scale` conjunctions; if that is negative, for so many checks of an event. `placed` is the share of all
    conjunctions that are in clusters already. `demand` is, by slot, how many checks conjunctions cost that have an interval
    there, and no grid.
    """
    sample.count[0], total = 0, 0.0
    for i in range(numbers.shape[0]):
        entry = np.int64(state.store.rows[numbers[i], Stored.PATH])
        if entry < 0:
            continue
        size, at, found = copy_codes(state, numbers[i], scratch), sample.count[0], np.int64(0)
        best, _, _ = choose(state, scratch, scratch[size:], size)
        best = cost_of(state, best, scratch, size)
        is_large = words_in(state.access.keys[entry, Access.PLACE]) >= placed * state.tops[Top.LARGE]
        share = _share_of(state, entry, is_large, scratch, size)
        best *= share
        cost = max(cost_of(state, chance_of_path(state, entry) * share, scratch, size), best, 1e-9)
        weight = scale
        # Before events have come, nobody knows whether the cells of a slot do better than the sections of a large cluster.
        is_open = state.totals[Total.EVENTS] > 0 or not is_large
        if scale < 0:
            weight = -scale / cost
        total += cost
        for j in range(size):
            code = scratch[j]
            tag = state.predicates.entries.keys[code, Code.TAG]
            op, slot = tag >> OP_BITS, tag & SLOT_MASK
            if is_open and (INSIDE >> op) & 1 and op != Op.EQ and state.slots.rows[slot, Slot.GRID] == 0:
                demand[slot] += weight * best
            slot, part = dimension(state, code)
            # A level of cells has no field. A string passes several tests of a field, so that these make poor keys.
            field = state.slots.rows[slot, Slot.FIELD] if slot >= 0 else np.int64(Field.TEXT)
            if field >= 0 and field % FIELDS == Field.TEXT:
                continue
            found = _insert(sample, found, slot, chance_of(state, code, slot, part))
        if found >= 2:
            sample.equalities[at] = found
            sample.weight[at] = weight
            sample.current[at] = best
            sample.count[0] += 1
    return total


@helper
def _share_of(state: State, entry: int, is_large: bool, codes: Int64s, size: int) -> float:
    """Return what a conjunction costs an event on its path, in checks, where its cluster is large and divided, or soon will be."""
    large, share = large_of(state, entry), share_checked(state, entry)
    if state.totals[Total.EVENTS] == 0.0:
        return QUICK if is_large else share
    if large < 0 or state.large.rows[large, Large.SECTIONS] > 0:
        return share
    first, second = state.access.keys[entry, Access.FIRST], state.access.keys[entry, Access.SECOND]
    least, next_least, keys = 1.0, 1.0, state.predicates.entries.keys
    for j in range(size):
        is_bound = (INSIDE >> (keys[codes[j], Code.TAG] >> OP_BITS)) & 1
        if is_bound and not is_implied(first, second, codes[j]):
            chance = expected(state, codes[j])
            next_least = min(next_least, max(least, chance))
            least = min(least, chance)
    return min(_WIDER * least * next_least + _LEAST_SHARE, share)


@helper
def _insert(sample: Sample, found: int, slot: int, chance: float) -> int:
    """Add a part to the conjunction that is drawn, in the order of slots; of too many the likeliest is left out."""
    at = sample.count[0]
    for k in range(found):
        if sample.fields[at, k] == slot:
            return found
    if found == MOST:
        worst = np.int64(0)
        for k in range(1, MOST):
            if sample.probability[at, k] > sample.probability[at, worst]:
                worst = k
        if sample.probability[at, worst] <= chance:
            return found
        for k in range(worst, MOST - 1):
            sample.fields[at, k] = sample.fields[at, k + 1]
            sample.probability[at, k] = sample.probability[at, k + 1]
        found -= 1
    k = found
    while k > 0 and sample.fields[at, k - 1] > slot:
        sample.fields[at, k] = sample.fields[at, k - 1]
        sample.probability[at, k] = sample.probability[at, k - 1]
        k -= 1
    sample.fields[at, k], sample.probability[at, k] = slot, chance
    return found + 1


@kernel
def intervals_of(
    state: State, numbers: Int32s, slot: int, lows: Int64s, highs: Int64s, scratch: Int64s
) -> int:
    """Write the intervals that conjunctions have in a slot; return how many, up to the room that there is."""
    count = np.int64(0)
    for i in range(numbers.shape[0]):
        if state.store.rows[numbers[i], Stored.PATH] < 0:
            continue
        size = copy_codes(state, numbers[i], scratch)
        for j in range(size):
            row = state.predicates.entries.keys[scratch[j]]
            if (
                (INSIDE >> (row[Code.TAG] >> OP_BITS)) & 1
                and row[Code.TAG] & SLOT_MASK == slot
                and count < lows.shape[0]
            ):
                lows[count], highs[count] = row[Code.LOW], row[Code.HIGH]
                count += 1
    return count


@kernel
def scale_weights(state: State, factor: float) -> None:
    """Multiply all weighted counts: the weight of the next event has become too large."""
    predicates, access = state.predicates.entries, state.access
    for code in range(predicates.counters[1]):
        predicates.keys[code, Code.USE] = with_float(
            predicates.keys[code, Code.USE], factor * float_of(predicates.keys[code, Code.USE])
        )
    for entry in range(access.counters[1]):
        access.keys[entry, Access.WORK] = with_float(
            access.keys[entry, Access.WORK], factor * float_of(access.keys[entry, Access.WORK])
        )
    for slot in range(state.tops[Top.SLOTS]):
        state.slots.seen[slot] *= factor
    bounds = state.grids.bounds
    for i in range(bounds.top[0]):
        bounds.rows[i, 1] = np.float64(np.int64(bounds.rows[i, 1]).view(np.float64) * factor).view(np.int64)
    state.totals[Total.EVENTS] *= factor
    state.totals[Total.WEIGHT] *= factor
