"""The choice of tables: greedy, by the savings of each for a sample of conjunctions (Le Subscribe, 3.2 and 4)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.matching.le_subscribe._kernels.access import choose, slots_of
from tocsin.matching.le_subscribe.state import WIDEST, State
from tocsin.structures import hash_index
from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt8s
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import helper, kernel

MOST: Final = 8  # equalities of a conjunction that are considered: the most selective ones
NO_FIELD: Final = 0x7FFFFFFF


class CostPlace(IntEnum):
    """Places in the costs of `choose_tables`, in units of one check."""

    PER_TABLE = 0
    PER_ATTRIBUTE = 1
    LEAST_GAIN = 2  # how many times its cost a table must save
    SPACE = 3  # bytes that all new tables may take
    PER_KEY = 4  # bytes of a table's key
    SCALE = 5  # conjunctions for each one that the sample stands for
    MISSES = 6  # the cache misses of a look-up in a table too large for the caches
    CACHED = 7  # keys of a table from which on every look-up misses


class Sample(NamedTuple):
    """Conjunctions, by the equalities they have."""

    fields: Int32s  # [size, MOST] ascending
    slots: Int32s  # [size, MOST]
    probability: Float64s  # [size, MOST]
    equalities: Int32s  # [size]
    weight: Float64s  # [size] how many conjunctions this one stands for
    current: Float64s  # [size] the probability that an event checks it
    count: Int64s  # [1]


class Candidates(NamedTuple):
    """Schemas that would save something. By entry."""

    schemas: HashIndex  # keys: fields, two to an integer
    gain: Float64s  # checks per event it would save
    covered: Float64s  # conjunctions that could move there
    taken: UInt8s
    # How many times more probable its keys are than independent values would be
    correlation: Float64s
    distinct: Int32s  # by field: constants of its equalities


@helper
def draw(state: State, sample: Sample, number: int, probability: float, weight: float) -> None:
    """Add a conjunction that an event checks with this probability to the sample, if it has two equalities.

    Tests on strings do not count: an event may pass several of one attribute, and a table has one key for each event.
    """
    size = slots_of(state, number)
    _, _, _, best = choose(state, size)
    at = sample.count[0]
    found = np.int64(0)
    for j in range(size):
        tag = state.predicates.entries.keys[state.scratch[j], 0]
        field = tag & FIELD_MASK
        if tag >> FIELD_BITS != Op.EQ or field % FIELDS == Field.TEXT or _has(sample, at, found, field):
            continue
        chance = state.scratch[size + j] * (1.0 / (1 << 60))
        if found == MOST:
            worst = np.int64(0)
            for k in range(1, MOST):
                if sample.probability[at, k] > sample.probability[at, worst]:
                    worst = k
            if sample.probability[at, worst] <= chance:
                continue
            for k in range(worst, MOST - 1):
                _shift(sample, at, k + 1, k)
            found -= 1
        k = found
        while k > 0 and sample.fields[at, k - 1] > field:
            _shift(sample, at, k - 1, k)
            k -= 1
        sample.fields[at, k] = field
        sample.slots[at, k] = state.scratch[j]
        sample.probability[at, k] = chance
        found += 1
    if found < 2:
        return
    sample.equalities[at] = found
    sample.weight[at] = weight
    sample.current[at] = min(probability, best)
    sample.count[0] += 1


@helper
def _shift(sample: Sample, i: int, old: int, new: int) -> None:
    sample.fields[i, new] = sample.fields[i, old]
    sample.slots[i, new] = sample.slots[i, old]
    sample.probability[i, new] = sample.probability[i, old]


@helper
def _has(sample: Sample, i: int, count: int, field: int) -> bool:
    """Tell whether a field is among the first `count` of a conjunction: two equalities on one field are never true."""
    known = False
    for k in range(count):
        known |= sample.fields[i, k] == field
    return known


@helper
def _schema(sample: Sample, i: int, mask: int) -> tuple[int, int, float, float]:
    """Return the key of the subset `mask` of a conjunction's equalities, their product and the least probable one's."""
    a, b = np.int64(-1), np.int64(-1)
    probability, least, width = 1.0, 1.0, np.int64(0)
    for k in range(sample.equalities[i]):
        if (mask >> k) & 1:
            a, b = _with_field(a, b, width, np.int64(sample.fields[i, k]))
            probability *= sample.probability[i, k]
            least = min(least, sample.probability[i, k])
            width += 1
    return a, b, probability, least


@helper
def _with_field(a: int, b: int, width: int, field: int) -> tuple[int, int]:
    """Return the key of a schema of `width` fields with one more."""
    if width == 0:
        return (field << 32) | NO_FIELD, b
    if width == 1:
        return (a & ~np.int64(NO_FIELD)) | field, b
    if width == 2:
        return a, (field << 32) | NO_FIELD
    return a, (b & ~np.int64(NO_FIELD)) | field


@helper
def _ones(mask: int) -> int:
    count = np.int64(0)
    while mask:
        mask &= mask - 1
        count += 1
    return count


@kernel
def choose_tables(
    tables: Int64s, sample: Sample, candidates: Candidates, widest: int, costs: Float64s, chosen: Int64s
) -> int:
    """Write the schemas whose tables pay off into `chosen`, the best first; return how many, or -1 for want of room.

    `tables` are the schemas there are already. Each choice takes the schema that saves most for the space it
    needs, given those chosen before it; the savings of the others are updated for the conjunctions that move
    alone.
    """
    for i in range(sample.count[0]):
        if not _enter_schemas(sample, candidates, i, widest):
            return -1
    for t in range(tables.shape[0]):
        entry = hash_index.find(candidates.schemas, tables[t, 0], tables[t, 1], 0)
        if entry >= 0:
            candidates.taken[entry] = 1
    space = 0.0
    for n in range(chosen.shape[0]):
        best, best_worth = np.int64(-1), 0.0
        for entry in range(candidates.schemas.counters[1]):
            if candidates.taken[entry]:
                continue
            keys = _keys(candidates, entry, costs[CostPlace.SCALE])
            cost = costs[CostPlace.PER_TABLE] + costs[CostPlace.PER_ATTRIBUTE] * _width(candidates, entry)
            cost += costs[CostPlace.MISSES] * min(keys / costs[CostPlace.CACHED], 1.0)
            if candidates.gain[entry] < costs[CostPlace.LEAST_GAIN] * cost:
                continue
            keys *= costs[CostPlace.PER_KEY]
            worth = (
                (candidates.gain[entry] - cost) / max(keys, 1.0)
                if costs[CostPlace.SPACE] < np.inf
                else candidates.gain[entry]
            )
            if worth > best_worth and space + keys <= costs[CostPlace.SPACE]:
                best, best_worth = entry, worth
        if best < 0:
            return n
        candidates.taken[best] = 1
        space += _keys(candidates, best, costs[CostPlace.SCALE]) * costs[CostPlace.PER_KEY]
        chosen[n, 0], chosen[n, 1] = candidates.schemas.keys[best, 0], candidates.schemas.keys[best, 1]
        for i in range(sample.count[0]):
            _move(sample, candidates, i, best, widest)
    return chosen.shape[0]


@kernel
def correlation_of(candidates: Candidates, a: int, b: int) -> float:
    """Return a schema's correlation if it is known, else that of its parts that deviate most, or 1."""
    entry = hash_index.find(candidates.schemas, a, b, 0)
    if entry >= 0:
        return candidates.correlation[entry]
    width = np.int64(0)
    while width < WIDEST and _field_of(a, b, width) >= 0:
        width += 1
    everything = (1 << width) - 1
    found, furthest, chosen = 1.0, 1.0, everything
    for mask in range(3, everything):
        correlation = _part(candidates, a, b, mask)
        if max(correlation, 1.0 / correlation) > furthest:
            found, furthest, chosen = correlation, max(correlation, 1.0 / correlation), np.int64(mask)
    return found * _part(candidates, a, b, everything & ~chosen)


@helper
def _part(candidates: Candidates, a: int, b: int, mask: int) -> float:
    """Return the correlation of some of a schema's fields, 1 if it is unknown."""
    if _ones(mask) < 2:
        return 1.0
    part, more, width = np.int64(-1), np.int64(-1), np.int64(0)
    for w in range(WIDEST):
        if (mask >> w) & 1:
            part, more = _with_field(part, more, width, _field_of(a, b, w))
            width += 1
    entry = hash_index.find(candidates.schemas, part, more, 0)
    return candidates.correlation[entry] if entry >= 0 else 1.0


@helper
def _width(candidates: Candidates, entry: int) -> int:
    b = candidates.schemas.keys[entry, 1]
    if b == -1:
        return np.int64(2)
    return np.int64(3) if (b & NO_FIELD) == NO_FIELD else np.int64(WIDEST)


@helper
def _keys(candidates: Candidates, entry: int, scale: float) -> float:
    """Return how many keys a table would have: one for each combination of constants, or for each conjunction."""
    combinations = 1.0
    for w in range(WIDEST):
        field = _field(candidates, entry, w)
        if field >= 0:
            combinations *= candidates.distinct[field]
    return min(combinations, candidates.covered[entry] * scale)


@helper
def _field(candidates: Candidates, entry: int, which: int) -> int:
    """Return one field of a candidate, or -1 behind its last."""
    return _field_of(candidates.schemas.keys[entry, 0], candidates.schemas.keys[entry, 1], which)


@helper
def _field_of(a: int, b: int, which: int) -> int:
    """Return one field of a schema, or -1 behind its last."""
    half = a if which < 2 else b
    field = (half >> 32) if which % 2 == 0 else half & 0xFFFFFFFF
    return np.int64(-1) if half == -1 or field == NO_FIELD else field


@helper
def _enter_schemas(sample: Sample, candidates: Candidates, i: int, widest: int) -> bool:
    """Add a conjunction's savings to every schema that its equalities cover."""
    for mask in range(3, 1 << sample.equalities[i]):
        if not 2 <= _ones(mask) <= widest:
            continue
        a, b, probability, least = _schema(sample, i, mask)
        entry = hash_index.find(candidates.schemas, a, b, 0)
        if entry < 0:
            if candidates.schemas.counters[1] + 1 >= candidates.gain.shape[0]:
                return False
            correlation = correlation_of(candidates, a, b)
            entry = hash_index.insert(candidates.schemas, a, b, 0)
            candidates.correlation[entry] = correlation
        probability = min(probability * candidates.correlation[entry], least)
        candidates.gain[entry] += sample.weight[i] * max(sample.current[i] - probability, 0.0)
        candidates.covered[entry] += sample.weight[i]
    return True


@helper
def _move(sample: Sample, candidates: Candidates, i: int, chosen: int, widest: int) -> None:
    """If a conjunction moves to the chosen schema, lower its savings for the others."""
    mask = _mask_of(sample, candidates, i, chosen)
    if mask == 0:
        return
    _, _, new, least = _schema(sample, i, mask)
    new = min(new * candidates.correlation[chosen], least)
    old = sample.current[i]
    if new >= old:
        return
    sample.current[i] = new
    for other in range(3, 1 << sample.equalities[i]):
        if not 2 <= _ones(other) <= widest:
            continue
        a, b, probability, least = _schema(sample, i, other)
        entry = hash_index.find(candidates.schemas, a, b, 0)
        probability = min(probability * candidates.correlation[entry], least)
        candidates.gain[entry] -= sample.weight[i] * (
            max(old - probability, 0.0) - max(new - probability, 0.0)
        )


@helper
def _mask_of(sample: Sample, candidates: Candidates, i: int, entry: int) -> int:
    """Return which of a conjunction's equalities make up a schema, or 0 if it lacks one."""
    mask = np.int64(0)
    for w in range(WIDEST):
        field = _field(candidates, entry, w)
        if field < 0:
            continue
        inside = False
        for k in range(sample.equalities[i]):
            if sample.fields[i, k] == field:
                mask |= np.int64(1) << k
                inside = True
        if not inside:
            return np.int64(0)
    return mask
