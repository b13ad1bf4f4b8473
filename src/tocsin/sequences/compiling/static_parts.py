"""The static part of formulas: the conditions on the event alone, which a matcher indexes."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from tocsin.model.conditions import FALSE, TRUE, And, Condition, Or, Predicate, all_of
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.sequences.compiling.formulas import AllOf, Atom, Formula
from tocsin.sequences.compiling.values import Given, Read

# Conjunctions of one static part; those of a guard and an edge, multiplied, are within the limit of a matcher.
_MOST: Final = 32


def split(formulas: Iterable[Formula]) -> tuple[Condition, list[Formula]]:
    """Return the static part of a conjunction of formulas, and the formulas that a program has to test.

    A formula that mixes event and instance is tested by the program, and the condition on the event that it implies is
    also in the static part. A formula with too many alternatives for an index is only tested by the program.
    """
    static: list[Condition] = []
    dynamic: list[Formula] = []
    alternatives = 1
    for formula in formulas:
        relaxed, whole = _relaxed(formula)
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


def _relaxed(formula: Formula) -> tuple[Condition, bool]:
    """Return a condition on the event alone that a formula implies, and whether the two are equivalent."""
    if isinstance(formula, Atom):
        predicate = _predicate(formula)
        return (TRUE, False) if predicate is None else (predicate, True)
    members = [_relaxed(member) for member in formula.of]
    whole = all(member[1] for member in members)
    conditions = [member[0] for member in members]
    if isinstance(formula, AllOf):
        return _all(conditions), whole
    if not conditions:
        return FALSE, True
    if TRUE in conditions:
        return TRUE, whole
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions)), whole


def _all(conditions: list[Condition]) -> Condition:
    return all_of([condition for condition in conditions if condition != TRUE])


def _predicate(atom: Atom) -> Predicate | None:
    """Return an atom as a predicate, if it compares an attribute of the event with constants."""
    if not isinstance(atom.subject, Read) or not isinstance(atom.subject.column, str):
        return None
    operands: list[Literal | Parameter] = []
    for operand in atom.operands:
        if not isinstance(operand, Given):
            return None
        operands.append(operand.constant)
    return Predicate(Attribute(atom.subject.column), atom.operator, tuple(operands))
