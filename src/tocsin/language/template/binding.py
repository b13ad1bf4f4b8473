"""Putting values in the place of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypeAlias

from tocsin.language.patterns import like
from tocsin.model.conditions import And, Condition, Constant, Not, Operator, Or, Predicate
from tocsin.model.queries import (
    Computation,
    Filter,
    Fold,
    From,
    Next,
    Query,
    SelectItem,
    Sequence,
    Source,
    Step,
    View,
)
from tocsin.model.terms import Aggregate, Arithmetic, Negative, Parameter, Span, SpanUnit, Term, literal
from tocsin.model.values import Value

Bindings: TypeAlias = Mapping[str, Value | tuple[Value, ...] | timedelta]
"""A constant per parameter, a list of them for `in`, or a timedelta for a length of time."""

_LIKES = (Operator.LIKE, Operator.NOT_LIKE)


def bind_query(query: Query, values: Bindings) -> Query:
    """Return `query` with constants in the place of its parameters."""
    if isinstance(query, Filter):
        return Filter(bind_condition(query.condition, values), query.stream, _items(query.select, values))
    if isinstance(query, View):
        return View(
            _items(query.select, values),
            query.tables,
            bind_condition(query.on, values),
            bind_condition(query.where, values),
            query.distinct,
        )
    return _sequence(query, values)


def bind_condition(condition: Condition, values: Bindings) -> Condition:
    """Return `condition` with constants in the place of its parameters."""
    if isinstance(condition, Predicate):
        return bind_predicate(condition, values)
    if isinstance(condition, Constant):
        return condition
    if isinstance(condition, Not):
        return Not(bind_condition(condition.condition, values))
    members = tuple(bind_condition(member, values) for member in condition.conditions)
    return And(members) if isinstance(condition, And) else Or(members)


def bind_predicate(predicate: Predicate, values: Bindings) -> Predicate:
    """Return `predicate` with constants in the place of its parameters."""
    subject = _term(predicate.subject, values)
    operands: list[Term] = []
    for operand in predicate.operands:
        if isinstance(operand, Parameter) and operand.many:
            operands += [literal(member) for member in values[operand.name]]  # type: ignore[union-attr]
        else:
            operands.append(_term(operand, values))
    if predicate.operator in _LIKES and isinstance(predicate.operands[0], Parameter):
        pattern = values[predicate.operands[0].name]
        return like(subject, str(pattern), negated=predicate.operator is Operator.NOT_LIKE)
    return Predicate(subject, predicate.operator, tuple(operands))


def _term(term: Term, values: Bindings) -> Term:
    if isinstance(term, Parameter):
        value = values[term.name]
        if isinstance(value, timedelta):
            return Span(value // timedelta(microseconds=1), SpanUnit.MICROSECONDS)
        return literal(value)  # type: ignore[arg-type]
    if isinstance(term, Arithmetic):
        return Arithmetic(term.operator, _term(term.left, values), _term(term.right, values))
    if isinstance(term, Negative):
        return Negative(_term(term.term, values))
    if isinstance(term, Aggregate) and term.argument is not None:
        return Aggregate(term.function, _term(term.argument, values))
    return term


def _sequence(query: Sequence, values: Bindings) -> Sequence:
    within = query.within
    if isinstance(within, Parameter):
        length = values[within.name]
        within = _term(within, values) if isinstance(length, timedelta) else Span(length)  # type: ignore[arg-type, assignment]
    steps = tuple(_step(step, values) for step in query.steps)
    return Sequence(steps, within, _items(query.select, values), query.publish)


def _step(step: Step, values: Bindings) -> Step:
    source: Source = step.source if isinstance(step.source, str) else _sequence(step.source, values)
    where = bind_condition(step.where, values)
    if isinstance(step, From):
        return From(source, step.alias, where, _compute(step.compute, values))
    on = bind_condition(step.on, values)
    if isinstance(step, Next):
        return Next(source, step.alias, on, where)
    while_ = bind_condition(step.while_, values)
    return Fold(source, step.alias, on, while_, _compute(step.compute, values), where)


def _compute(computations: tuple[Computation, ...], values: Bindings) -> tuple[Computation, ...]:
    return tuple(Computation(c.name, _term(c.term, values)) for c in computations)


def _items(items: tuple[SelectItem, ...], values: Bindings) -> tuple[SelectItem, ...]:
    return tuple(SelectItem(_term(item.term, values), item.name) for item in items)
