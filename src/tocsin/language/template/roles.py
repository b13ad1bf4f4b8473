"""What a template's parameters are used for, and so what kinds of value they take."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from tocsin.model.conditions import And, Condition, Not, Operator, Or, Predicate
from tocsin.model.queries import Filter, Next, Query, Sequence, View, conditions_of
from tocsin.model.terms import Aggregate, Arithmetic, Elapsed, Negative, Parameter, Term


class Role(StrEnum):
    """What a parameter is used for."""

    VALUE = "compared with an attribute"
    MANY = "the list after `in`"
    TEXT = "looked for in a string"
    LIKE = "a pattern of `like`"
    REGEX = "a regular expression"
    NUMBER = "in arithmetic"
    SPAN = "compared with `duration`"
    WITHIN = "the length of time after `within`"


_OPERATOR_ROLES: Final = {
    Operator.LIKE: Role.LIKE,
    Operator.NOT_LIKE: Role.LIKE,
    Operator.REGEX: Role.REGEX,
    Operator.NOT_REGEX: Role.REGEX,
    Operator.STARTS_WITH: Role.TEXT,
    Operator.NOT_STARTS_WITH: Role.TEXT,
    Operator.ENDS_WITH: Role.TEXT,
    Operator.NOT_ENDS_WITH: Role.TEXT,
    Operator.CONTAINS: Role.TEXT,
    Operator.NOT_CONTAINS: Role.TEXT,
}


def roles_of(query: Query) -> dict[str, set[Role]]:
    """Return, per parameter, all that it is used for."""
    roles: dict[str, set[Role]] = {}
    _in_query(query, roles)
    return roles


def _in_query(query: Query, roles: dict[str, set[Role]]) -> None:
    if isinstance(query, Filter):
        _in_condition(query.condition, roles)
    elif isinstance(query, View):
        _in_condition(query.on, roles)
        _in_condition(query.where, roles)
    else:
        _in_sequence(query, roles)
    for item in query.select:
        _in_term(item.term, roles, Role.VALUE)


def _in_sequence(query: Sequence, roles: dict[str, set[Role]]) -> None:
    if query.within is not None:
        _in_term(query.within, roles, Role.WITHIN)
    for step in query.steps:
        if isinstance(step.source, Sequence):
            _in_query(step.source, roles)
        for condition in conditions_of(step):
            _in_condition(condition, roles)
        if not isinstance(step, Next):
            for computation in step.compute:
                _in_term(computation.term, roles, Role.VALUE)


def _in_condition(condition: Condition, roles: dict[str, set[Role]]) -> None:
    if isinstance(condition, (And, Or)):
        for member in condition.conditions:
            _in_condition(member, roles)
    elif isinstance(condition, Not):
        _in_condition(condition.condition, roles)
    elif isinstance(condition, Predicate):
        terms = (condition.subject, *condition.operands)
        timed = any(isinstance(term, Elapsed) for term in terms)
        _in_term(condition.subject, roles, Role.SPAN if timed else Role.VALUE)
        for operand in condition.operands:
            _in_term(
                operand, roles, Role.SPAN if timed else _OPERATOR_ROLES.get(condition.operator, Role.VALUE)
            )


def _in_term(term: Term, roles: dict[str, set[Role]], role: Role) -> None:
    if isinstance(term, Parameter):
        roles.setdefault(term.name, set()).add(Role.MANY if term.many else role)
    elif isinstance(term, Arithmetic):
        _in_term(term.left, roles, Role.NUMBER)
        _in_term(term.right, roles, Role.NUMBER)
    elif isinstance(term, Negative):
        _in_term(term.term, roles, Role.NUMBER)
    elif isinstance(term, Aggregate) and term.argument is not None:
        _in_term(term.argument, roles, Role.VALUE)
