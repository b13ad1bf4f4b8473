"""Terms and conditions with other terms in the place of their leaves."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.model.conditions import And, Condition, Constant, Not, Or, Predicate
from tocsin.model.terms import Aggregate, Arithmetic, ArithmeticOperator, Literal, Negative, Term
from tocsin.model.values import Kind
from tocsin.sequences.arithmetic import combine


def in_term(term: Term, leaf: Callable[[Term], Term]) -> Term:
    """Return a term with what `leaf` returns in the place of each name, constant or whole aggregate in it.

    Arithmetic of constants alone is done at once, by the rules of sequences; what has no value is left as it is.
    """
    if isinstance(term, Arithmetic):
        left, right = in_term(term.left, leaf), in_term(term.right, leaf)
        return _folded(term.operator, left, right) or Arithmetic(term.operator, left, right)
    if isinstance(term, Negative):
        inner = in_term(term.term, leaf)
        return _folded(ArithmeticOperator.SUBTRACT, Literal(0, Kind.NUMBER), inner) or Negative(inner)
    return leaf(term)


def in_condition(condition: Condition, leaf: Callable[[Term], Term]) -> Condition:
    """Return a condition with what `leaf` returns in the place of each name and constant in it."""
    if isinstance(condition, Predicate):
        return Predicate(
            in_term(condition.subject, leaf),
            condition.operator,
            tuple(in_term(operand, leaf) for operand in condition.operands),
        )
    if isinstance(condition, Constant):
        return condition
    if isinstance(condition, Not):
        return Not(in_condition(condition.condition, leaf))
    members = tuple(in_condition(member, leaf) for member in condition.conditions)
    return And(members) if isinstance(condition, And) else Or(members)


def has_aggregate(term: Term) -> bool:
    """Tell whether a term has an aggregate in it."""
    if isinstance(term, Arithmetic):
        return has_aggregate(term.left) or has_aggregate(term.right)
    return has_aggregate(term.term) if isinstance(term, Negative) else isinstance(term, Aggregate)


def _folded(operator: ArithmeticOperator, left: Term, right: Term) -> Literal | None:
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    value = combine(operator, left.value, right.value)
    return None if value is None else Literal(value, Kind.NUMBER)
