"""Reviewing clusters by what events cost, a bounded step at a time: which conjunctions have a better access path now."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.access import chance_of, choose, dimension, drop_entry, entry_of
from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    copy_codes,
    growth,
    is_empty,
    length_of,
    longest,
    start_of,
    take_out,
    words_in,
)
from tocsin.matching.adaptive._kernels.expectations import chance_of_path, presence
from tocsin.matching.adaptive._kernels.placement import has_room, has_words, write
from tocsin.matching.adaptive._kernels.predicates import float_of, with_float
from tocsin.matching.adaptive.state import (
    INSIDE,
    OP_BITS,
    SLOT_MASK,
    Access,
    Code,
    Slot,
    State,
    Stored,
    Top,
    Total,
)
from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.encoding.codes import FIELDS, Field, Op
from tocsin.matching.le_subscribe._kernels.greedy import MOST, Sample
from tocsin.structures.array_types import Float64s, Int32s, Int64s
from tocsin.structures.jit import helper, kernel

BETTER: Final = 0.5  # a conjunction moves if it is then checked so many times as often, or less


@kernel
def review(state: State, offset: int, budget: int, moves: Int64s, scratch: Int64s) -> tuple[int, int, int]:
    """Write conjunctions of the clusters that were noted, from an offset in the last one on, that have a better access path.

    Return how many, the offset to go on from, and how many were examined, up to `budget`.
    """
    tops, count, examined = state.tops, np.int64(0), np.int64(0)
    while tops[Top.SUSPECTS] > 0:
        entry = np.int64(state.review.suspects[tops[Top.SUSPECTS] - 1])
        place = state.access.keys[entry, Access.PLACE]
        at, start, end = np.int64(0), start_of(place), words_in(place)
        now = chance_of_path(state, entry) if end > 0 else 0.0
        while at < end:
            number = np.int64(state.words.rows[start + at + NUMBER])
            if at >= offset and number >= 0:
                if examined == budget or count == moves.shape[0]:
                    return count, at, examined
                examined += 1
                size = copy_codes(state, number, scratch)
                if _is_better(state, entry, now, size, scratch):
                    moves[count] = number
                    count += 1
            at += length_of(np.int64(state.words.rows[start + at + HEAD]))
        tops[Top.SUSPECTS] -= 1
        offset = np.int64(0)
    return count, np.int64(0), examined


@kernel
def sweep(state: State, start: int, end: int, moves: Int64s, scratch: Int64s) -> tuple[int, int]:
    """Write conjunctions with numbers from `start` on that have a better access path; return how many, and the next number."""
    count = np.int64(0)
    for number in range(start, min(end, state.store.counters[StoreCounter.TOP])):
        if count == moves.shape[0]:
            return count, np.int64(number)
        entry = np.int64(state.store.rows[number, Stored.PATH])
        if state.store.owner[number] < 0 or entry < 0:
            continue
        size = copy_codes(state, np.int64(number), scratch)
        if _is_better(state, entry, chance_of_path(state, entry), size, scratch):
            moves[count] = number
            count += 1
    return count, np.int64(end)


@helper
def _is_better(state: State, entry: int, now: float, size: int, scratch: Int64s) -> bool:
    """Tell whether the conjunction whose codes are in `scratch` has a better access path than this one."""
    first, second, best = choose(state, scratch, scratch[size:], size, False)
    key = state.access.keys[entry]
    return best < BETTER * now and (first != key[Access.FIRST] or second != key[Access.SECOND])


@kernel
def relocate(state: State, numbers: Int64s, start: int, scratch: Int64s) -> int:
    """Move conjunctions from `start` on to their best access paths; return how many there was room for."""
    for i in range(start, numbers.shape[0]):
        number = numbers[i]
        old = np.int64(state.store.rows[number, Stored.PATH])
        if old < 0:
            continue
        size = copy_codes(state, number, scratch)
        if not has_room(state, size, np.int64(0)):
            return np.int64(i)
        first, second, _ = choose(state, scratch, scratch[size:], size, True)
        entry = entry_of(state, first, second)
        if entry == old:
            continue
        words = growth(state, entry, longest(size)) + words_in(state.access.keys[old, Access.PLACE])
        if not has_words(state, words) or not take_out(state, number):
            state.tops[Top.NEEDED] = words
            if is_empty(state, entry):
                drop_entry(state, entry)
            return np.int64(i)
        write(state, number, entry, scratch, size)
        if is_empty(state, old):
            drop_entry(state, old)
    return numbers.shape[0]


@kernel
def draw(
    state: State, numbers: Int32s, scale: float, sample: Sample, demand: Float64s, scratch: Int64s
) -> None:
    """Write conjunctions into a sample, by the parts that a key may have of them.

    Each stands for `scale` conjunctions; if that is negative, for so many checks of an event. `demand` is, by slot, how many
    checks a grid of the slot would save.
    """
    sample.count[0] = 0
    for i in range(numbers.shape[0]):
        entry = np.int64(state.store.rows[numbers[i], Stored.PATH])
        if entry < 0:
            continue
        size, at, found = copy_codes(state, numbers[i], scratch), sample.count[0], np.int64(0)
        _, _, best = choose(state, scratch, scratch[size:], size, False)
        weight = scale
        if scale < 0:
            weight = -scale / max(chance_of_path(state, entry), best, 1e-9)
        for j in range(size):
            code = scratch[j]
            tag = state.predicates.entries.keys[code, Code.TAG]
            op, slot = tag >> OP_BITS, tag & SLOT_MASK
            if (INSIDE >> op) & 1 and op != Op.EQ and state.slots.rows[slot, Slot.GRID] == 0:
                demand[slot] += weight * max(best - _share_alone(state, code, slot), 0.0)
            slot, part = dimension(state, code)
            if slot < 0 or state.slots.rows[slot, Slot.FIELD] % FIELDS == Field.TEXT:
                continue
            found = _insert(sample, found, slot, chance_of(state, code, slot, part))
        if found >= 2:
            sample.equalities[at] = found
            sample.weight[at] = weight
            sample.current[at] = best
            sample.count[0] += 1


@helper
def _share_alone(state: State, code: int, slot: int) -> float:
    """Guess how many events a cell around an interval would have, before there is a grid."""
    op = state.predicates.entries.keys[code, Code.TAG] >> OP_BITS
    return presence(state, slot) * (0.1 if op == Op.BETWEEN else 0.6)


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
def constants_of(state: State, numbers: Int32s, slot: int, found: Int64s, scratch: Int64s) -> int:
    """Write the ends of conjunctions' intervals of a slot; return how many."""
    count = np.int64(0)
    for i in range(numbers.shape[0]):
        if state.store.rows[numbers[i], Stored.PATH] < 0:
            continue
        size = copy_codes(state, numbers[i], scratch)
        for j in range(size):
            row = state.predicates.entries.keys[scratch[j]]
            op = row[Code.TAG] >> OP_BITS
            if (INSIDE >> op) & 1 and row[Code.TAG] & SLOT_MASK == slot and count + 2 <= found.shape[0]:
                if op not in (Op.LT, Op.LE):
                    found[count] = row[Code.LOW]
                    count += 1
                if op not in (Op.GT, Op.GE):
                    found[count] = row[Code.HIGH] + 1  # what lies above begins the next cell
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
