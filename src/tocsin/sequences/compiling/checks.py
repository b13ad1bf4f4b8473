"""Formulas as checks, one per instruction; tests that no instruction makes become residual predicates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tocsin.language.semantics import truth
from tocsin.model.conditions import FLIPPED, Operator, Predicate
from tocsin.model.terms import Attribute, Literal, Parameter, Term
from tocsin.model.values import Kind
from tocsin.sequences._kernels.instructions import Do
from tocsin.sequences.compiling.formulas import AllOf, Atom, Formula
from tocsin.sequences.compiling.values import (
    NOTHING,
    Check,
    Checks,
    Every,
    Given,
    Held,
    Made,
    OneOf,
    Read,
    Some,
    Truth,
    Value,
)

FEW: Final = 8  # up to so many members of a list are compared one by one

_TRUE: Final = Given(Literal(True, Kind.BOOLEAN))
_COMPARISONS: Final = {
    Operator.EQ: Do.EQ,
    Operator.NE: Do.NE,
    Operator.LT: Do.LT,
    Operator.LE: Do.LE,
    Operator.GT: Do.GT,
    Operator.GE: Do.GE,
}
_TEXTS: Final = {
    Operator.CONTAINS: Do.CONTAINS,
    Operator.NOT_CONTAINS: Do.NOT_CONTAINS,
    Operator.STARTS_WITH: Do.STARTS_WITH,
    Operator.NOT_STARTS_WITH: Do.NOT_STARTS_WITH,
    Operator.ENDS_WITH: Do.ENDS_WITH,
    Operator.NOT_ENDS_WITH: Do.NOT_ENDS_WITH,
}
_APART: Final = (Kind.NUMBER, Kind.BOOLEAN)  # kinds that are never compared with another kind


def checks_of(formula: Formula) -> Checks:
    """Return the checks that are equivalent to a formula."""
    if isinstance(formula, Atom):
        return _atom(formula)
    members = tuple(checks_of(member) for member in formula.of)
    return Every(members) if isinstance(formula, AllOf) else Some(members)


def truth_of(value: Value, operator: Operator, operands: tuple[Term, ...]) -> Value:
    """Return a value that is true if a residual predicate on another value holds, and absent otherwise.

    The predicate is about strings and timestamps, unless the value is an attribute of an event. With a parameter in
    it, the result only marks that there is one: such a template is compiled row by row.
    """
    if isinstance(value, Given) and isinstance(value.constant, Parameter):
        return Read(Predicate(value.constant, operator, operands))
    if any(isinstance(operand, Parameter) for operand in operands):
        return Read(Predicate(Attribute("value"), operator, operands))
    if isinstance(value, Read):
        assert isinstance(value.column, str)  # noqa: S101 - there are no predicates about truths
        return Read(Predicate(Attribute(value.column), operator, operands))
    if isinstance(value, Held):
        assert isinstance(value.key, Attribute)  # noqa: S101 - nor about the events of a match
        return Held(Truth(value.key, operator, operands))
    if isinstance(value, Given):
        assert isinstance(value.constant, Literal)  # noqa: S101 - parameters are handled above
        name = Attribute("value")
        holds = truth(Predicate(name, operator, operands), {name.path: value.constant.value})
        return _TRUE if holds else NOTHING
    if isinstance(value, Made) and value.do in (Do.FIRST, Do.LEAST, Do.GREATEST):
        left, right = (truth_of(side, operator, operands) for side in (value.left, value.right))
        if value.do is Do.FIRST:
            return OneOf(Check(Do.PRESENT, value.left), left, right)
        better = Check(Do.LT if value.do is Do.LEAST else Do.GT, value.right, value.left)
        return OneOf(Some((Check(Do.MISSING, value.left), better)), right, left)
    return NOTHING  # a number


def _atom(atom: Atom) -> Checks:
    subject, operator, operands = atom.subject, atom.operator, atom.operands
    if operator in _COMPARISONS:
        return _compared(subject, operator, operands[0])
    if operator in _TEXTS:
        return Check(_TEXTS[operator], subject, operands[0])
    if operator is Operator.PRESENT or operator is Operator.MISSING:
        return Check(Do.PRESENT if operator is Operator.PRESENT else Do.MISSING, subject)
    if operator is Operator.IN or operator is Operator.NOT_IN:
        return _listed(subject, operator, [_constant(operand) for operand in operands])
    if operator is Operator.BETWEEN or operator is Operator.NOT_BETWEEN:
        return _ranged(subject, operator, operands)
    return _residual(subject, operator, [_constant(operand) for operand in operands])  # a pattern


def _constant(value: Value) -> Literal | Parameter:
    assert isinstance(value, Given)  # noqa: S101 - lists and patterns of the language are constant
    return value.constant


def _is_timestamp(value: Value) -> bool:
    return (
        isinstance(value, Given)
        and isinstance(value.constant, Literal)
        and value.constant.kind is Kind.TIMESTAMP
    )


def _residual(subject: Value, operator: Operator, operands: Iterable[Term]) -> Checks:
    value = truth_of(subject, operator, tuple(operands))
    return Some(()) if value is NOTHING else Check(Do.TRUE, value)


def _compared(left: Value, operator: Operator, right: Value) -> Checks:
    if _is_timestamp(right) and not isinstance(left, Given):  # no instruction reads a text as a timestamp
        return _residual(left, operator, [_constant(right)])
    return Check(_COMPARISONS[operator], left, right)


def _listed(subject: Value, operator: Operator, members: list[Literal | Parameter]) -> Checks:
    of_event = isinstance(subject, Read) or (
        isinstance(subject, Held) and isinstance(subject.key, Attribute) and subject.key.alias is not None
    )
    literals = [member for member in members if isinstance(member, Literal)]
    timed = any(member.kind is Kind.TIMESTAMP for member in literals)
    many = any(isinstance(member, Parameter) and member.many for member in members)
    if many or (of_event and (timed or len(members) > FEW)):
        return _residual(subject, operator, members)
    if operator is Operator.IN:
        return Some(tuple(_compared(subject, Operator.EQ, Given(member)) for member in members))
    if len(literals) < len(members):
        return _residual(subject, operator, members)
    # A value is not in the list if it differs from all members of its own kind.
    kinds: list[Checks] = [
        Every(tuple(Check(Do.NE, subject, Given(member)) for member in literals if member.kind is kind))
        for kind in ((*_APART,) if timed else Kind)
        if any(member.kind is kind for member in literals)
    ]
    if timed:  # a text may be one of the texts, or, read as a timestamp, one of the timestamps
        kinds.append(
            _residual(subject, operator, [member for member in literals if member.kind not in _APART])
        )
    return Some(tuple(kinds))


def _ranged(subject: Value, operator: Operator, operands: tuple[Value, ...]) -> Checks:
    if all(isinstance(operand, Given) for operand in operands) and any(map(_is_timestamp, operands)):
        return _residual(subject, operator, [_constant(operand) for operand in operands])
    low, high = operands
    if operator is Operator.BETWEEN:
        return Every((_between(subject, Operator.GE, low), _between(subject, Operator.LE, high)))
    below, above = _between(subject, Operator.LT, low), _between(subject, Operator.GT, high)
    if _of_one_kind(low, high):
        return Some((below, above))
    # If one end cannot be compared with the subject, the truth is unknown.
    return Some((Every((below, _comparable(subject, high))), Every((above, _comparable(subject, low)))))


def _between(subject: Value, operator: Operator, end: Value) -> Checks:
    if isinstance(subject, Given) and not isinstance(end, Given):
        return _compared(end, FLIPPED[operator], subject)
    return _compared(subject, operator, end)


def _comparable(subject: Value, end: Value) -> Checks:
    return Some((_between(subject, Operator.LE, end), _between(subject, Operator.GT, end)))


def _of_one_kind(low: Value, high: Value) -> bool:
    return (
        isinstance(low, Given)
        and isinstance(high, Given)
        and isinstance(low.constant, Literal)
        and isinstance(high.constant, Literal)
        and low.constant.kind is high.constant.kind
    )
