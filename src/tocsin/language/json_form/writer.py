"""The model as its JSON form."""

from __future__ import annotations

from typing import Final, TypeAlias, cast

from tocsin.model import queries
from tocsin.model.conditions import TRUE, And, Condition, Constant, Not, Predicate
from tocsin.model.terms import (
    Alternatives,
    Arithmetic,
    Attribute,
    Elapsed,
    Literal,
    Negative,
    Parameter,
    Span,
    Star,
    Term,
)
from tocsin.model.timestamps import format_rfc3339
from tocsin.model.values import Kind

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

ANY_OF: Final = "any of"


def to_json(query: queries.Query) -> Json:
    """Return the JSON form of `query`.

    >>> from tocsin.language.parsing.parser import parse
    >>> to_json(parse("symbol = 'IBM' and price > 100"))
    {'filter': {'where': {'and': [{'=': [{'attribute': ['symbol']}, 'IBM']}, {'>': [{'attribute': ['price']}, 100]}]}}}
    """
    if isinstance(query, queries.Filter):
        from_ = {} if query.stream is None else {"from": query.stream}
        return {"filter": {**from_, "where": _condition(query.condition), **_select(query.select)}}
    if isinstance(query, queries.View):
        return {"view": _view(query)}
    return {"sequence": _sequence(query)}


def predicate_to_json(predicate: Predicate) -> Json:
    """Return the JSON form of one predicate.

    A clause that stands for one predicate is written too, but only `predicate_from_json` reads it.
    """
    if isinstance(predicate.subject, Alternatives):
        return {ANY_OF: [predicate_to_json(one) for one in predicate.subject.predicates]}
    return {predicate.operator.value: [_term(t) for t in (predicate.subject, *predicate.operands)]}


def _select(items: tuple[queries.SelectItem, ...]) -> dict[str, Json]:
    return {"select": [[_term(item.term), item.name] for item in items]} if items else {}


def _condition(condition: Condition) -> Json:
    """Return the JSON form of a condition."""
    if isinstance(condition, Constant):
        return condition.truth
    if isinstance(condition, Predicate):
        return predicate_to_json(condition)
    if isinstance(condition, Not):
        return {"not": [_condition(condition.condition)]}
    return {"and" if isinstance(condition, And) else "or": [_condition(c) for c in condition.conditions]}


def _term(term: Term) -> Json:
    """Return the JSON form of a term."""
    if isinstance(term, Literal):
        value = term.value
        return {"timestamp": [format_rfc3339(value)]} if term.kind is Kind.TIMESTAMP else cast("Json", value)  # type: ignore[arg-type]
    if isinstance(term, Attribute):
        return {"attribute": [term.path] if term.alias is None else [term.path, term.alias]}
    if isinstance(term, Parameter):
        return {"parameters" if term.many else "parameter": [term.name]}
    if isinstance(term, Arithmetic):
        return {term.operator.value: [_term(term.left), _term(term.right)]}
    if isinstance(term, Negative):
        return {"negative": [_term(term.term)]}
    if isinstance(term, Elapsed):
        return {"duration": []}
    if isinstance(term, Span):
        return {"span": [term.amount, term.unit.value]}
    if isinstance(term, Alternatives):
        raise TypeError("a clause is a predicate of its own, and no part of a term")
    if isinstance(term, Star):
        return {"all": []}
    return {term.function.value: [] if term.argument is None else [_term(term.argument)]}


def _sequence(query: queries.Sequence) -> Json:
    form: dict[str, Json] = {"steps": [_step(step) for step in query.steps], **_select(query.select)}
    if query.within is not None:
        form["within"] = _term(query.within)
    if query.publish is not None:
        form["publish"] = query.publish
    return form


def _step(step: queries.Step) -> Json:
    """Return the JSON form of a step."""
    source = step.source if isinstance(step.source, str) else _sequence(step.source)
    form: dict[str, Json] = {queries.keyword_of(step): source}
    if step.alias is not None:
        form["as"] = step.alias
    form |= _conditions(queries.condition_clauses(step))
    if computed := queries.computations_of(step):
        form["compute"] = [[c.name, _term(c.term)] for c in computed]
    return form


def _view(query: queries.View) -> Json:
    tables: list[Json] = [t.name if t.alias is None else [t.name, t.alias] for t in query.tables]
    form: dict[str, Json] = {"tables": tables, **_select(query.select)}
    if query.distinct:
        form["distinct"] = True
    return form | _conditions({"on": query.on, "where": query.where})


def _conditions(clauses: dict[str, Condition]) -> dict[str, Json]:
    return {word: _condition(condition) for word, condition in clauses.items() if condition != TRUE}
