"""Conditions whose names were replaced by values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.language.normal import to_nnf
from tocsin.model.conditions import FLIPPED, And, Condition, Constant, Operator, Or, Predicate
from tocsin.model.terms import Attribute
from tocsin.sequences.compiling.values import (
    DURATION,
    NOTHING,
    Given,
    Held,
    Made,
    Value,
    made,
    parts_of,
    read_item,
)


class Atom(Struct, frozen=True):
    """A predicate over values."""

    subject: Value
    operator: Operator
    operands: tuple[Value, ...] = ()


class AllOf(Struct, frozen=True):
    """All of some formulas."""

    of: tuple[Formula, ...]


class AnyOf(Struct, frozen=True):
    """At least one of some formulas."""

    of: tuple[Formula, ...]


Formula: TypeAlias = Atom | AllOf | AnyOf

ALWAYS: Final = AllOf(())
NEVER: Final = AnyOf(())

_PRESENCE: Final = (Operator.MISSING, Operator.PRESENT)
_LISTS: Final = (Operator.IN, Operator.NOT_IN)


def conjuncts_of(condition: Condition, named: Callable[[Attribute], Value]) -> list[Formula]:
    """Return the formulas whose conjunction is a condition; `named` returns the value of a name."""
    return _flat(_formula(to_nnf(condition), named))


def rewritten(formula: Formula, change: Callable[[Held], Value]) -> list[Formula]:
    """Return a formula with its held values replaced, as a list of conjuncts."""
    return _flat(_rewritten(formula, change))


def values_in(formula: Formula) -> Iterator[Value]:
    """Return all values in a formula, and the values they are made of."""
    if isinstance(formula, Atom):
        for value in (formula.subject, *formula.operands):
            yield from parts_of(value)
    else:
        for member in formula.of:
            yield from values_in(member)


def _formula(condition: Condition, named: Callable[[Attribute], Value]) -> Formula:
    if isinstance(condition, Predicate):
        subject = read_item(condition.subject, named)
        return _atom(
            subject, condition.operator, tuple(read_item(operand, named) for operand in condition.operands)
        )
    if isinstance(condition, Constant):
        return ALWAYS if condition.truth else NEVER
    if isinstance(condition, And):
        return _all([_formula(member, named) for member in condition.conditions])
    if isinstance(condition, Or):
        return _any([_formula(member, named) for member in condition.conditions])
    raise TypeError("a negation normal form has no `not`")


def _atom(subject: Value, operator: Operator, operands: tuple[Value, ...]) -> Formula:
    """Return a simplified atom: decided if a value is always absent, and with a constant on the right."""
    if operator in _PRESENCE:
        if subject is NOTHING:
            return ALWAYS if operator is Operator.MISSING else NEVER
        return Atom(subject, operator)
    if subject is NOTHING or (operator not in _LISTS and NOTHING in operands):
        return NEVER
    if operator is Operator.BETWEEN and subject is DURATION:
        low, high = operands
        return AllOf((Atom(subject, Operator.GE, (low,)), Atom(subject, Operator.LE, (high,))))
    if operator in FLIPPED and isinstance(subject, Given) and not isinstance(operands[0], Given):
        return Atom(operands[0], FLIPPED[operator], (subject,))
    return Atom(subject, operator, operands)


def _all(formulas: list[Formula]) -> Formula:
    flat = [part for formula in formulas for part in _flat(formula)]
    if NEVER in flat:
        return NEVER
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _any(formulas: list[Formula]) -> Formula:
    flat = [
        part for formula in formulas for part in (formula.of if isinstance(formula, AnyOf) else (formula,))
    ]
    if ALWAYS in flat:
        return ALWAYS
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def _flat(formula: Formula) -> list[Formula]:
    return list(formula.of) if isinstance(formula, AllOf) else [formula]


def _rewritten(formula: Formula, change: Callable[[Held], Value]) -> Formula:
    if isinstance(formula, Atom):
        operands = tuple(_changed(operand, change) for operand in formula.operands)
        return _atom(_changed(formula.subject, change), formula.operator, operands)
    members = [_rewritten(member, change) for member in formula.of]
    return _all(members) if isinstance(formula, AllOf) else _any(members)


def _changed(value: Value, change: Callable[[Held], Value]) -> Value:
    """Return a value with its held values replaced; formulas contain no `OneOf` and no `Linked`."""
    if isinstance(value, Held):
        return change(value)
    if isinstance(value, Made):
        return made(value.do, _changed(value.left, change), _changed(value.right, change))
    return value
