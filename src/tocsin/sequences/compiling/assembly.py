"""Assembling programs: checks and values as instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from tocsin.model.terms import Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences._kernels.instructions import FAIL, Do, Mode
from tocsin.sequences.compiling import ir
from tocsin.sequences.programs import NOTHING as EMPTY
from tocsin.sequences.programs import Column, Program, operand

Slots = Mapping[ir.Key, int]

_TEXTS: Final = frozenset(range(Do.CONTAINS, Do.NOT_ENDS_WITH + 1))
_ZERO: Final = Literal(0, Kind.NUMBER)


def test_program(checks: Sequence[ir.Checks], slots: Slots) -> Program:
    """Return the program that tests all these checks, the cheapest first; `slots` has the slot of each key."""
    writer = _Writer(slots)
    for check in sorted(checks, key=_cost):
        writer.check(check, _Label(FAIL))
    return writer.program()


def assign_program(values: Sequence[ir.Value], slots: Slots) -> Program:
    """Return the program that stores these values in slots 0, 1, ...."""
    writer = _Writer(slots)
    for slot, value in enumerate(values):
        writer.store(slot, value)
    return writer.program()


def _cost(checks: ir.Checks) -> int:
    """Return about how much work a check is; searches in strings come last."""
    if isinstance(checks, ir.Check):
        work = 100 if checks.do in _TEXTS else 1 if checks.do in (Do.TRUE, Do.PRESENT, Do.MISSING) else 2
        return work + 2 * sum(isinstance(part, (ir.Operation, ir.OneOf)) for part in ir.parts_of(checks))
    return sum(map(_cost, checks.of))


class _Label:
    """A jump target, whose instruction may not be known yet."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at


class _Writer:
    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._code: list[tuple[int, int | _Label, int, int]] = []
        self._columns: dict[Column, int] = {}
        self._constants: list[Literal | Parameter] = []
        self._results: dict[ir.Value, int] = {}  # results computed on every path so far
        self._scratch = 0

    def program(self) -> Program:
        if not self._code:
            return EMPTY
        code = [(do, a.at if isinstance(a, _Label) else a, b, c) for do, a, b, c in self._code]
        array = np.array(code, dtype=np.int32).reshape(-1, 4)
        array.flags.writeable = False
        return Program(array, tuple(self._columns), tuple(self._constants), self._scratch)

    def check(self, checks: ir.Checks, failed: _Label) -> None:
        """Write checks that jump to `failed` if they do not hold."""
        if isinstance(checks, ir.Check):
            left, right = self._operand(checks.left), 0
            if checks.right is not ir.NOTHING:
                right = self._operand(checks.right)
            self._write(checks.do, failed, left, right)
        elif isinstance(checks, ir.AllOf):
            for one in sorted(checks.of, key=_cost):
                self.check(one, failed)
        else:
            self._check_any(sorted(checks.of, key=_cost), failed)

    def store(self, slot: int, value: ir.Value) -> None:
        if isinstance(value, ir.Linked):
            self._write(Do.LINK, slot, self._operand(value.before))
        else:
            self._write(Do.STORE, slot, self._operand(value))

    def _check_any(self, checks: Iterable[ir.Checks], failed: _Label) -> None:
        """Write code that jumps to `failed` unless one of the checks succeeds."""
        *others, last = (*checks,) or (_NEVER,)
        succeeded = _Label()
        for one in others:
            next_check = _Label()
            self._check_apart(one, next_check)
            self._write(Do.JUMP, succeeded)
            next_check.at = len(self._code)
        self._check_apart(last, failed)
        succeeded.at = len(self._code)

    def _check_apart(self, checks: ir.Checks, failed: _Label) -> None:
        """Write checks that may be skipped, so that later instructions cannot use their results."""
        before = dict(self._results)
        self.check(checks, failed)
        self._results = before

    def _write(self, do: Do, a: int | _Label, b: int = 0, c: int = 0) -> None:
        self._code.append((int(do), a, b, c))

    def _operand(self, value: ir.Value) -> int:
        """Return the operand of a value; a computed value is computed once."""
        if isinstance(value, ir.EventColumn):
            return operand(Mode.EVENT, self._columns.setdefault(value.column, len(self._columns)))
        if isinstance(value, ir.Stored):
            return operand(Mode.BOUND, self._slots[value.key])
        if isinstance(value, ir.Const):
            return self._constant(value.constant)
        if value is ir.DURATION:
            return operand(Mode.DURATION)
        if value is ir.ITSELF:
            return operand(Mode.SELF)
        if value not in self._results:
            self._results[value] = self._compute(value)
        return self._results[value]

    def _constant(self, constant: Literal | Parameter) -> int:
        # Equal literals are not merged, so that a shape of sequences has the automaton of each of its texts.
        if isinstance(constant, Literal) or constant not in self._constants:
            self._constants.append(constant)
            return operand(Mode.CONSTANT, len(self._constants) - 1)
        return operand(Mode.CONSTANT, self._constants.index(constant))

    def _compute(self, value: ir.Value) -> int:
        """Write the code that computes a value, and return the operand of the result."""
        if isinstance(value, ir.Operation):
            left, right = self._operand(value.left), self._operand(value.right)
            return self._into_scratch(value.do, left, right)
        if isinstance(value, ir.OneOf):
            return self._compute_choice(value)
        assert value is ir.NOTHING  # noqa: S101 - all others are operands, or chains
        zero = self._constant(_ZERO)
        return self._into_scratch(Do.DIVIDE, zero, zero)  # which is absent

    def _into_scratch(self, do: Do, left: int, right: int) -> int:
        number = self._scratch
        self._scratch += 1
        self._write(do, number, left, right)
        return operand(Mode.SCRATCH, number)

    def _compute_choice(self, value: ir.OneOf) -> int:
        """Write code that computes one of two values by a condition, and return the operand of the result."""
        number = self._scratch
        self._scratch += 1
        other, done = _Label(), _Label()
        before = dict(self._results)
        self.check(value.where, other)
        then = self._operand(value.then)
        self._write(Do.FIRST, number, then, then)
        self._write(Do.JUMP, done)
        self._results = dict(before)
        other.at = len(self._code)
        otherwise = self._operand(value.otherwise)
        self._write(Do.FIRST, number, otherwise, otherwise)
        self._results = before
        done.at = len(self._code)
        return operand(Mode.SCRATCH, number)


_NEVER: Final = ir.Check(Do.LT, ir.Const(_ZERO), ir.Const(_ZERO))
