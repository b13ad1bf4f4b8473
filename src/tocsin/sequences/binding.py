"""Binding the parameters of an expression to one row's constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from tocsin.language.template.binding import Bindings, bind_condition, bind_query
from tocsin.model.queries import Sequence, sequences_in
from tocsin.model.terms import Parameter, Term, literal
from tocsin.sequences.algebra import Accumulated, Computed, Expression, Item, Stream, Union
from tocsin.sequences.substitution import replace_leaves
from tocsin.sequences.translation import nested_stream_name

_OPERANDS: Final = ("of", "left", "right")
_CONDITIONS: Final = ("where", "on", "while_")
_COMPUTED: Final = ("values", "compute", "begin")


def bind_expression(
    expression: Expression, values: Bindings, names: Mapping[str, str] | None = None
) -> Expression:
    """Return an expression with one row's constants; `names` has the new names of sequences in parentheses."""
    if isinstance(expression, Stream):
        of = None if expression.of is None else bind_expression(expression.of, values, names)
        return Stream((names or {}).get(expression.name, expression.name), of)
    if isinstance(expression, Union):
        return Union(tuple(bind_expression(member, values, names) for member in expression.of))
    fields: dict[str, Any] = {}
    for name in expression.__struct_fields__:
        part = getattr(expression, name)
        if name in _OPERANDS:
            fields[name] = bind_expression(part, values, names)
        elif name in _CONDITIONS:
            fields[name] = bind_condition(part, values)
        elif name in _COMPUTED:
            fields[name] = tuple(Computed(one.name, _item(one.term, values)) for one in part)
    return replace(expression, **fields)


def bound_names(query: Sequence, values: Bindings) -> dict[str, str]:
    """Return the name that each sequence in parentheses has with one row's constants, by its present name."""
    names: dict[str, str] = {}
    for inner in list(sequences_in(query))[1:]:
        bound = bind_query(inner, values)
        assert isinstance(bound, Sequence)  # noqa: S101 - binding keeps the kind of a query
        names[nested_stream_name(inner)] = nested_stream_name(bound)
    return names


def _item(item: Item, values: Bindings) -> Item:
    if isinstance(item, Accumulated):
        old = None if item.old is None else _term(item.old, values)
        return Accumulated(item.function, old, _term(item.new, values))
    return _term(item, values)


def _term(term: Term, values: Bindings) -> Term:
    def leaf(leaf: Term) -> Term:
        return literal(values[leaf.name]) if isinstance(leaf, Parameter) else leaf  # type: ignore[arg-type]

    return replace_leaves(term, leaf)
