"""Replacing the leaves of terms and conditions."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.model.conditions import Condition, map_terms
from tocsin.model.terms import Aggregate, Arithmetic, ArithmeticOperator, Literal, Negative, Term, subterms
from tocsin.model.values import Kind
from tocsin.sequences.arithmetic import combine


def replace_leaves(term: Term, leaf: Callable[[Term], Term]) -> Term:
    """Return a term with `leaf` applied to each name, constant or whole aggregate in it.

    Arithmetic of constants is computed at once, by the rules of sequences; if it has no value, it stays.
    """
    if isinstance(term, Arithmetic):
        left, right = replace_leaves(term.left, leaf), replace_leaves(term.right, leaf)
        return _fold_constants(term.operator, left, right) or Arithmetic(term.operator, left, right)
    if isinstance(term, Negative):
        inner = replace_leaves(term.term, leaf)
        return _fold_constants(ArithmeticOperator.SUBTRACT, Literal(0, Kind.NUMBER), inner) or Negative(inner)
    return leaf(term)


def replace_condition_leaves(condition: Condition, leaf: Callable[[Term], Term]) -> Condition:
    """Return a condition with `leaf` applied to each name and constant in it."""
    return map_terms(condition, lambda term: replace_leaves(term, leaf))


def has_aggregate(term: Term) -> bool:
    """Tell whether a term has an aggregate in it."""
    return any(isinstance(part, Aggregate) for part in subterms(term))


def _fold_constants(operator: ArithmeticOperator, left: Term, right: Term) -> Literal | None:
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    value = combine(operator, left.value, right.value)
    return None if value is None else Literal(value, Kind.NUMBER)
