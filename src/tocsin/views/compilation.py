"""From a view as it is written to how it is followed, or why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np

from tocsin.language.normal import Cnf, dnf_unless_too_large
from tocsin.language.printer import condition_text
from tocsin.language.template.columns import Column
from tocsin.model.conditions import And, Condition, Conjunction, Operator, Predicate, all_of, map_terms
from tocsin.model.errors import NormalFormError, SubscriptionError
from tocsin.model.queries import SelectItem, View
from tocsin.model.terms import Aggregate, Attribute, Literal, Parameter, Term, map_operands, subterms
from tocsin.model.values import Kind, kind_of
from tocsin.views.compiled import LEFT, RIGHT, Bound, CompiledRangeView, CompiledRowView, CompiledView
from tocsin.views.numbers import WIDEST, is_exact

_LOWS: Final = {Operator.GE: False, Operator.GT: True}  # whether the end is open
_HIGHS: Final = {Operator.LE: False, Operator.LT: True}


def compile_view(view: View, id_: str, columns: Mapping[str, Column] | None = None) -> CompiledView:
    """Return a compiled view, or raise `SubscriptionError` with the remedy.

    `columns` are the values of a template's parameters. A view is followed by range if it can be, else by row.
    """
    aggregate, y = _asked(view, id_)
    terms = [term for item in view.select for term in subterms(item.term)]
    parameters = [term.name for term in terms if isinstance(term, Parameter)]
    if parameters:
        raise SubscriptionError(
            f"`:{parameters[0]}` is in the selected values; parameters of a view belong in its condition", id_
        )
    if len(view.tables) == 2:
        return _joined(view, aggregate, y, id_)
    if aggregate != "rows":
        ranged = _ranged(view, aggregate, y, columns or {})
        if ranged is not None:
            return ranged
    name = view.tables[0].name
    return CompiledRowView(
        aggregate, (name,), view.where, y, view.select if aggregate == "rows" else (), (name,)
    )


def _asked(view: View, id_: str) -> tuple[str, Term | None]:
    """Return the aggregate of a view, and the term that it aggregates."""
    aggregates = [
        item.term for item in view.select if any(isinstance(term, Aggregate) for term in subterms(item.term))
    ]
    if view.distinct:
        if len(view.select) != 1 or aggregates:
            raise SubscriptionError(
                "`select distinct` has the values of one attribute or expression; make one view for each",
                id_,
            )
        return "distinct", view.select[0].term
    if not aggregates:
        return "rows", None
    first = aggregates[0]
    if len(view.select) > 1:
        raise SubscriptionError(
            "a view has one answer: one of min, max, count, sum, avg alone; make one view for each", id_
        )
    if not isinstance(first, Aggregate):
        raise SubscriptionError(
            f"`{view.select[0].name}`: an aggregate stands alone, as in `select min(price)`; make one view for "
            "each aggregate, and combine their answers",
            id_,
        )
    return first.function.value, first.argument


# one range of one attribute


def _ranged(
    view: View, aggregate: str, y: Term | None, columns: Mapping[str, Column]
) -> CompiledRangeView | None:
    """Return the plan of a view whose condition is one range of one attribute; None if it is something else."""
    try:
        normal = dnf_unless_too_large(view.where)
    except NormalFormError:
        return None
    if isinstance(normal, Cnf) or len(normal.conjunctions) != 1:
        return None
    (conjunction,) = normal.conjunctions
    table = view.tables[0].name
    if not conjunction:
        return CompiledRangeView(aggregate, table, None, moments=False, y=y)
    bounds = _bounds(conjunction)
    if bounds is None:
        return None
    x, lows, highs = bounds
    kinds = {_kind(bound.term, columns) for bound in (*lows, *highs)}
    if len(kinds) != 1 or not kinds <= {Kind.NUMBER, Kind.TIMESTAMP}:
        return None
    return CompiledRangeView(aggregate, table, x, kinds == {Kind.TIMESTAMP}, y, lows, highs)


def _bounds(conjunction: Conjunction) -> tuple[str, tuple[Bound, ...], tuple[Bound, ...]] | None:
    """Return the attribute and its bounds; None if the condition is not one range of one attribute."""
    names: set[str] = set()
    lows: list[Bound] = []
    highs: list[Bound] = []
    for predicate in conjunction:
        if not isinstance(predicate.subject, Attribute):
            return None
        names.add(predicate.subject.path)
        operands = [one for one in predicate.operands if isinstance(one, (Literal, Parameter))]
        if len(operands) != len(predicate.operands) or not operands:
            return None
        operator = predicate.operator
        if operator in _LOWS:
            lows.append(Bound(operands[0], _LOWS[operator]))
        elif operator in _HIGHS:
            highs.append(Bound(operands[0], _HIGHS[operator]))
        elif operator in (Operator.EQ, Operator.BETWEEN):
            lows.append(Bound(operands[0]))
            highs.append(Bound(operands[-1]))
        else:
            return None
    return (names.pop(), tuple(lows), tuple(highs)) if len(names) == 1 else None


def _kind(term: Literal | Parameter, columns: Mapping[str, Column]) -> Kind | None:
    """Return the kind of a bound's constant, or of all of a parameter's; None if they are mixed, or no float holds one."""
    if isinstance(term, Literal):
        return term.kind if _is_end(term.value) else None
    if term.many or term.name not in columns:
        return None
    column = columns[term.name]
    if column.dtype.kind == "f":
        return Kind.NUMBER if not len(column) or _is_end(float(np.abs(column).max())) else None
    if column.dtype.kind in "iu":
        exact = not len(column) or (is_exact(int(column.min())) and is_exact(int(column.max())))
        wide = bool(len(column)) and max(abs(int(column.min())), abs(int(column.max()))) > 2**53
        return Kind.NUMBER if exact and not wide else None
    values = column.tolist()
    kinds = {kind_of(value) for value in values if isinstance(value, (bool, int, float, str, datetime))}
    return kinds.pop() if len(kinds) == 1 and all(map(_is_end, values)) else None


def _is_end(value: object) -> bool:
    """Tell whether a constant can be the end of a range: a float holds it, and stands for nothing else."""
    widest = isinstance(value, (int, float)) and abs(value) >= WIDEST
    return is_exact(value) and not widest


# two tables


def _joined(view: View, aggregate: str, y: Term | None, id_: str) -> CompiledRowView:
    """Return the plan of a view of two tables."""
    left, right = (table.alias or table.name for table in view.tables)
    prefixes = {left: LEFT, right: RIGHT}
    on = view.on.conditions if isinstance(view.on, And) else (view.on,)
    equal: list[tuple[str, str]] = []
    rest: list[Condition] = []
    for condition in on:
        pair = _equality(condition, left, right)
        if pair is None:
            rest.append(condition)
        else:
            equal.append(pair)
    if not equal:
        raise SubscriptionError(
            f"`on {condition_text(view.on)}`: two tables are joined where an attribute of one equals an attribute of the other, "
            f"as in `on {left}.id = {right}.id`; further conditions may stand beside it",
            id_,
        )
    where = view.where.conditions if isinstance(view.where, And) else (view.where,)
    condition = qualify_condition(all_of([*rest, *where]), prefixes)
    items = tuple(SelectItem(qualify_term(item.term, prefixes), item.name) for item in view.select)
    selected = items if aggregate == "rows" else ()
    aggregated = None if y is None else qualify_term(y, prefixes)
    names = tuple(table.name for table in view.tables)
    return CompiledRowView(
        aggregate, names, condition, aggregated, selected, (left, right), tuple(sorted(equal))
    )


def _equality(condition: Condition, left: str, right: str) -> tuple[str, str] | None:
    """Return the attributes of the left and the right table that a condition says are equal; None if it says else."""
    if not isinstance(condition, Predicate) or condition.operator is not Operator.EQ:
        return None
    one, other = condition.subject, condition.operands[0]
    if not isinstance(one, Attribute) or not isinstance(other, Attribute):
        return None
    if (one.alias, other.alias) == (left, right):
        return one.path, other.path
    return (other.path, one.path) if (one.alias, other.alias) == (right, left) else None


def qualify_condition(condition: Condition, prefixes: Mapping[str, str]) -> Condition:
    """Return a condition over pairs of rows: `LEFT` and `RIGHT` instead of the view's names of its tables."""
    return map_terms(condition, lambda term: qualify_term(term, prefixes))


def qualify_term(term: Term, prefixes: Mapping[str, str]) -> Term:
    """Return a term over pairs of rows, in the same way."""
    if isinstance(term, Attribute):
        return term if term.alias is None else Attribute(prefixes[term.alias] + term.path)
    return map_operands(term, lambda operand: qualify_term(operand, prefixes))
