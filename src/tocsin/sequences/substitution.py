"""Replacing the leaves of terms and conditions."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.model.conditions import Condition, Predicate, map_predicates
from tocsin.model.terms import Aggregate, Arithmetic, ArithmeticOperator, Literal, Negative, Term, subterms
from tocsin.model.values import Kind
from tocsin.sequences.arithmetic import combine


def in_term(term: Term, leaf: Callable[[Term], Term]) -> Term:
    """Return a term with `leaf` applied to each name, constant or whole aggregate in it.

    Arithmetic of constants is computed at once, by the rules of sequences; if it has no value, it stays.
    """
    if isinstance(term, Arithmetic):
        left, right = in_term(term.left, leaf), in_term(term.right, leaf)
        return _folded(term.operator, left, right) or Arithmetic(term.operator, left, right)
    if isinstance(term, Negative):
        inner = in_term(term.term, leaf)
        return _folded(ArithmeticOperator.SUBTRACT, Literal(0, Kind.NUMBER), inner) or Negative(inner)
    return leaf(term)


def in_condition(condition: Condition, leaf: Callable[[Term], Term]) -> Condition:
    """Return a condition with `leaf` applied to each name and constant in it."""

    def change(predicate: Predicate) -> Predicate:
        operands = tuple(in_term(operand, leaf) for operand in predicate.operands)
        return Predicate(in_term(predicate.subject, leaf), predicate.operator, operands)

    return map_predicates(condition, change)


def has_aggregate(term: Term) -> bool:
    """Tell whether a term has an aggregate in it."""
    return any(isinstance(part, Aggregate) for part in subterms(term))


def _folded(operator: ArithmeticOperator, left: Term, right: Term) -> Literal | None:
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    value = combine(operator, left.value, right.value)
    return None if value is None else Literal(value, Kind.NUMBER)
