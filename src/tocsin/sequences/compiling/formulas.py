"""Conditions whose names were replaced by values, and their static part, which a matcher indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Final

from tocsin.language.normal import to_nnf
from tocsin.model.conditions import (
    FALSE,
    FLIPPED,
    TRUE,
    And,
    Condition,
    Constant,
    Operator,
    Or,
    Predicate,
    all_of,
    any_of,
)
from tocsin.model.terms import Attribute
from tocsin.sequences.compiling import ir

ALWAYS: Final[ir.Formula] = ir.AllOf(())
NEVER: Final[ir.Formula] = ir.AnyOf(())

_PRESENCE: Final = (Operator.MISSING, Operator.PRESENT)
_LISTS: Final = (Operator.IN, Operator.NOT_IN)
# Conjunctions of one static part; those of a guard and an edge, multiplied, are within the limit of a matcher.
_MOST: Final = 32


def conjuncts_of(condition: Condition, named: Callable[[Attribute], ir.Value]) -> list[ir.Formula]:
    """Return the formulas whose conjunction is a condition; `named` returns the value of a name."""
    return _flat(_formula(to_nnf(condition), named))


def rewrite(formula: ir.Formula, change: Callable[[ir.Stored], ir.Value]) -> list[ir.Formula]:
    """Return a formula with its held values replaced, as a list of conjuncts."""
    return _flat(_rewrite(formula, change))


def values_in(formula: ir.Formula) -> Iterator[ir.Value]:
    """Yield all values in a formula, and the values they are made of."""
    if isinstance(formula, ir.Atom):
        for value in (formula.subject, *formula.operands):
            yield from ir.parts_of(value)
    else:
        for member in formula.of:
            yield from values_in(member)


def _formula(condition: Condition, named: Callable[[Attribute], ir.Value]) -> ir.Formula:
    """Return the formula of a condition in negation normal form."""
    if isinstance(condition, Predicate):
        subject = ir.read_item(condition.subject, named)
        operands = tuple(ir.read_item(operand, named) for operand in condition.operands)
        return _atom(subject, condition.operator, operands)
    if isinstance(condition, Constant):
        return ALWAYS if condition.truth else NEVER
    if isinstance(condition, And):
        return _all([_formula(member, named) for member in condition.conditions])
    if isinstance(condition, Or):
        return _any([_formula(member, named) for member in condition.conditions])
    raise TypeError("a negation normal form has no `not`")


def _atom(subject: ir.Value, operator: Operator, operands: tuple[ir.Value, ...]) -> ir.Formula:
    """Return a simplified atom: decided if a value is always absent, and with a constant on the right."""
    if operator in _PRESENCE:
        if subject is ir.NOTHING:
            return ALWAYS if operator is Operator.MISSING else NEVER
        return ir.Atom(subject, operator)
    if subject is ir.NOTHING or (operator not in _LISTS and ir.NOTHING in operands):
        return NEVER
    if operator is Operator.BETWEEN and subject is ir.DURATION:
        low, high = operands
        return ir.AllOf((ir.Atom(subject, Operator.GE, (low,)), ir.Atom(subject, Operator.LE, (high,))))
    if operator in FLIPPED and isinstance(subject, ir.Const) and not isinstance(operands[0], ir.Const):
        return ir.Atom(operands[0], FLIPPED[operator], (subject,))
    return ir.Atom(subject, operator, operands)


def _all(formulas: list[ir.Formula]) -> ir.Formula:
    flat = [part for formula in formulas for part in _flat(formula)]
    if NEVER in flat:
        return NEVER
    return flat[0] if len(flat) == 1 else ir.AllOf(tuple(flat))


def _any(formulas: list[ir.Formula]) -> ir.Formula:
    flat = [part for one in formulas for part in (one.of if isinstance(one, ir.AnyOf) else (one,))]
    if ALWAYS in flat:
        return ALWAYS
    return flat[0] if len(flat) == 1 else ir.AnyOf(tuple(flat))


def _flat(formula: ir.Formula) -> list[ir.Formula]:
    return list(formula.of) if isinstance(formula, ir.AllOf) else [formula]


def _rewrite(formula: ir.Formula, change: Callable[[ir.Stored], ir.Value]) -> ir.Formula:
    if isinstance(formula, ir.Atom):
        operands = tuple(_change_value(operand, change) for operand in formula.operands)
        return _atom(_change_value(formula.subject, change), formula.operator, operands)
    members = [_rewrite(member, change) for member in formula.of]
    return _all(members) if isinstance(formula, ir.AllOf) else _any(members)


def _change_value(value: ir.Value, change: Callable[[ir.Stored], ir.Value]) -> ir.Value:
    """Return a value with its held values replaced; formulas contain no `OneOf` and no `Linked`."""
    if isinstance(value, ir.Stored):
        return change(value)
    if isinstance(value, ir.Operation):
        return ir.operation(value.do, _change_value(value.left, change), _change_value(value.right, change))
    return value


def split(formulas: Iterable[ir.Formula]) -> tuple[Condition, list[ir.Formula]]:
    """Return the static part of a conjunction of formulas, and the formulas that a program has to test.

    A formula that mixes event and instance is tested by the program, and the condition on the event that it implies is
    also in the static part. A formula with too many alternatives for an index is only tested by the program.
    """
    static: list[Condition] = []
    dynamic: list[ir.Formula] = []
    alternatives = 1
    for formula in formulas:
        relaxed, whole = _relax(formula)
        grown = alternatives * _alternatives(relaxed)
        if grown > _MOST:
            dynamic.append(formula)
            continue
        alternatives = max(grown, 1)
        if relaxed != TRUE:
            static += relaxed.conditions if isinstance(relaxed, And) else (relaxed,)
        if not whole:
            dynamic.append(formula)
    return FALSE if FALSE in static else all_of(list(dict.fromkeys(static))), dynamic


def _alternatives(condition: Condition) -> int:
    """Return how many conjunctions a condition without `not` has at most, multiplied out."""
    if isinstance(condition, And):
        return prod(map(_alternatives, condition.conditions))
    if isinstance(condition, Or):
        return sum(map(_alternatives, condition.conditions))
    return 1


def _relax(formula: ir.Formula) -> tuple[Condition, bool]:
    """Return a condition on the event alone that a formula implies, and whether the two are equivalent."""
    if isinstance(formula, ir.Atom):
        predicate = _predicate(formula)
        return (TRUE, False) if predicate is None else (predicate, True)
    members = [_relax(member) for member in formula.of]
    whole = all(member[1] for member in members)
    relaxed = [member[0] for member in members]
    if isinstance(formula, ir.AllOf):
        return all_of([condition for condition in relaxed if condition != TRUE]), whole
    return TRUE if TRUE in relaxed else any_of(relaxed), whole


def _predicate(atom: ir.Atom) -> Predicate | None:
    """Return an atom as a predicate, if it compares an attribute of the event with constants."""
    if not isinstance(atom.subject, ir.EventColumn) or not isinstance(atom.subject.column, str):
        return None
    constants = tuple(operand.constant for operand in atom.operands if isinstance(operand, ir.Const))
    if len(constants) < len(atom.operands):
        return None
    return Predicate(Attribute(atom.subject.column), atom.operator, constants)
