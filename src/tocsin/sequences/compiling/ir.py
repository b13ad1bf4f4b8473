"""The intermediate representation: values by where they come from, formulas over values, and checks of one instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from tocsin.model import terms
from tocsin.model.conditions import Operator
from tocsin.model.values import Kind
from tocsin.sequences._kernels.instructions import Do
from tocsin.sequences.algebra import Accumulated, Item
from tocsin.sequences.programs import Column

Part = TypeVar("Part")


class Mark(IntEnum):
    """The events of a step that an instance holds for its match."""

    FIRST = 0
    LAST = 1
    CHAIN = 2


class Marked(Struct, frozen=True):
    """A step's first or last event, or the chain of all of them."""

    alias: str
    mark: Mark


class Truth(Struct, frozen=True):
    """Whether a residual predicate was true for a named value."""

    of: terms.Attribute
    operator: Operator
    operands: tuple[terms.Term, ...]


Key: TypeAlias = terms.Attribute | Truth | Marked
"""The name of a value that an instance can store."""


class EventColumn(Struct, frozen=True):
    """A column of the event at hand."""

    column: Column


class Stored(Struct, frozen=True):
    """A value that the instance stores."""

    key: Key


class Const(Struct, frozen=True):
    """A constant, or the parameter that a template replaces by one."""

    constant: terms.Literal | terms.Parameter


class Operation(Struct, frozen=True):
    """The result of one instruction on two values."""

    do: Do
    left: Value
    right: Value


class OneOf(Struct, frozen=True):
    """One value if checks hold, else another."""

    where: Checks
    then: Value
    otherwise: Value


class Linked(Struct, frozen=True):
    """The event at hand, after a chain of others."""

    before: Value


class Plain(IntEnum):
    """Values without parts."""

    DURATION = 0
    ITSELF = 1  # the event's number
    NOTHING = 2


class Atom(Struct, frozen=True):
    """A predicate over values."""

    subject: Value
    operator: Operator
    operands: tuple[Value, ...] = ()


class Check(Struct, frozen=True):
    """One test of an instruction; a test of one value has no `right`."""

    do: Do
    left: Value
    right: Value = Plain.NOTHING


class AllOf(Struct, Generic[Part], frozen=True):
    """All of some checks or formulas."""

    of: tuple[Part, ...]


class AnyOf(Struct, Generic[Part], frozen=True):
    """At least one of some checks or formulas."""

    of: tuple[Part, ...]


Formula: TypeAlias = "Atom | AllOf[Formula] | AnyOf[Formula]"
Checks: TypeAlias = "Check | AllOf[Checks] | AnyOf[Checks]"
Value: TypeAlias = EventColumn | Stored | Const | Operation | OneOf | Linked | Plain

DURATION: Final = Plain.DURATION
ITSELF: Final = Plain.ITSELF
NOTHING: Final = Plain.NOTHING

_ZERO: Final = Const(terms.Literal(0, Kind.NUMBER))
_ARITHMETIC: Final = {operator: Do[operator.name] for operator in terms.ArithmeticOperator}
_AGGREGATES: Final = {
    terms.AggregateFunction.SUM: Do.SUM,
    terms.AggregateFunction.COUNT: Do.COUNT,
    terms.AggregateFunction.MIN: Do.LEAST,
    terms.AggregateFunction.MAX: Do.GREATEST,
}


def read_item(item: Item, named: Callable[[terms.Attribute], Value]) -> Value:
    """Return the value of a term or aggregate; `named` returns the value of a name."""
    if isinstance(item, terms.Attribute):
        return named(item)
    if isinstance(item, (terms.Literal, terms.Parameter)):
        return Const(item)
    if isinstance(item, terms.Arithmetic):
        return operation(
            _ARITHMETIC[item.operator], read_item(item.left, named), read_item(item.right, named)
        )
    if isinstance(item, terms.Negative):
        return operation(Do.SUBTRACT, _ZERO, read_item(item.term, named))
    if isinstance(item, terms.Elapsed):
        return DURATION
    if isinstance(item, Accumulated):
        old = NOTHING if item.old is None else read_item(item.old, named)
        return operation(_AGGREGATES[item.function], old, read_item(item.new, named))
    raise TypeError(f"{type(item).__name__} should have been translated before a sequence is compiled")


def operation(do: Do, left: Value, right: Value) -> Value:
    """Return the result of an instruction on two values, simplified if one of them is always absent."""
    if do is Do.FIRST or do is Do.LEAST or do is Do.GREATEST:
        if left is NOTHING or right is NOTHING or left == right:
            return right if left is NOTHING else left
    elif do is Do.SUM or do is Do.COUNT:
        if right is NOTHING:
            return _ZERO if do is Do.COUNT and left is NOTHING else left
        if left is NOTHING:  # the first value: adding to zero excludes values that are no numbers
            return Operation(Do.ADD if do is Do.SUM else Do.COUNT, _ZERO, right)
    elif left is NOTHING or right is NOTHING:
        return NOTHING
    return Operation(do, left, right)


def parts_of(value: Value | Checks) -> Iterator[Value]:
    """Yield a value and the values it is made of, or the values in checks."""
    inner: tuple[Value | Checks, ...] = ()
    if isinstance(value, (Check, Operation)):
        inner = value.left, value.right
    elif isinstance(value, (AllOf, AnyOf)):
        inner = value.of
    elif isinstance(value, OneOf):
        inner = value.where, value.then, value.otherwise
    elif isinstance(value, Linked):
        inner = (value.before,)
    if not isinstance(value, (Check, AllOf, AnyOf)):
        yield value
    for part in inner:
        yield from parts_of(part)
