"""The roles of a template's parameters, which decide the kinds of value they take."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from tocsin.model.conditions import NEGATED, Condition, Operator, leaves
from tocsin.model.queries import Filter, Query, Sequence, View, computations_of, conditions_of
from tocsin.model.terms import Aggregate, Arithmetic, Elapsed, Negative, Parameter, Term, operands_of


class ParameterRole(StrEnum):
    """The use of a parameter in its query."""

    VALUE = "compared with an attribute"
    MANY = "the list after `in`"
    TEXT = "looked for in a string"
    LIKE = "a pattern of `like`"
    REGEX = "a regular expression"
    NUMBER = "in arithmetic"
    SPAN = "compared with `duration`"
    WITHIN = "the length of time after `within`"


_BY_OPERATOR: Final = {
    Operator.LIKE: ParameterRole.LIKE,
    Operator.REGEX: ParameterRole.REGEX,
    Operator.STARTS_WITH: ParameterRole.TEXT,
    Operator.ENDS_WITH: ParameterRole.TEXT,
    Operator.CONTAINS: ParameterRole.TEXT,
}
_OPERATOR_ROLES: Final = _BY_OPERATOR | {NEGATED[operator]: role for operator, role in _BY_OPERATOR.items()}


def roles_of(query: Query) -> dict[str, set[ParameterRole]]:
    """Return the roles of each parameter."""
    roles: dict[str, set[ParameterRole]] = {}
    for term, role in _terms(query):
        _collect(term, role, roles)
    return roles


def _collect(term: Term, role: ParameterRole, roles: dict[str, set[ParameterRole]]) -> None:
    if isinstance(term, Parameter):
        roles.setdefault(term.name, set()).add(ParameterRole.MANY if term.many else role)
    # Within an aggregate a parameter may be of any kind; within arithmetic it must be a number.
    for operand in operands_of(term):
        _collect(operand, ParameterRole.VALUE if isinstance(term, Aggregate) else ParameterRole.NUMBER, roles)


def _terms(query: Query) -> Iterator[tuple[Term, ParameterRole]]:
    """Yield the terms of a query, each with the role of a parameter at this position."""
    for item in query.select:
        yield item.term, ParameterRole.VALUE
    if isinstance(query, Filter):
        yield from _condition_terms(query.condition)
    elif isinstance(query, View):
        yield from _condition_terms(query.on)
        yield from _condition_terms(query.where)
    else:
        yield from _sequence_terms(query)


def _sequence_terms(query: Sequence) -> Iterator[tuple[Term, ParameterRole]]:
    """Yield each term of a sequence that may be a parameter, and the role of that parameter."""
    if query.within is not None:
        yield query.within, ParameterRole.WITHIN
    for step in query.steps:
        if isinstance(step.source, Sequence):
            yield from _terms(step.source)
        for condition in conditions_of(step):
            yield from _condition_terms(condition)
        for computation in computations_of(step):
            yield computation.term, ParameterRole.VALUE


def _condition_terms(condition: Condition) -> Iterator[tuple[Term, ParameterRole]]:
    for predicate in leaves(condition):
        terms = (predicate.subject, *predicate.operands)
        role = ParameterRole.VALUE
        if any(isinstance(term, Elapsed) for term in terms):
            role = ParameterRole.SPAN
        elif any(isinstance(term, (Arithmetic, Negative)) for term in terms):
            role = ParameterRole.NUMBER  # beside anything else the predicate is never true
        yield predicate.subject, role
        role = _OPERATOR_ROLES.get(predicate.operator, role)
        yield from ((operand, role) for operand in predicate.operands)
