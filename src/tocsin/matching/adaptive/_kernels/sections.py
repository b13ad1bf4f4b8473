"""Large clusters in sections: those of which the event at hand may satisfy some conjunction."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    checks_in,
    code_in,
    large_of,
    place_of_check,
    start_of,
)
from tocsin.matching.adaptive.state import (
    INSIDE,
    OP_BITS,
    SLOT_MASK,
    Access,
    Code,
    Large,
    Section,
    State,
    Value,
)
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_LOW_HALF: Final = 0xFFFFFFFF
QUICK: Final = 0.5  # of a check: one of a large cluster
LAID_OUT: Final = 7  # columns of what `lay_out` writes


@helper
def next_section(state: State, large: int, which: int) -> tuple[int, int]:
    """Return the next section from `which` on that has conjunctions the event at hand may satisfy, or -1, and how many were looked at."""
    row, sections, looked_at = state.large.rows[large], state.large.sections, np.int64(0)
    while which < row[Large.SECTIONS]:
        looked_at += 1
        section = sections[row[Large.SECTION] + which]
        slots = section[Section.SLOTS]
        may_hold = slots == -1 or (
            _may_hold(state, slots & _LOW_HALF, section[Section.LOW], section[Section.HIGH])
            and (
                slots < 0
                or _may_hold(state, slots >> 32, section[Section.SECOND_LOW], section[Section.SECOND_HIGH])
            )
        )
        if not may_hold:
            which = section[Section.NEXT]
        elif section[Section.BEGIN] == section[Section.END]:
            which += 1
        else:
            return which, looked_at
    return np.int64(-1), looked_at


@helper
def _may_hold(state: State, slot: int, low: int, high: int) -> bool:
    """Tell whether the event at hand may have a value in an interval; what is not one exact value may."""
    values = state.slots.values
    if values[slot, Value.NEXT] != 0:
        return True
    return low <= values[slot, Value.LOW] and values[slot, Value.HIGH] <= high


@helper
def share_checked(state: State, entry: int) -> float:
    """Return what a conjunction of a cluster costs an event that reaches it, in checks: those of a large cluster are quick."""
    large = large_of(state, entry)
    if large < 0:
        return 1.0
    row = state.large.rows[large]
    if row[Large.SECTIONS] == 0:
        return QUICK
    behind = QUICK * (row[Large.COUNT] - row[Large.DIVIDED])
    return min((row[Large.CHECKS] / row[Large.VISITS] + behind) / row[Large.COUNT], QUICK)


@kernel
def lay_out(state: State, entry: int, begin: int, into: Int64s) -> int:
    """Write the first checks of a large cluster from `begin` on, and up to two slots and intervals of each conjunction.

    These are of the intervals that are checked first. A slot is -1 if there is none. Return how many there was room for.
    """
    start, row = start_of(state.access.keys[entry, Access.PLACE]), state.large.rows[large_of(state, entry)]
    words, keys = state.words.rows, state.predicates.entries.keys
    count = min(row[Large.COUNT] - begin, np.int64(into.shape[0]))
    for i in range(count):
        into[i, 0] = state.large.checks.rows[row[Large.FIRST] + begin + i, 0]
        into[i, 1] = into[i, 4] = -1
        at, found = start + (into[i, 0] >> 32), np.int64(0)
        head = np.int64(words[at + HEAD])
        for k in range(checks_in(head)):
            code = code_in(np.int64(words[place_of_check(head, at, np.int64(k))]))
            tag = keys[code, Code.TAG]
            if found < 2 and (INSIDE >> (tag >> OP_BITS)) & 1:
                into[i, 1 + 3 * found] = tag & SLOT_MASK
                into[i, 2 + 3 * found], into[i, 3 + 3 * found] = keys[code, Code.LOW], keys[code, Code.HIGH]
                found += 1
    return count
