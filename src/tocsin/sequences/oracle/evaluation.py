"""What terms and conditions are, given the data of an occurrence: values, and true, false or None for unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from tocsin.language.semantics import compare, text_truth
from tocsin.model.conditions import NEGATED, And, Condition, Constant, Not, Operator, Predicate
from tocsin.model.terms import Arithmetic, ArithmeticOperator, Attribute, Elapsed, Literal, Negative
from tocsin.model.values import Value
from tocsin.sequences.algebra import Accumulated, Item
from tocsin.sequences.arithmetic import accumulate, combine

Data: TypeAlias = Mapping[Attribute, Value]

_COMPARISONS: Final = (Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
_NEGATIVE: Final = (
    Operator.NOT_BETWEEN,
    Operator.NOT_IN,
    Operator.NOT_LIKE,
    Operator.NOT_STARTS_WITH,
    Operator.NOT_ENDS_WITH,
    Operator.NOT_CONTAINS,
    Operator.NOT_REGEX,
    Operator.PRESENT,
)


def holds(condition: Condition, data: Data, duration: int) -> bool:
    """Tell whether a condition is true, rather than false or unknown."""
    return _truth(condition, data, duration) is True


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


def _truth(condition: Condition, data: Data, duration: int) -> bool | None:
    if isinstance(condition, Predicate):
        return _predicate(condition, data, duration)
    if isinstance(condition, Constant):
        return condition.truth
    if isinstance(condition, Not):
        inner = _truth(condition.condition, data, duration)
        return None if inner is None else not inner
    found = [_truth(member, data, duration) for member in condition.conditions]
    if isinstance(condition, And):
        return False if False in found else None if None in found else True
    return True if True in found else None if None in found else False


def _predicate(predicate: Predicate, data: Data, duration: int) -> bool | None:
    operator, subject, operands = predicate.operator, predicate.subject, predicate.operands
    if operator in _NEGATIVE:
        opposite = _predicate(Predicate(subject, NEGATED[operator], operands), data, duration)
        return None if opposite is None else not opposite
    value = value_of(subject, data, duration)
    if operator is Operator.MISSING:
        return value is None
    if value is None:
        return None
    others = [value_of(operand, data, duration) for operand in operands]
    if operator in _COMPARISONS:
        return compare(operator, subject, value, operands[0], others[0])
    if operator is Operator.BETWEEN:
        above = compare(Operator.GE, subject, value, operands[0], others[0])
        below = compare(Operator.LE, subject, value, operands[1], others[1])
        return None if above is None or below is None else above and below
    if operator is Operator.IN:
        equal = [
            compare(Operator.EQ, subject, value, operand, other)
            for operand, other in zip(operands, others, strict=True)
        ]
        known = [truth for truth in equal if truth is not None]
        return any(known) if known else None
    return text_truth(operator, value, others[0])
