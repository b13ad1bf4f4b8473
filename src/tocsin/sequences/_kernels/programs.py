"""Running a program."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences._kernels.values import UNKNOWN, compare, computed, is_found, is_number
from tocsin.sequences.running.state import BEGIN, CONSTANT, FINISH, LINKS, State
from tocsin.structures.jit import helper

_MODE_BITS: Final = 24
_NUMBERS: Final = (1 << 24) - 1
_EVENT: Final = 0
_BOUND: Final = 1
_CONSTANT: Final = 2
_SCRATCH: Final = 3
_DURATION: Final = 4

_MISSING: Final = 0
_INTEGER: Final = 1
_STRING: Final = 3
_BOOLEAN: Final = 4
_REFERENCE: Final = 7
_CHAIN: Final = 8

_DIVIDE: Final = 3
_SUM: Final = 4
_LEAST: Final = 5
_GREATEST: Final = 6
_COUNT: Final = 7
_FIRST: Final = 8
_STORE: Final = 9
_LINK: Final = 10
_EQ: Final = 11
_NE: Final = 12
_LT: Final = 13
_LE: Final = 14
_GT: Final = 15
_GE: Final = 16
_CONTAINS: Final = 17
_NOT_ENDS_WITH: Final = 22
_PRESENT: Final = 23
_IS_MISSING: Final = 24
_TRUE: Final = 25


@helper
def _load(
    state: State,
    values: NDArray[np.int64],
    arrival: int,
    base: int,
    constants: int,
    duration: int,
    number: int,
    operand: int,
) -> tuple[int, int]:
    mode, place = operand >> _MODE_BITS, operand & _NUMBERS
    if mode == _EVENT:
        return values[arrival, place, 0], values[arrival, place, 1]
    if mode == _BOUND:
        rows = state.arena.slots.rows
        return rows[base + place, 0], rows[base + place, 1]
    if mode == _CONSTANT:
        rows = state.program.constants.rows
        return rows[constants + place, 0], rows[constants + place, 1]
    if mode == _SCRATCH:
        return state.scratch.values[place, 0], state.scratch.values[place, 1]
    if mode == _DURATION:
        return np.int64(_INTEGER), duration
    return np.int64(_REFERENCE), number


@helper
def _accumulated(state: State, operation: int, kind: int, a: int, other: int, b: int) -> tuple[int, int]:
    """Return an aggregate so far after one more value."""
    if operation == _COUNT:
        return np.int64(_INTEGER), (a if kind == _INTEGER else np.int64(0)) + np.int64(other != _MISSING)
    if operation == _FIRST:
        return (kind, a) if kind != _MISSING else (other, b)
    if operation == _SUM:
        if not is_number(other):
            return kind, a
        if kind == _MISSING:
            kind, a = np.int64(_INTEGER), np.int64(0)
        return computed(state.bigs, np.int64(0), kind, a, other, b)
    if other == _MISSING:
        return kind, a
    if kind == _MISSING:
        return other, b
    order = compare(state.texts, state.bigs, other, b, kind, a)
    if (operation == _LEAST and order == -1) or (operation == _GREATEST and order == 1):
        return other, b
    return kind, a


@helper
def _holds(state: State, test: int, kind: int, a: int, other: int, b: int) -> bool:
    """Tell whether a test holds."""
    if test <= _NE:
        if kind == _STRING and other == _STRING:
            return (a == b) == (test == _EQ)
        order = compare(state.texts, state.bigs, kind, a, other, b)
        return order != UNKNOWN and (order == 0) == (test == _EQ)
    if test <= _GE:
        order = compare(state.texts, state.bigs, kind, a, other, b)
        if order == UNKNOWN:
            return False
        if test == _LT:
            return order < 0
        if test == _LE:
            return order <= 0
        return order > 0 if test == _GT else order >= 0
    if test <= _NOT_ENDS_WITH:
        if kind != _STRING or other != _STRING:
            return False
        asked = test - _CONTAINS
        return is_found(state.texts, a, b, asked >> 1) == (asked & 1 == 0)
    if test == _PRESENT:
        return kind != _MISSING
    if test == _IS_MISSING:
        return kind == _MISSING
    return kind == _BOOLEAN and a == 1


@helper
def run(
    state: State,
    values: NDArray[np.int64],
    arrival: int,
    base: int,
    span: NDArray[np.int32],
    constants: int,
    duration: int,
    number: int,
    target: NDArray[np.int64],
    first: int,
) -> bool:
    """Run a program and tell whether it holds; what it stores goes to the rows of `target` from `first` on.

    `base` is the instance's first slot; where there is no instance, no program looks at it.
    """
    code, scratch = state.program.code, state.scratch.values
    at, finish = np.int64(span[BEGIN]), np.int64(span[FINISH])
    begin = at
    constants = constants + np.int64(span[CONSTANT])
    while at < finish:
        do, a = np.int64(code[at, 0]), np.int64(code[at, 1])
        kind, x = _load(state, values, arrival, base, constants, duration, number, np.int64(code[at, 2]))
        at += 1
        if do == _STORE:
            target[first + a, 0], target[first + a, 1] = kind, x
            continue
        if do == _LINK:
            link = state.counters[LINKS]
            state.arena.links[link, 0] = number
            state.arena.links[link, 1] = x if kind == _CHAIN else np.int64(-1)
            state.counters[LINKS] += 1
            target[first + a, 0], target[first + a, 1] = np.int64(_CHAIN), link
            continue
        if do > _TRUE:
            at = begin + a
            continue
        other, y = _load(state, values, arrival, base, constants, duration, number, np.int64(code[at - 1, 3]))
        if do <= _DIVIDE:
            scratch[a, 0], scratch[a, 1] = computed(state.bigs, do, kind, x, other, y)
        elif do <= _FIRST:
            scratch[a, 0], scratch[a, 1] = _accumulated(state, do, kind, x, other, y)
        elif not _holds(state, do, kind, x, other, y):
            if a < 0:
                return False
            at = begin + a
    return True
