"""Queries from text, JSON, builders or the model, together with their warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from tocsin.language.build.expressions import Clause
from tocsin.language.build.queries import StreamBuilder, TableBuilder
from tocsin.language.json_form import from_json
from tocsin.language.normal import Cnf, Dnf, dnf_unless_cnf_is_smaller, never_reasons
from tocsin.language.parsing.parser import canonical, parse, read
from tocsin.language.printer import condition_text
from tocsin.language.text_shapes import remember_shape, shaped_text
from tocsin.model.conditions import TRUE, And, Condition, Constant, Not, Operator, Or, Predicate, leaves
from tocsin.model.errors import NormalFormError, SubscriptionError
from tocsin.model.queries import Filter, Query, Sequence, View, conditions_of

BuiltSource: TypeAlias = Mapping[str, object] | Query | Condition | Clause | StreamBuilder | TableBuilder
QuerySource: TypeAlias = str | BuiltSource


class Checked(Struct, frozen=True):
    """A query with its warnings.

    `normal` is the normal form of a filter's condition, or None if it is too large: the disjunctive form, or the
    conjunctive form where that is much smaller.
    """

    query: Query
    warnings: tuple[str, ...] = ()
    normal: Dnf | Cnf | None = None


def check(text: str, *, template: bool = False) -> Checked:
    """Return the query of `text` with its warnings; raise `LanguageError` if it cannot be parsed.

    >>> check("a between 5 and 3 or a = 1").warnings
    ('one of its alternatives can never match: no value of a satisfies `a between 5 and 3`',)
    >>> check("a = 1 and a = 2").warnings
    ('it can never match: no value of a satisfies `a = 1 and a = 2`',)
    """
    shaped = None if template else shaped_text(text)
    if shaped is not None:
        conjunction = shaped.shape.conjunction(shaped.constants)
        return Checked(shaped.shape.bind(conjunction), (), Dnf((conjunction,)))
    query, cursor = read(text, template=template)
    checked = check_query(query, tuple(cursor.warnings))
    if not template and not checked.warnings:
        remember_shape(text, query)
    return checked


def read_text(text: str) -> Query:
    """Return the query of a text, without checking whether it can match."""
    shaped = shaped_text(text)
    return parse(text) if shaped is None else shaped.filter()


def read_query(source: QuerySource) -> Checked:
    """Return the query of `source` with its warnings, whatever form the source has.

    >>> read_query({"=": [{"attribute": ["symbol"]}, "IBM"]}).query == read_query("symbol = 'IBM'").query
    True
    """
    return check(source) if isinstance(source, str) else check_query(built_query(source))


def built_query(source: BuiltSource, *, template: bool = False) -> Query:
    """Return the query of a JSON form, a builder or the model; raise `SubscriptionError` for anything else."""
    if isinstance(source, Mapping):
        return from_json(source, template=template)
    if isinstance(source, (Clause, StreamBuilder, TableBuilder)):
        return source.build(template=template)
    if isinstance(source, (Predicate, And, Or, Not, Constant)):
        return canonical(Filter(source), template=template)
    if isinstance(source, (Filter, Sequence, View)):
        return canonical(source, template=template)
    raise SubscriptionError(
        f"a subscription is a text, a JSON form or a built query, not {type(source).__name__}"
    )


def check_query(query: Query, warnings: tuple[str, ...] = ()) -> Checked:
    """Return a query with `warnings`, and with a warning for each condition or alternative that can never match."""
    found = list(warnings)
    normal = None
    for condition in _conditions(query):
        try:
            normal = dnf_unless_cnf_is_smaller(condition)
        except NormalFormError:
            continue  # the caller that needs the normal form raises the error
        never = normal.never if isinstance(normal, Dnf) else never_reasons(condition)
        reasons = [*never, *(f"the list of `{p}` is empty" for p in _empty_lists(condition))]
        if isinstance(normal, Dnf) and not normal.conjunctions:
            found.append(f"it can never match: {'; '.join(reasons) or 'its condition is false'}")
        else:
            found += [f"one of its alternatives can never match: {reason}" for reason in reasons]
    return Checked(query, tuple(found), normal if isinstance(query, Filter) else None)


def _empty_lists(condition: Condition) -> Iterator[str]:
    return (
        condition_text(p)
        for p in leaves(condition)
        if p.operator in (Operator.IN, Operator.NOT_IN) and not p.operands
    )


def _conditions(query: Query) -> list[Condition]:
    """Return the conditions of a query, nested sequences included; those that are always true are left out."""
    if isinstance(query, Filter):
        return [query.condition]
    if isinstance(query, View):
        return [query.on, query.where]
    found: list[Condition] = []
    for step in query.steps:
        if not isinstance(step.source, str):
            found += _conditions(step.source)
        found += conditions_of(step)
    return [condition for condition in found if condition != TRUE]
