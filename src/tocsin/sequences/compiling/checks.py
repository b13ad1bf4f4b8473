"""Formulas as checks, one per instruction; tests that no instruction makes become residual predicates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tocsin.language.semantics import truth
from tocsin.model.conditions import FLIPPED, Operator, Predicate
from tocsin.model.terms import Attribute, Literal, Parameter, Term
from tocsin.model.values import Kind
from tocsin.sequences._kernels.instructions import Do
from tocsin.sequences.compiling import ir

FEW: Final = 8  # up to so many members of a list are compared one by one

_TRUE: Final = ir.Const(Literal(True, Kind.BOOLEAN))
_TESTS: Final = {operator: Do[operator.name] for operator in Operator if operator.name in Do.__members__}
_APART: Final = (Kind.NUMBER, Kind.BOOLEAN)  # kinds that are never compared with another kind


def checks_of(formula: ir.Formula) -> ir.Checks:
    """Return the checks that are equivalent to a formula."""
    if isinstance(formula, ir.Atom):
        return _atom(formula)
    members = tuple(checks_of(member) for member in formula.of)
    return ir.AllOf(members) if isinstance(formula, ir.AllOf) else ir.AnyOf(members)


def truth_of(value: ir.Value, operator: Operator, operands: tuple[Term, ...]) -> ir.Value:
    """Return a value that is true if a residual predicate on another value holds, and absent otherwise.

    The predicate is about strings and timestamps, unless the value is an attribute of an event. With a parameter in
    it, the result only marks that there is one: such a template is compiled row by row.
    """
    if isinstance(value, ir.Const) and isinstance(value.constant, Parameter):
        return ir.EventColumn(Predicate(value.constant, operator, operands))
    if any(isinstance(operand, Parameter) for operand in operands):
        return ir.EventColumn(Predicate(Attribute("value"), operator, operands))
    if isinstance(value, ir.EventColumn):
        assert isinstance(value.column, str)  # noqa: S101 - there are no predicates about truths
        return ir.EventColumn(Predicate(Attribute(value.column), operator, operands))
    if isinstance(value, ir.Stored):
        assert isinstance(value.key, Attribute)  # noqa: S101 - nor about the events of a match
        return ir.Stored(ir.Truth(value.key, operator, operands))
    if isinstance(value, ir.Const):
        assert isinstance(value.constant, Literal)  # noqa: S101 - parameters are handled above
        name = Attribute("value")
        holds = truth(Predicate(name, operator, operands), {name.path: value.constant.value})
        return _TRUE if holds else ir.NOTHING
    if isinstance(value, ir.Operation) and value.do in (Do.FIRST, Do.LEAST, Do.GREATEST):
        left, right = (truth_of(side, operator, operands) for side in (value.left, value.right))
        if value.do is Do.FIRST:
            return ir.OneOf(ir.Check(Do.PRESENT, value.left), left, right)
        better = ir.Check(Do.LT if value.do is Do.LEAST else Do.GT, value.right, value.left)
        return ir.OneOf(ir.AnyOf((ir.Check(Do.MISSING, value.left), better)), right, left)
    return ir.NOTHING  # a number


def _atom(atom: ir.Atom) -> ir.Checks:
    """Return the checks of one predicate."""
    subject, operator, operands = atom.subject, atom.operator, atom.operands
    if operator in FLIPPED:
        return _compare(subject, operator, operands[0])
    if operator in _TESTS:
        return ir.Check(_TESTS[operator], subject, *operands)
    if operator is Operator.IN or operator is Operator.NOT_IN:
        return _test_list(subject, operator, [_constant(operand) for operand in operands])
    if operator is Operator.BETWEEN or operator is Operator.NOT_BETWEEN:
        return _test_range(subject, operator, operands)
    return _residual(subject, operator, [_constant(operand) for operand in operands])  # a pattern


def _constant(value: ir.Value) -> Literal | Parameter:
    assert isinstance(value, ir.Const)  # noqa: S101 - lists and patterns of the language are constant
    return value.constant


def _is_timestamp(value: ir.Value) -> bool:
    return (
        isinstance(value, ir.Const)
        and isinstance(value.constant, Literal)
        and value.constant.kind is Kind.TIMESTAMP
    )


def _residual(subject: ir.Value, operator: Operator, operands: Iterable[Term]) -> ir.Checks:
    value = truth_of(subject, operator, tuple(operands))
    return ir.AnyOf(()) if value is ir.NOTHING else ir.Check(Do.TRUE, value)


def _compare(left: ir.Value, operator: Operator, right: ir.Value) -> ir.Checks:
    # No instruction reads a text as a timestamp.
    if _is_timestamp(right) and not isinstance(left, ir.Const):
        return _residual(left, operator, [_constant(right)])
    return ir.Check(_TESTS[operator], left, right)


def _test_list(subject: ir.Value, operator: Operator, members: list[Literal | Parameter]) -> ir.Checks:
    """Return the checks of an `in` or `not in`; long lists and lists with timestamps are residual."""
    of_event = isinstance(subject, ir.EventColumn) or (
        isinstance(subject, ir.Stored)
        and isinstance(subject.key, Attribute)
        and subject.key.alias is not None
    )
    literals = [member for member in members if isinstance(member, Literal)]
    timed = any(member.kind is Kind.TIMESTAMP for member in literals)
    many = any(isinstance(member, Parameter) and member.many for member in members)
    if many or (of_event and (timed or len(members) > FEW)):
        return _residual(subject, operator, members)
    if operator is Operator.IN:
        return ir.AnyOf(tuple(_compare(subject, Operator.EQ, ir.Const(member)) for member in members))
    if len(literals) < len(members):
        return _residual(subject, operator, members)
    # A value is not in the list if it differs from all members of its own kind.
    kinds: list[ir.Checks] = [
        ir.AllOf(
            tuple(ir.Check(Do.NE, subject, ir.Const(member)) for member in literals if member.kind is kind)
        )
        for kind in ((*_APART,) if timed else Kind)
        if any(member.kind is kind for member in literals)
    ]
    if timed:  # a text may be one of the texts, or, read as a timestamp, one of the timestamps
        kinds.append(
            _residual(subject, operator, [member for member in literals if member.kind not in _APART])
        )
    return ir.AnyOf(tuple(kinds))


def _test_range(subject: ir.Value, operator: Operator, operands: tuple[ir.Value, ...]) -> ir.Checks:
    """Return the checks of a `between` or `not between`."""
    if all(isinstance(operand, ir.Const) for operand in operands) and any(map(_is_timestamp, operands)):
        return _residual(subject, operator, [_constant(operand) for operand in operands])
    low, high = operands
    if operator is Operator.BETWEEN:
        return ir.AllOf((_between(subject, Operator.GE, low), _between(subject, Operator.LE, high)))
    below, above = _between(subject, Operator.LT, low), _between(subject, Operator.GT, high)
    if _have_one_kind(low, high):
        return ir.AnyOf((below, above))
    # If one end cannot be compared with the subject, the truth is unknown.
    return ir.AnyOf(
        (ir.AllOf((below, _comparable(subject, high))), ir.AllOf((above, _comparable(subject, low))))
    )


def _between(subject: ir.Value, operator: Operator, end: ir.Value) -> ir.Checks:
    if isinstance(subject, ir.Const) and not isinstance(end, ir.Const):
        return _compare(end, FLIPPED[operator], subject)
    return _compare(subject, operator, end)


def _comparable(subject: ir.Value, end: ir.Value) -> ir.Checks:
    return ir.AnyOf((_between(subject, Operator.LE, end), _between(subject, Operator.GT, end)))


def _have_one_kind(low: ir.Value, high: ir.Value) -> bool:
    """Tell whether both are constants of the same kind."""
    return (
        isinstance(low, ir.Const)
        and isinstance(high, ir.Const)
        and isinstance(low.constant, Literal)
        and isinstance(high.constant, Literal)
        and low.constant.kind is high.constant.kind
    )
