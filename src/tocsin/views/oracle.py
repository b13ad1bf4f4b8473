"""The answers of views by definition, recomputed from all rows. Every family must agree with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from tocsin.language.semantics import condition_truth, known_value_of, selected_values, value_of
from tocsin.model.queries import SelectItem, View
from tocsin.model.subscription import Answer
from tocsin.model.terms import Aggregate, AggregateFunction, Term
from tocsin.model.values import Kind, Value, kind_of
from tocsin.views.changes import Row
from tocsin.views.compilation import qualify_condition, qualify_term
from tocsin.views.compiled import LEFT, RIGHT

_AFTER_NUMBERS: Final = (Kind.STRING, Kind.TIMESTAMP, Kind.BOOLEAN)


def answer_of(view: View, tables: Mapping[str, Iterable[Row]]) -> Answer:
    """Return a view's answer over these rows; rows and distinct values come in the order of the tables' rows.

    >>> from tocsin.language import parse
    >>> rows = [{"risk": 30, "per": 8}, {"risk": 50, "per": 5.5}, {"risk": 70, "per": 2}]
    >>> answer_of(parse("select min(per) from table stock where risk between 20 and 60"), {"stock": rows})
    5.5
    """
    rows = list(_rows(view, tables))
    if view.select and isinstance(view.select[0].term, Aggregate):
        aggregate = view.select[0].term
        if aggregate.argument is None:
            return len(rows)
        argument = _term(view, aggregate.argument)
        values = [value for row in rows if (value := value_of(argument, row)) is not None]
        return len(values) if aggregate.function is AggregateFunction.COUNT else _of_values(aggregate, values)
    if view.distinct:
        term = _term(view, view.select[0].term)
        values = [value for row in rows if (value := known_value_of(term, row)) is not None]
        found = {(kind_of(value), value): value for value in values}
        return tuple(found.values())
    if not view.select:
        return tuple(_named(view, row) for row in rows)
    items = tuple(SelectItem(_term(view, item.term), item.name) for item in view.select)
    return tuple(selected_values(items, row, _named(view, row)) for row in rows)


def _rows(view: View, tables: Mapping[str, Iterable[Row]]) -> Iterator[dict[str, Value]]:
    """Return the rows, or the pairs of rows, that satisfy the view's conditions."""
    if len(view.tables) == 1:
        for row in tables[view.tables[0].name]:
            if condition_truth(view.where, row) is True:
                yield dict(row)
        return
    prefixes = _prefixes(view)
    on, where = qualify_condition(view.on, prefixes), qualify_condition(view.where, prefixes)
    others = list(tables[view.tables[1].name])
    for one in tables[view.tables[0].name]:
        for other in others:
            pair = {LEFT + name: value for name, value in one.items()}
            pair |= {RIGHT + name: value for name, value in other.items()}
            if condition_truth(on, pair) is True and condition_truth(where, pair) is True:
                yield pair


def _of_values(aggregate: Aggregate, values: list[Value]) -> Value | None:
    """Return the minimum, maximum, exact sum or mean of the finite numbers among the values; None without any.

    Without a number, minimum and maximum are of the strings, or else of the timestamps, or else of the booleans.
    """
    numbers = [n for n in values if isinstance(n, (int, float)) and not isinstance(n, bool)]
    numbers = [n for n in numbers if isinstance(n, int) or math.isfinite(n)]
    if aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX):
        of_kinds = [[v for v in values if kind_of(v) is kind] for kind in _AFTER_NUMBERS]
        preferred: list[Any] = next(filter(None, [numbers, *of_kinds]), [])
        if not preferred:
            return None
        return (min if aggregate.function is AggregateFunction.MIN else max)(preferred)  # type: ignore[no-any-return]
    if not numbers:
        return None
    total = sum(map(Fraction, numbers), Fraction())
    try:
        rounded = float(total)
    except OverflowError:
        rounded = math.inf if total > 0 else -math.inf
    return rounded if aggregate.function is AggregateFunction.SUM else rounded / len(numbers)


def _prefixes(view: View) -> dict[str, str]:
    """Return the prefix of each table's attributes in a pair, by the view's name of the table."""
    left, right = (table.alias or table.name for table in view.tables)
    return {left: LEFT, right: RIGHT}


def _term(view: View, term: Term) -> Term:
    return term if len(view.tables) == 1 else qualify_term(term, _prefixes(view))


def _named(view: View, row: Mapping[str, Value]) -> dict[str, Value]:
    """Return all of a row's attributes, those of a pair under the names that the view gives its tables."""
    if len(view.tables) == 1:
        return dict(row)
    names = {prefix: alias for alias, prefix in _prefixes(view).items()}
    cut = {name: name.index(".") + 1 for name in row}
    return {f"{names[name[: cut[name]]]}.{name[cut[name] :]}": value for name, value in row.items()}
