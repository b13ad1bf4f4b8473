"""An evaluator of conditions written apart from Tocsin's own: the tree as it stands, in three-valued logic.

It shares no code with `tocsin.language.semantics` or with the normal forms, so that each checks the other.
Truth is 1, falsehood 0, and unknown one half: `and` is the least, `or` the greatest, `not` the rest to 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from tocsin.model import (
    And,
    Arithmetic,
    Attribute,
    Condition,
    Constant,
    Literal,
    Negative,
    Not,
    Or,
    Predicate,
    Term,
    Value,
)
from tocsin.model.values import Opaque

HALF = Fraction(1, 2)


def holds(condition: Condition, attributes: Mapping[str, Value]) -> bool:
    return grade(condition, attributes) == 1


def grade(condition: Condition, attributes: Mapping[str, Value]) -> Fraction:
    match condition:
        case Constant(truth):
            return Fraction(truth)
        case And(conditions):
            return min(grade(c, attributes) for c in conditions)
        case Or(conditions):
            return max(grade(c, attributes) for c in conditions)
        case Not(inner):
            return 1 - grade(inner, attributes)
        case Predicate(subject, operator, operands):
            name = str(operator)
            if name == "is missing":
                return Fraction(evaluate(subject, attributes) is None)
            if name == "is present":
                return Fraction(evaluate(subject, attributes) is not None)
            positive = {"!=": "=", "<": ">=", ">": "<=", "!~": "~"}.get(name, name.removeprefix("not "))
            known = ask(positive, subject, operands, attributes)
            return known if positive == name else 1 - known
    raise AssertionError(condition)


def ask(name: str, subject: Term, operands: tuple[Term, ...], attributes: Mapping[str, Value]) -> Fraction:
    value = evaluate(subject, attributes)
    others = [evaluate(o, attributes) for o in operands]
    if value is None or isinstance(value, Opaque) or any(isinstance(other, Opaque) for other in others):
        return HALF
    if name == "in":
        pairs = [comparable(subject, value, o, v) for o, v in zip(operands, others, strict=True)]
        known = [Fraction(pair[0] == pair[1]) for pair in pairs if pair]
        return max(known) if known else HALF
    if any(other is None for other in others):
        return HALF
    if name == "between":
        low, high = (comparable(subject, value, o, v) for o, v in zip(operands, others, strict=True))
        return Fraction(low[0] >= low[1] and high[0] <= high[1]) if low and high else HALF
    if name in ("=", "<=", ">="):
        pair = comparable(subject, value, operands[0], others[0])
        if not pair:
            return HALF
        left, right = pair
        return Fraction({"=": left == right, "<=": left <= right, ">=": left >= right}[name])
    other = others[0]
    if not (isinstance(value, str) and isinstance(other, str)):
        return HALF
    if name == "like":
        return Fraction(like(value, other))
    if name == "~":
        return Fraction(re.search(other, value) is not None)
    tests = {"starts with": value[: len(other)], "ends with": value[len(value) - len(other) :]}
    return Fraction(tests[name] == other if name in tests else value.find(other) >= 0)


def comparable(left_term: Term, left: Value, right_term: Term, right: Value | None) -> tuple[Any, Any] | None:
    """Return the two as they are compared, or None where that is unknown."""
    if right is None:
        return None
    if kind(left) == kind(right):
        return left, right
    if (
        kind(left) == "string"
        and isinstance(right_term, Literal)
        and kind(right) == "time"
        and not isinstance(left_term, Literal)
    ):
        read = instant(str(left))
        return (read, right) if read else None
    if (
        kind(right) == "string"
        and isinstance(left_term, Literal)
        and kind(left) == "time"
        and not isinstance(right_term, Literal)
    ):
        read = instant(str(right))
        return (left, read) if read else None
    return None


def kind(value: Value) -> str:
    if value is True or value is False:
        return "boolean"
    if isinstance(value, Opaque):
        return "opaque"
    return "string" if isinstance(value, str) else "time" if isinstance(value, datetime) else "number"


def instant(text: str) -> datetime | None:
    shape = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)"
    return datetime.fromisoformat(text.upper().replace("Z", "+00:00")) if re.fullmatch(shape, text) else None


def like(text: str, pattern: str) -> bool:
    """Match by trying every way to cut the text."""
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return any(like(text[i:], rest) for i in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and like(text[1:], rest)


def evaluate(term: Term, attributes: Mapping[str, Value]) -> Value | None:
    match term:
        case Attribute(path):
            return attributes.get(path)
        case Literal(value):
            return value
        case Negative(inner):
            number: Any = evaluate(inner, attributes)
            return None if number is None or kind(number) != "number" else -number
        case Arithmetic(operator, left, right):
            a, b = evaluate(left, attributes), evaluate(right, attributes)
            if a is None or b is None or kind(a) != "number" or kind(b) != "number":
                return None
            try:
                result = eval(f"a {operator} b", {}, {"a": a, "b": b})  # noqa: S307 - one of + - * /
            except ArithmeticError:
                return None
            return None if str(result) == "nan" else result
    raise AssertionError(term)
