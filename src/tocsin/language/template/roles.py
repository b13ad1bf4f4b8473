"""The roles of a template's parameters, which decide the kinds of value they take."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from tocsin.model.conditions import NEGATED, Condition, Operator, leaves
from tocsin.model.queries import Filter, Query, Sequence, View, computations_of, conditions_of
from tocsin.model.terms import Aggregate, Elapsed, Parameter, Term, operands_of


class Role(StrEnum):
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
    Operator.LIKE: Role.LIKE,
    Operator.REGEX: Role.REGEX,
    Operator.STARTS_WITH: Role.TEXT,
    Operator.ENDS_WITH: Role.TEXT,
    Operator.CONTAINS: Role.TEXT,
}
_OPERATOR_ROLES: Final = _BY_OPERATOR | {NEGATED[operator]: role for operator, role in _BY_OPERATOR.items()}


def roles_of(query: Query) -> dict[str, set[Role]]:
    """Return the roles of each parameter."""
    roles: dict[str, set[Role]] = {}
    for term, role in _terms(query):
        _collect(term, role, roles)
    return roles


def _collect(term: Term, role: Role, roles: dict[str, set[Role]]) -> None:
    if isinstance(term, Parameter):
        roles.setdefault(term.name, set()).add(Role.MANY if term.many else role)
    # Within an aggregate a parameter may be of any kind; within arithmetic it must be a number.
    for operand in operands_of(term):
        _collect(operand, Role.VALUE if isinstance(term, Aggregate) else Role.NUMBER, roles)


def _terms(query: Query) -> Iterator[tuple[Term, Role]]:
    """Return the terms of a query, each with the role that a parameter has in its place."""
    for item in query.select:
        yield item.term, Role.VALUE
    if isinstance(query, Filter):
        yield from _condition_terms(query.condition)
    elif isinstance(query, View):
        yield from _condition_terms(query.on)
        yield from _condition_terms(query.where)
    else:
        yield from _sequence_terms(query)


def _sequence_terms(query: Sequence) -> Iterator[tuple[Term, Role]]:
    if query.within is not None:
        yield query.within, Role.WITHIN
    for step in query.steps:
        if isinstance(step.source, Sequence):
            yield from _terms(step.source)
        for condition in conditions_of(step):
            yield from _condition_terms(condition)
        for computation in computations_of(step):
            yield computation.term, Role.VALUE


def _condition_terms(condition: Condition) -> Iterator[tuple[Term, Role]]:
    for predicate in leaves(condition):
        timed = any(isinstance(term, Elapsed) for term in (predicate.subject, *predicate.operands))
        yield predicate.subject, Role.SPAN if timed else Role.VALUE
        role = Role.SPAN if timed else _OPERATOR_ROLES.get(predicate.operator, Role.VALUE)
        yield from ((operand, role) for operand in predicate.operands)
