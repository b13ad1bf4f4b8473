"""An expression with constants in the place of a template's parameters."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.language.template.binding import Bindings, bind_condition, bind_query
from tocsin.model.queries import Sequence
from tocsin.model.terms import Parameter, Term, literal
from tocsin.sequences.algebra import (
    Accumulated,
    Compute,
    Computed,
    Expression,
    Item,
    Iterate,
    Next,
    Project,
    Rename,
    Select,
    Stream,
    Union,
)
from tocsin.sequences.substitution import in_term
from tocsin.sequences.translation import parenthesised_name


def bind_expression(
    expression: Expression, values: Bindings, names: Mapping[str, str] | None = None
) -> Expression:
    """Return an expression with one row's constants; `names` are those that sequences in parentheses then have."""
    if isinstance(expression, Stream):
        of = None if expression.of is None else bind_expression(expression.of, values, names)
        return Stream((names or {}).get(expression.name, expression.name), of)
    if isinstance(expression, Union):
        return Union(tuple(bind_expression(member, values, names) for member in expression.of))
    if isinstance(expression, Next):
        return Next(
            bind_expression(expression.left, values, names),
            bind_expression(expression.right, values, names),
            bind_condition(expression.on, values),
        )
    if isinstance(expression, Iterate):
        return Iterate(
            bind_expression(expression.left, values, names),
            bind_expression(expression.right, values, names),
            expression.alias,
            expression.lefts,
            bind_condition(expression.on, values),
            bind_condition(expression.while_, values),
            _values(expression.compute, values),
            _values(expression.begin, values),
        )
    of = bind_expression(expression.of, values, names)
    if isinstance(expression, Rename):
        return Rename(of, expression.alias)
    if isinstance(expression, Select):
        return Select(of, bind_condition(expression.where, values))
    if isinstance(expression, Compute):
        return Compute(of, _values(expression.values, values))
    return Project(of, _values(expression.values, values))


def bound_names(query: Sequence, values: Bindings) -> dict[str, str]:
    """Return, of each sequence in parentheses, the name that it has with one row's constants."""
    names: dict[str, str] = {}
    for step in query.steps:
        if isinstance(step.source, Sequence):
            bound = bind_query(step.source, values)
            assert isinstance(bound, Sequence)  # noqa: S101 - what is bound keeps its shape
            names[parenthesised_name(step.source)] = parenthesised_name(bound)
            names |= bound_names(step.source, values)
    return names


def _values(computed: tuple[Computed, ...], values: Bindings) -> tuple[Computed, ...]:
    return tuple(Computed(value.name, _item(value.term, values)) for value in computed)


def _item(item: Item, values: Bindings) -> Item:
    if isinstance(item, Accumulated):
        old = None if item.old is None else _term(item.old, values)
        return Accumulated(item.function, old, _term(item.new, values))
    return _term(item, values)


def _term(term: Term, values: Bindings) -> Term:
    def leaf(leaf: Term) -> Term:
        return literal(values[leaf.name]) if isinstance(leaf, Parameter) else leaf  # type: ignore[arg-type]

    return in_term(term, leaf)
