"""Running a program: a small interpreter over the values of an event and of an instance."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.sequences._kernels.instructions import MODE_BITS, Do, Mode, Tag
from tocsin.sequences._kernels.values import UNKNOWN, compare, compute, is_found, is_number
from tocsin.sequences.running.state import LinkColumn, SpanColumn, State, StateCounter
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.jit import helper

_NUMBERS: Final = (1 << MODE_BITS) - 1


class CurrentEvent(NamedTuple):
    """The event at hand: its row in the batch, and its number among all events."""

    values: Int64s  # [rows, columns, 2] of the whole batch
    row: int
    stream: int
    start: int
    end: int
    number: int


@helper
def _load(
    state: State, event: CurrentEvent, base: int, constants: int, duration: int, operand: int
) -> tuple[int, int]:
    """Return the tag and the value of an operand."""
    mode, number = operand >> MODE_BITS, operand & _NUMBERS
    if mode == Mode.EVENT:
        return event.values[event.row, number, 0], event.values[event.row, number, 1]
    if mode == Mode.BOUND:
        rows = state.arena.slots.rows
        return rows[base + number, 0], rows[base + number, 1]
    if mode == Mode.CONSTANT:
        rows = state.program.constants.rows
        return rows[constants + number, 0], rows[constants + number, 1]
    if mode == Mode.SCRATCH:
        return state.scratch.values[number, 0], state.scratch.values[number, 1]
    if mode == Mode.DURATION:
        return np.int64(Tag.INTEGER), duration
    return np.int64(Tag.EVENT), event.number


@helper
def _accumulate(state: State, operation: int, kind: int, a: int, other: int, b: int) -> tuple[int, int]:
    """Return an aggregate so far after one more value."""
    if operation == Do.COUNT:
        return np.int64(Tag.INTEGER), (a if kind == Tag.INTEGER else np.int64(0)) + np.int64(
            other != Tag.MISSING
        )
    if operation == Do.FIRST:
        return (kind, a) if kind != Tag.MISSING else (other, b)
    if operation == Do.SUM:
        if not is_number(other):
            return kind, a
        if kind == Tag.MISSING:
            kind, a = np.int64(Tag.INTEGER), np.int64(0)
        return compute(state.bigs, np.int64(Do.ADD), kind, a, other, b)
    if other == Tag.MISSING or other == Tag.OPAQUE:  # noqa: PLR1714 - Numba compiles this to less
        return kind, a
    if kind == Tag.MISSING or kind == Tag.OPAQUE:  # noqa: PLR1714 - as above
        return other, b
    order = compare(state.texts, state.bigs, other, b, kind, a)
    if (operation == Do.LEAST and order == -1) or (operation == Do.GREATEST and order == 1):
        return other, b
    return kind, a


@helper
def _holds(state: State, test: int, kind: int, a: int, other: int, b: int) -> bool:
    """Tell whether a test holds."""
    if test <= Do.NE:
        if kind == Tag.STRING and other == Tag.STRING:
            return (a == b) == (test == Do.EQ)
        order = compare(state.texts, state.bigs, kind, a, other, b)
        return order != UNKNOWN and (order == 0) == (test == Do.EQ)
    if test <= Do.GE:
        order = compare(state.texts, state.bigs, kind, a, other, b)
        if order == UNKNOWN:
            return False
        if test == Do.LT:
            return order < 0
        if test == Do.LE:
            return order <= 0
        return order > 0 if test == Do.GT else order >= 0
    if test <= Do.NOT_ENDS_WITH:
        if kind != Tag.STRING or other != Tag.STRING:
            return False
        variant = test - Do.CONTAINS
        return is_found(state.texts, a, b, variant >> 1) == (variant & 1 == 0)
    if test == Do.PRESENT:
        return kind != Tag.MISSING
    if test == Do.MISSING:
        return kind == Tag.MISSING
    return kind == Tag.BOOLEAN and a == 1


@helper
def run(
    state: State,
    event: CurrentEvent,
    base: int,
    span: Int32s,
    constants: int,
    duration: int,
    target: Int64s,
    first: int,
) -> bool:
    """Run a program and tell whether it holds; it stores values in the rows of `target` from `first` on.

    `base` is the instance's first slot; programs that run without an instance do not read it.
    """
    code, scratch = state.program.code, state.scratch.values
    at, finish = np.int64(span[SpanColumn.BEGIN]), np.int64(span[SpanColumn.FINISH])
    begin = at
    constants = constants + np.int64(span[SpanColumn.CONSTANT])
    while at < finish:
        do, a = np.int64(code[at, 0]), np.int64(code[at, 1])
        kind, x = _load(state, event, base, constants, duration, np.int64(code[at, 2]))
        at += 1
        if do == Do.STORE:
            target[first + a, 0], target[first + a, 1] = kind, x
            continue
        if do == Do.LINK:
            link = state.counters[StateCounter.LINKS]
            state.arena.links[link, LinkColumn.EVENT] = event.number
            state.arena.links[link, LinkColumn.PREVIOUS] = x if kind == Tag.CHAIN else np.int64(-1)
            state.counters[StateCounter.LINKS] += 1
            target[first + a, 0], target[first + a, 1] = np.int64(Tag.CHAIN), link
            continue
        if do > Do.TRUE:
            at = begin + a
            continue
        other, y = _load(state, event, base, constants, duration, np.int64(code[at - 1, 3]))
        if do <= Do.DIVIDE:
            scratch[a, 0], scratch[a, 1] = compute(state.bigs, do, kind, x, other, y)
        elif do <= Do.FIRST:
            scratch[a, 0], scratch[a, 1] = _accumulate(state, do, kind, x, other, y)
        elif not _holds(state, do, kind, x, other, y):
            if a < 0:
                return False
            at = begin + a
    return True
