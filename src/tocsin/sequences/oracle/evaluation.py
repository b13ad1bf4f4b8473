"""The value of terms and the truth of conditions over the data of an occurrence."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TypeAlias

from tocsin.language.semantics import condition_truth
from tocsin.model.conditions import Condition, Predicate, map_predicates
from tocsin.model.terms import Arithmetic, ArithmeticOperator, Attribute, Elapsed, Literal, Negative, Term
from tocsin.model.values import Value
from tocsin.sequences.algebra import Accumulated, Item
from tocsin.sequences.arithmetic import accumulate, combine

Data: TypeAlias = Mapping[Attribute, Value]


def holds(condition: Condition, data: Data, duration: int) -> bool:
    """Tell whether a condition is true, rather than false or unknown."""
    values: dict[str, Value] = {}
    numbers = count()

    def named(term: Term) -> Term:
        if isinstance(term, Literal):  # stays a constant, beside which a text may be read as a timestamp
            return term
        name, value = str(next(numbers)), value_of(term, data, duration)
        if value is not None:
            values[name] = value
        return Attribute(name)

    def flat(predicate: Predicate) -> Predicate:
        return Predicate(named(predicate.subject), predicate.operator, tuple(map(named, predicate.operands)))

    return condition_truth(map_predicates(condition, flat), values) is True


def value_of(item: Item, data: Data, duration: int) -> Value | None:
    """Return the value of a term or an aggregate, or None where it is absent."""
    if isinstance(item, Accumulated):
        old = None if item.old is None else value_of(item.old, data, duration)
        return accumulate(item.function, old, value_of(item.new, data, duration))
    if isinstance(item, Attribute):
        return data.get(item)
    if isinstance(item, Literal):
        return item.value
    if isinstance(item, Elapsed):
        return duration
    if isinstance(item, Arithmetic):
        return combine(
            item.operator, value_of(item.left, data, duration), value_of(item.right, data, duration)
        )
    if isinstance(item, Negative):
        return combine(ArithmeticOperator.SUBTRACT, 0, value_of(item.term, data, duration))
    raise TypeError(f"{type(item).__name__} has no value in an expression")
