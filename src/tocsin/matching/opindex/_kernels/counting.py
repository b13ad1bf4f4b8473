"""Counting down what a pair satisfies in a segment (OpIndex, 5)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.opindex._kernels.entry_order import first_at
from tocsin.matching.opindex.state import (
    ASKED,
    COUNT,
    COUNT_BITS,
    COUNTERS,
    EPOCH,
    EQ,
    EVENT_SHIFT,
    GATE,
    GE,
    GT,
    LE,
    LT,
    NE,
    OFFSET,
    PARENT,
    SORTED,
    STATE,
    State,
)
from tocsin.structures.jit import helper

_TEXT: Final = int(Field.TEXT)
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1  # that no constant has
_FIELD: Final = 0x7FFFFFFF
_LEFT: Final = (1 << COUNT_BITS) - 1
_LOW_HALF: Final = 0xFFFFFFFF
_FEW: Final = 64  # entries that are looked at from end to end
_IS_TEXT: Final = -1  # the key that says of a string that it is one


@helper
def _range(state: State, kind: int, j: int) -> tuple[int, int, int]:
    """Return from which key to which a value satisfies a kind of predicate, and the one between that it does not."""
    pairs, lowest, highest = state.pairs, np.int64(_LOWEST), np.int64(_HIGHEST)
    if kind == EQ:
        return pairs.key[j], pairs.key[j], highest
    if kind == LE:
        return pairs.high[j], highest, highest
    if kind == GE:
        return lowest, pairs.low[j], highest
    if kind == LT:
        return pairs.low[j] + 1, highest, highest
    if kind == GT and pairs.high[j] > lowest:
        return lowest, pairs.high[j] - 1, highest
    if kind == NE:
        return lowest, highest, pairs.key[j]
    if kind == GT or (pairs.field[j] % FIELDS == _TEXT and pairs.key[j] != _IS_TEXT):
        # None: nothing is below the first key; and of a string's several pairs, one says that it is there.
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
    found: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Touch what a pair satisfies in a segment; return the forms found, counters that may yet count down, touches."""
    kind, j = what
    count, alive, touched = so_far
    rows, segment, field = state.entries.rows, state.segments[row], state.pairs.field[j]
    at = np.int64(segment[OFFSET])
    end, middle = at + segment[COUNT], at + segment[SORTED]
    low, high, hole = _range(state, kind, j)
    if middle - at > _FEW:
        at = first_at(rows, at, middle, field, low, np.int64(0))
        while at < middle and (rows[at, 1] >> 32) & _FIELD == field and rows[at, 0] <= high:
            if rows[at, 1] >= 0 and rows[at, 0] != hole:
                touched += 1
                count, alive = _touch(state, pivot, rows[at, 1] & _LOW_HALF, is_pivot, count, alive, found)
            at += 1
        at = middle
    while at < end:
        key = rows[at, 0]
        if rows[at, 1] >> 32 == field and low <= key <= high and key != hole:
            touched += 1
            count, alive = _touch(state, pivot, rows[at, 1] & _LOW_HALF, is_pivot, count, alive, found)
        at += 1
    return count, alive, touched


@helper
def _touch(
    state: State,
    pivot: int,
    target: int,
    is_pivot: bool,
    count: int,
    alive: int,
    found: NDArray[np.int64],
) -> tuple[int, int]:
    """Count down a counter, or a gate and, where it opens, what it counts towards."""
    epoch, gates, rows = state.tops[EPOCH], state.gates, state.counters.rows
    while target >= GATE:
        gate = target - GATE
        word = _current(gates[gate, STATE], epoch)
        if word & _LEFT == 0:
            return count, alive
        gates[gate, STATE] = word - 1
        if word & _LEFT > 1:
            return count, alive
        target = gates[gate, PARENT]
    at = state.pivots[pivot, COUNTERS] + target
    word = rows[at, 0]
    if word >> EVENT_SHIFT != epoch:
        if not is_pivot:
            return count, alive
        word = _current(word, epoch)
        alive += 1
    rows[at, 0] = word - 1
    if word & _LEFT == 1:
        holder = np.int64(state.holders[at])
        found[count] = holder if holder < ASKED else holder - ASKED + NEEDS_RESIDUAL
        return count + 1, alive - 1
    return count, alive


@helper
def _current(word: int, epoch: int) -> int:
    """Return a counter as it stands for the event at hand: with all its units left, if it was not touched."""
    if word >> EVENT_SHIFT == epoch:
        return word
    units = (word >> COUNT_BITS) & _LEFT
    return (epoch << EVENT_SHIFT) | (units << COUNT_BITS) | units


@helper
def strike_all(state: State, row: int, pivot: int, field: int, key: int) -> None:
    """Let each predicate that a value refutes want for one unit more."""
    rows, segment = state.entries.rows, state.segments[row]
    at = np.int64(segment[OFFSET])
    end, middle = at + segment[COUNT], at + segment[SORTED]
    if middle - at > _FEW:
        at = first_at(rows, at, middle, field, key, np.int64(0))
        while at < middle and (rows[at, 1] >> 32) & _FIELD == field and rows[at, 0] == key:
            if rows[at, 1] >= 0:
                _strike(state, pivot, rows[at, 1] & _LOW_HALF)
            at += 1
        at = middle
    while at < end:
        if rows[at, 1] >> 32 == field and rows[at, 0] == key:
            _strike(state, pivot, rows[at, 1] & _LOW_HALF)
        at += 1


@helper
def _strike(state: State, pivot: int, target: int) -> None:
    epoch = state.tops[EPOCH]
    if target >= GATE:
        gate = state.gates[target - GATE]
        gate[STATE] = _current(gate[STATE], epoch) + 1
    else:
        at, rows = state.pivots[pivot, COUNTERS] + target, state.counters.rows
        rows[at, 0] = _current(rows[at, 0], epoch) + 1
