"""Counting down the counters of predicates that a pair satisfies or refutes in a segment (OpIndex, §5)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex._kernels.entry_order import first_at
from tocsin.matching.opindex.state import Gate, Pivot, Segment, State, Top
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.jit import helper

_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1  # that no constant has
_FIELD: Final = 0x7FFFFFFF
_LEFT: Final = (1 << arrays.COUNT_BITS) - 1
_LOW_HALF: Final = 0xFFFFFFFF
_FEW: Final = 64  # entries that are scanned without a search
_IS_TEXT: Final = -1  # the key that every string has


@helper
def _range(state: State, kind: int, j: int) -> tuple[int, int, int]:
    """Return the least and the greatest key that a value satisfies in a list of a kind, and one in between that it does not."""
    pairs, lowest, highest = state.pairs, np.int64(_LOWEST), np.int64(_HIGHEST)
    if kind == arrays.EQ:
        return pairs.key[j], pairs.key[j], highest
    if kind == arrays.LE:
        return pairs.high[j], highest, highest
    if kind == arrays.GE:
        return lowest, pairs.low[j], highest
    if kind == arrays.LT:
        return pairs.low[j] + 1, highest, highest
    if kind == arrays.GT and pairs.high[j] > lowest:
        return lowest, pairs.high[j] - 1, highest
    if kind == arrays.NE:
        return lowest, highest, pairs.key[j]
    if kind == arrays.GT or (pairs.field[j] % FIELDS == Field.TEXT and pairs.key[j] != _IS_TEXT):
        # No key: nothing is below the first one. A string has several pairs, and one of them stands for its presence.
        return highest, lowest, highest
    return lowest, highest, highest


@helper
def search(
    state: State,
    row: int,
    pivot: int,
    what: tuple[int, int],
    so_far: tuple[int, int, int],
    is_pivot: bool,
    found: Int64s,
) -> tuple[int, int, int]:
    """Count the entries of a segment that a pair satisfies; return the expressions found, counters alive, and entries."""
    kind, j = what
    count, alive, touched = so_far
    rows, segment, field = state.entries.rows, state.segments[row], state.pairs.field[j]
    # Read here, once: in the loops the compiler would read them again for each entry that is touched.
    counters, holders, epoch = state.counters.rows, state.holders, state.tops[Top.EPOCH]
    first = state.pivots[pivot, Pivot.COUNTERS]
    at = np.int64(segment[Segment.OFFSET])
    end, middle = at + segment[Segment.COUNT], at + segment[Segment.SORTED]
    low, high, hole = _range(state, kind, j)
    if middle - at > _FEW:
        at = first_at(rows, at, middle, field, low, np.int64(0))
        while at < middle and (rows[at, 1] >> 32) & _FIELD == field and rows[at, 0] <= high:
            if rows[at, 1] >= 0 and rows[at, 0] != hole:
                touched += 1
                target = _through_gates(state.gates, rows[at, 1] & _LOW_HALF, epoch)
                if target >= 0:
                    place = first + target
                    count, alive = _count_down(
                        counters, holders, place, epoch, is_pivot, (count, alive), found
                    )
            at += 1
        at = middle
    while at < end:
        key = rows[at, 0]
        if rows[at, 1] >> 32 == field and low <= key <= high and key != hole:
            touched += 1
            target = _through_gates(state.gates, rows[at, 1] & _LOW_HALF, epoch)
            if target >= 0:
                place = first + target
                count, alive = _count_down(counters, holders, place, epoch, is_pivot, (count, alive), found)
        at += 1
    return count, alive, touched


@helper
def _through_gates(gates: Int64s, target: int, epoch: int) -> int:
    """Count down a gate and, when it opens, its parent; return the counter behind the gates, or -1 if one stays shut."""
    while target >= arrays.GATE:
        gate = target - arrays.GATE
        word = _current(gates[gate, Gate.STATE], epoch)
        if word & _LEFT == 0:
            return np.int64(-1)
        gates[gate, Gate.STATE] = word - 1
        if word & _LEFT > 1:
            return np.int64(-1)
        target = gates[gate, Gate.PARENT]
    return target


@helper
def _count_down(
    counters: Int64s,
    holders: Int32s,
    place: int,
    epoch: int,
    is_pivot: bool,
    so_far: tuple[int, int],
    found: Int64s,
) -> tuple[int, int]:
    """Count down a counter, and write its expression when none is left; return the expressions found, and counters alive."""
    count, alive = so_far
    word = counters[place, 0]
    if word >> arrays.EVENT_SHIFT != epoch:
        if not is_pivot:
            return count, alive
        word = _current(word, epoch)
        alive += 1
    counters[place, 0] = word - 1
    if word & _LEFT == 1:
        holder = np.int64(holders[place])
        found[count] = (
            holder if holder < arrays.HAS_RESIDUAL else holder - arrays.HAS_RESIDUAL + NEEDS_RESIDUAL
        )
        return count + 1, alive - 1
    return count, alive


@helper
def _current(word: int, epoch: int) -> int:
    """Return the value of a counter for the current event: all its units, if the event has not touched it yet."""
    if word >> arrays.EVENT_SHIFT == epoch:
        return word
    units = (word >> arrays.COUNT_BITS) & _LEFT
    return (epoch << arrays.EVENT_SHIFT) | (units << arrays.COUNT_BITS) | units


@helper
def refute_all(state: State, row: int, pivot: int, field: int, key: int) -> None:
    """Add one unit to the counter of each predicate in a segment that a value refutes, so that it cannot reach zero."""
    rows, segment = state.entries.rows, state.segments[row]
    at = np.int64(segment[Segment.OFFSET])
    end, middle = at + segment[Segment.COUNT], at + segment[Segment.SORTED]
    if middle - at > _FEW:
        at = first_at(rows, at, middle, field, key, np.int64(0))
        while at < middle and (rows[at, 1] >> 32) & _FIELD == field and rows[at, 0] == key:
            if rows[at, 1] >= 0:
                _refute(state, pivot, rows[at, 1] & _LOW_HALF)
            at += 1
        at = middle
    while at < end:
        if rows[at, 1] >> 32 == field and rows[at, 0] == key:
            _refute(state, pivot, rows[at, 1] & _LOW_HALF)
        at += 1


@helper
def _refute(state: State, pivot: int, target: int) -> None:
    """Add one unit to the counter of a gate or a conjunction, so that this event cannot bring it to zero."""
    epoch = state.tops[Top.EPOCH]
    if target >= arrays.GATE:
        gate = state.gates[target - arrays.GATE]
        gate[Gate.STATE] = _current(gate[Gate.STATE], epoch) + 1
    else:
        at, rows = state.pivots[pivot, Pivot.COUNTERS] + target, state.counters.rows
        rows[at, 0] = _current(rows[at, 0], epoch) + 1
