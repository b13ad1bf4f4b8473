"""An expression with constants in the place of a template's parameters."""

from __future__ import annotations

from tocsin.language.template.binding import Bindings, bind_condition
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

__all__ = ["bind_expression"]


def bind_expression(expression: Expression, values: Bindings) -> Expression:
    """Return an expression with one row's constants; sequences in parentheses keep the names they have."""
    if isinstance(expression, Stream):
        of = None if expression.of is None else bind_expression(expression.of, values)
        return Stream(expression.name, of)
    if isinstance(expression, Union):
        return Union(tuple(bind_expression(member, values) for member in expression.of))
    if isinstance(expression, Next):
        return Next(
            bind_expression(expression.left, values),
            bind_expression(expression.right, values),
            bind_condition(expression.on, values),
        )
    if isinstance(expression, Iterate):
        return Iterate(
            bind_expression(expression.left, values),
            bind_expression(expression.right, values),
            expression.alias,
            expression.lefts,
            bind_condition(expression.on, values),
            bind_condition(expression.while_, values),
            _values(expression.compute, values),
            _values(expression.begin, values),
        )
    of = bind_expression(expression.of, values)
    if isinstance(expression, Rename):
        return Rename(of, expression.alias)
    if isinstance(expression, Select):
        return Select(of, bind_condition(expression.where, values))
    if isinstance(expression, Compute):
        return Compute(of, _values(expression.values, values))
    return Project(of, _values(expression.values, values))


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
