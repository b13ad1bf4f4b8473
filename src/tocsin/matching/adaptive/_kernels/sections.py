"""Divided clusters: the sections that the event at hand may satisfy some conjunction of."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    checks_in,
    code_in,
    length_of,
    place_of_check,
    start_of,
    words_in,
)
from tocsin.matching.adaptive.state import (
    DIVIDED_BIT,
    INSIDE,
    OP_BITS,
    SLOT_MASK,
    Access,
    Code,
    Division,
    Section,
    State,
    Value,
)
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_LOW_HALF: Final = 0xFFFFFFFF
LAID_OUT: Final = 9  # columns of what `lay_out` writes


@helper
def division_of(state: State, entry: int) -> int:
    """Return the division of a cluster, or -1."""
    if state.access.keys[entry, Access.PLACE] & DIVIDED_BIT:
        return state.access.keys[entry, Access.WORK] & _LOW_HALF
    return np.int64(-1)


@helper
def next_section(state: State, division: int, which: int) -> tuple[int, int]:
    """Return the next section from `which` on that has conjunctions the event at hand may satisfy, or -1, and how many were looked at."""
    row, sections, looked_at = state.divisions.rows[division], state.divisions.sections, np.int64(0)
    while which < row[Division.SECTIONS]:
        looked_at += 1
        section = sections[row[Division.FIRST] + which]
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
    """Return the share of a cluster's conjunctions that an event is checked against which reaches it."""
    division = division_of(state, entry)
    if division < 0:
        return 1.0
    row = state.divisions.rows[division]
    count = np.float64(row[Division.COUNT])
    behind = (
        (words_in(state.access.keys[entry, Access.PLACE]) - row[Division.WORDS]) * count / row[Division.WORDS]
    )
    return min((row[Division.CHECKS] / row[Division.VISITS] + behind) / (count + behind), 1.0)


@kernel
def lay_out(state: State, entry: int, begin: int, into: Int64s) -> tuple[int, int]:
    """Write where conjunctions of a cluster are from `begin` on, their words and numbers, and up to two slots and intervals of each.

    These are of the intervals that are checked first. A slot is -1 if there is none. Return how many there was room for, and
    where the next one is.
    """
    place, rows, keys = (
        state.access.keys[entry, Access.PLACE],
        state.words.rows,
        state.predicates.entries.keys,
    )
    start, end, count = start_of(place), words_in(place), np.int64(0)
    while begin < end and count < into.shape[0]:
        head, row = np.int64(rows[start + begin + HEAD]), into[count]
        row[0], row[1], row[2] = begin, length_of(head), rows[start + begin + NUMBER]
        row[3] = row[6] = -1
        found = np.int64(0)
        for k in range(checks_in(head)):
            code = code_in(np.int64(rows[place_of_check(head, start + begin, np.int64(k))]))
            tag = keys[code, Code.TAG]
            if found < 2 and (INSIDE >> (tag >> OP_BITS)) & 1:
                row[3 + 3 * found] = tag & SLOT_MASK
                row[4 + 3 * found], row[5 + 3 * found] = keys[code, Code.LOW], keys[code, Code.HIGH]
                found += 1
        begin += length_of(head)
        count += 1
    return count, begin
