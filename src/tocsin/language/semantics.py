"""The truth of a predicate for an event: true, false, or None for unknown.

This is the definition, in plain Python. The oracle matches with it, explanations show it, and every index
must agree with it.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tocsin.language.patterns import compile_like, compile_regex
from tocsin.model.conditions import NEGATED, PAIRS, And, Condition, Constant, Not, Operator, Predicate
from tocsin.model.event import STREAM
from tocsin.model.queries import SelectItem
from tocsin.model.terms import (
    Alternatives,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Literal,
    Negative,
    Star,
    Term,
)
from tocsin.model.timestamps import parse_timestamp
from tocsin.model.values import HUGE, Opaque, Value, kind_of

Attributes = Mapping[str, Value]

COMPARE: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: python.eq,
    Operator.NE: python.ne,
    Operator.LT: python.lt,
    Operator.LE: python.le,
    Operator.GT: python.gt,
    Operator.GE: python.ge,
}
ARITHMETIC: Final[dict[ArithmeticOperator, Callable[[Any, Any], int | float]]] = {
    ArithmeticOperator.ADD: python.add,
    ArithmeticOperator.SUBTRACT: python.sub,
    ArithmeticOperator.MULTIPLY: python.mul,
    ArithmeticOperator.DIVIDE: python.truediv,
}
_TEXT: Final[dict[Operator, Callable[[str, str], bool]]] = {
    Operator.STARTS_WITH: str.startswith,
    Operator.ENDS_WITH: str.endswith,
    Operator.CONTAINS: lambda text, part: part in text,
    Operator.LIKE: lambda text, pattern: compile_like(pattern).search(text) is not None,
    Operator.REGEX: lambda text, pattern: compile_regex(pattern).search(text) is not None,
}
_NEGATIVE: Final = frozenset(negative for _, negative in PAIRS) - COMPARE.keys()


def truth(predicate: Predicate, attributes: Attributes) -> bool | None:
    """Return whether the attributes satisfy `predicate`, or None where that is unknown.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> truth(parse_condition("price > 100"), {"price": 101}), truth(parse_condition("price > 100"), {"price": "dear"})
    (True, None)
    """
    operator = predicate.operator
    subject = predicate.subject
    if (
        operator in COMPARE
        and type(subject) is Attribute
        and type(constant := predicate.operands[0]) is Literal
    ):
        # The most frequent predicate by far, an attribute and a constant of its kind, takes a short way.
        value = attributes.get(subject.path)
        if value is None or kind_of(value) is constant.kind:
            return None if value is None else COMPARE[operator](value, constant.value)
    if operator in _NEGATIVE:
        opposite = truth(Predicate(predicate.subject, NEGATED[operator], predicate.operands), attributes)
        return None if opposite is None else not opposite
    value = value_of(predicate.subject, attributes)
    if operator is Operator.MISSING:
        return value is None
    if value is None or type(value) is Opaque:
        return None
    if operator is Operator.IN:
        return _member(predicate, value)
    others = [value_of(operand, attributes) for operand in predicate.operands]
    if operator is Operator.BETWEEN:
        above = compare(Operator.GE, predicate.subject, value, predicate.operands[0], others[0])
        below = compare(Operator.LE, predicate.subject, value, predicate.operands[1], others[1])
        return None if above is None or below is None else above and below
    if operator in COMPARE:
        return compare(operator, predicate.subject, value, predicate.operands[0], others[0])
    return text_truth(operator, value, others[0])


def condition_truth(condition: Condition, attributes: Attributes) -> bool | None:
    """Return the truth of a whole condition in Kleene's three-valued logic."""
    if isinstance(condition, Predicate):
        return truth(condition, attributes)
    if isinstance(condition, Constant):
        return condition.truth
    if isinstance(condition, Not):
        inner = condition_truth(condition.condition, attributes)
        return None if inner is None else not inner
    decisive = not isinstance(condition, And)  # `or` is settled by a truth, `and` by a falsehood
    found = [condition_truth(member, attributes) for member in condition.conditions]
    if decisive in found:
        return decisive
    return None if None in found else not decisive


def value_of(term: Term, attributes: Attributes) -> Value | None:
    """Return the value of a term for one event, or None where it is absent or cannot be computed."""
    if isinstance(term, Attribute):
        return attributes.get(term.path)
    if isinstance(term, Literal):
        return term.value
    if isinstance(term, Arithmetic):
        return arithmetic(term.operator, value_of(term.left, attributes), value_of(term.right, attributes))
    if isinstance(term, Negative):
        return arithmetic(ArithmeticOperator.SUBTRACT, 0, value_of(term.term, attributes))
    if isinstance(term, Alternatives):
        return True if any(truth(one, attributes) is True for one in term.predicates) else None
    raise TypeError(f"{type(term).__name__} has no value for a single event")


def known_value_of(term: Term, attributes: Attributes) -> Value | None:
    """Return the value of a term as `value_of` does, but None where it cannot be compared."""
    value = value_of(term, attributes)
    return None if type(value) is Opaque else value


def selected_values(
    items: Sequence[SelectItem], attributes: Attributes, every: Mapping[str, Value | None]
) -> dict[str, Value | None]:
    """Return the selected values by name; `*` has `every` attribute, which an item of the same name replaces."""
    values: dict[str, Value | None] = {}
    for item in items:
        if type(item.term) is Star:
            values.update(every)
            values.pop(STREAM, None)  # no attribute, but what matchers know the stream by
        else:
            values[item.name] = value_of(item.term, attributes)
    return values


def compare(operator: Operator, left: Term, value: Value, right: Term, other: Value | None) -> bool | None:
    """Compare two values; across kinds the result is unknown, but a text is compared with a timestamp constant."""
    if other is None or type(value) is Opaque:
        return None
    first: Value | None = value
    second: Value | None = other
    if kind_of(value) is not kind_of(other):
        if isinstance(value, str) and isinstance(other, datetime):
            first = _read_beside(left, value, right)
        elif isinstance(value, datetime) and isinstance(other, str):
            second = _read_beside(right, other, left)
        else:
            return None
        if first is None or second is None:
            return None
    return COMPARE[operator](first, second)


def text_truth(operator: Operator, value: Value, other: Value | None) -> bool | None:
    """Return the truth of a test on strings; unknown unless both values are strings."""
    if not isinstance(value, str) or not isinstance(other, str):
        return None
    return _TEXT[operator](value, other)


def arithmetic(operator: ArithmeticOperator, left: Value | None, right: Value | None) -> int | float | None:
    """Combine two numbers as Python does; None for other kinds, and where the result is no number."""
    if not _is_number(left) or not _is_number(right):
        return None
    try:
        result = ARITHMETIC[operator](left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    if result != result or (type(result) is int and abs(result) >= HUGE):  # noqa: PLR0124 - NaN differs from itself
        return None
    return result


def _member(predicate: Predicate, value: Value) -> bool | None:
    """Return whether `value` is one of the members of its kind; unknown if there are none."""
    known = [
        compare(Operator.EQ, predicate.subject, value, member, member.value)
        for member in predicate.operands
        if isinstance(member, Literal)
    ]
    found = [equal for equal in known if equal is not None]
    return any(found) if found else None


def _read_beside(term: Term, text: str, beside: Term) -> datetime | None:
    """Return an event's text as a timestamp if the other side is a constant."""
    return parse_timestamp(text) if isinstance(beside, Literal) and not isinstance(term, Literal) else None


def _is_number(value: Value | None) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
