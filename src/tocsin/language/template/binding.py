"""Binding: the parameters of a template are replaced by constants."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypeAlias

from msgspec.structs import replace

from tocsin.language.patterns import like
from tocsin.model import queries
from tocsin.model.conditions import Condition, Operator, Predicate, clause_predicate, map_predicates
from tocsin.model.terms import Alternatives, Parameter, Span, SpanUnit, Term, literal, map_operands
from tocsin.model.values import Value

Bindings: TypeAlias = Mapping[str, Value | tuple[Value, ...] | timedelta]
"""A constant per parameter, a list of them for `in`, or a timedelta for a length of time."""

_LIKES = (Operator.LIKE, Operator.NOT_LIKE)


def bind_query(query: queries.Query, values: Bindings) -> queries.Query:
    """Return `query` with its parameters replaced by constants."""
    select = tuple(replace(item, term=_bind_term(item.term, values)) for item in query.select)
    if isinstance(query, queries.Filter):
        return replace(query, condition=bind_condition(query.condition, values), select=select)
    if isinstance(query, queries.View):
        on, where = (bind_condition(condition, values) for condition in (query.on, query.where))
        return replace(query, select=select, on=on, where=where)
    steps = tuple(_bind_step(step, values) for step in query.steps)
    within = query.within
    if isinstance(within, Parameter):
        length = values[within.name]
        within = _bind_term(within, values) if isinstance(length, timedelta) else Span(length)  # type: ignore[arg-type, assignment]
    return replace(query, steps=steps, within=within, select=select)


def bind_predicate(predicate: Predicate, values: Bindings) -> Predicate:
    """Return `predicate` with its parameters replaced by constants."""
    if type(predicate.subject) is Alternatives:
        return clause_predicate(tuple(bind_predicate(one, values) for one in predicate.subject.predicates))
    subject = _bind_term(predicate.subject, values)
    operands: list[Term] = []
    for operand in predicate.operands:
        if isinstance(operand, Parameter) and operand.many:
            operands += [literal(member) for member in values[operand.name]]  # type: ignore[union-attr]
        else:
            operands.append(_bind_term(operand, values))
    if predicate.operator in _LIKES and isinstance(predicate.operands[0], Parameter):
        pattern = values[predicate.operands[0].name]
        return like(subject, str(pattern), negated=predicate.operator is Operator.NOT_LIKE)
    return Predicate(subject, predicate.operator, tuple(operands))


def bind_condition(condition: Condition, values: Bindings) -> Condition:
    """Return `condition` with its parameters replaced by constants."""
    return map_predicates(condition, lambda predicate: bind_predicate(predicate, values))


def _bind_term(term: Term, values: Bindings) -> Term:
    if not isinstance(term, Parameter):
        return map_operands(term, lambda operand: _bind_term(operand, values))
    value = values[term.name]
    if isinstance(value, timedelta):
        return Span(value // timedelta(microseconds=1), SpanUnit.MICROSECONDS)
    return literal(value)  # type: ignore[arg-type]


def _bind_step(step: queries.Step, values: Bindings) -> queries.Step:
    """Return a step with its parameters replaced by values."""
    fields: dict[str, object] = {
        queries.field_of(word): bind_condition(condition, values)
        for word, condition in queries.condition_clauses(step).items()
    }
    if isinstance(step.source, queries.Sequence):
        fields["source"] = bind_query(step.source, values)
    if computed := queries.computations_of(step):
        fields["compute"] = tuple(replace(one, term=_bind_term(one.term, values)) for one in computed)
    return replace(step, **fields)
