"""Values as the compiler sees them: where they come from and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.model.conditions import Operator
from tocsin.model.terms import (
    AggregateFunction,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Elapsed,
    Literal,
    Negative,
    Parameter,
    Term,
)
from tocsin.model.values import Kind
from tocsin.sequences.algebra import Accumulated, Item
from tocsin.sequences.programs import Column, Do


class Mark(IntEnum):
    """What a witness holds of a step."""

    FIRST = 0
    LAST = 1
    CHAIN = 2


class Marked(Struct, frozen=True):
    """A step's first or last event, or the chain of all of them."""

    alias: str
    mark: Mark


class Truth(Struct, frozen=True):
    """Whether a question that no program can answer held for what has a name."""

    of: Attribute
    operator: Operator
    operands: tuple[Term, ...]


Key: TypeAlias = Attribute | Truth | Marked
"""What an instance can hold."""


class Read(Struct, frozen=True):
    """A column of the event at hand."""

    column: Column


class Held(Struct, frozen=True):
    """What the instance holds under a key."""

    key: Key


class Given(Struct, frozen=True):
    """A constant."""

    constant: Literal | Parameter


class Made(Struct, frozen=True):
    """Something made of two values by one instruction."""

    do: Do
    left: Value
    right: Value


class OneOf(Struct, frozen=True):
    """One value where checks hold, another elsewhere."""

    where: Checks
    then: Value
    otherwise: Value


class Linked(Struct, frozen=True):
    """The event at hand, after a chain of others."""

    before: Value


class Plain(IntEnum):
    """Values that need no more words."""

    DURATION = 0
    ITSELF = 1  # the event's number
    NOTHING = 2


class Check(Struct, frozen=True):
    """One test as an instruction makes it; of one value alone, `right` is nothing."""

    do: Do
    left: Value
    right: Value = Plain.NOTHING


class Every(Struct, frozen=True):
    """All of some checks."""

    of: tuple[Checks, ...]


class Some(Struct, frozen=True):
    """At least one of some checks."""

    of: tuple[Checks, ...]


Checks: TypeAlias = Check | Every | Some
Value: TypeAlias = Read | Held | Given | Made | OneOf | Linked | Plain

DURATION: Final = Plain.DURATION
ITSELF: Final = Plain.ITSELF
NOTHING: Final = Plain.NOTHING

_ZERO: Final = Given(Literal(0, Kind.NUMBER))
_ARITHMETIC: Final = {
    ArithmeticOperator.ADD: Do.ADD,
    ArithmeticOperator.SUBTRACT: Do.SUBTRACT,
    ArithmeticOperator.MULTIPLY: Do.MULTIPLY,
    ArithmeticOperator.DIVIDE: Do.DIVIDE,
}
_AGGREGATES: Final = {
    AggregateFunction.SUM: Do.SUM,
    AggregateFunction.COUNT: Do.COUNT,
    AggregateFunction.MIN: Do.LEAST,
    AggregateFunction.MAX: Do.GREATEST,
}


def read_item(item: Item, named: Callable[[Attribute], Value]) -> Value:
    """Return the value of a term or aggregate; `named` says what the names in it stand for."""
    if isinstance(item, Attribute):
        return named(item)
    if isinstance(item, (Literal, Parameter)):
        return Given(item)
    if isinstance(item, Arithmetic):
        return made(_ARITHMETIC[item.operator], read_item(item.left, named), read_item(item.right, named))
    if isinstance(item, Negative):
        return made(Do.SUBTRACT, _ZERO, read_item(item.term, named))
    if isinstance(item, Elapsed):
        return DURATION
    if isinstance(item, Accumulated):
        old = NOTHING if item.old is None else read_item(item.old, named)
        return made(_AGGREGATES[item.function], old, read_item(item.new, named))
    raise TypeError(f"{type(item).__name__} should have been translated before a sequence is compiled")


def made(do: Do, left: Value, right: Value) -> Value:
    """Return what an instruction makes of two values, the simplest that is the same where one is never there."""
    if do is Do.FIRST or do is Do.LEAST or do is Do.GREATEST:
        if left is NOTHING or right is NOTHING or left == right:
            return right if left is NOTHING else left
    elif do is Do.SUM or do is Do.COUNT:
        if right is NOTHING:
            return _ZERO if do is Do.COUNT and left is NOTHING else left
        if left is NOTHING:  # the first number, and none of what is no number; or the first to be counted
            return Made(Do.ADD if do is Do.SUM else Do.COUNT, _ZERO, right)
    elif left is NOTHING or right is NOTHING:
        return NOTHING
    return Made(do, left, right)


def parts_of(value: Value | Checks) -> Iterator[Value]:
    """Return a value and all that it is made of, or the values that checks speak of."""
    if isinstance(value, Check):
        yield from parts_of(value.left)
        yield from parts_of(value.right)
        return
    if isinstance(value, (Every, Some)):
        for check in value.of:
            yield from parts_of(check)
        return
    yield value
    if isinstance(value, Made):
        yield from parts_of(value.left)
        yield from parts_of(value.right)
    elif isinstance(value, OneOf):
        yield from parts_of(value.where)
        yield from parts_of(value.then)
        yield from parts_of(value.otherwise)
    elif isinstance(value, Linked):
        yield from parts_of(value.before)
