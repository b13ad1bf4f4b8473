"""Terms: the two sides of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from tocsin.model.errors import KindError
from tocsin.model.values import Kind, Value, kind_of, read_value

if TYPE_CHECKING:
    from tocsin.model.conditions import Predicate

_WRITTEN_OUT: Final = 1e22  # a larger whole float is not written as an integer


class Attribute(Struct, frozen=True, gc=False):
    """An attribute by its dotted path; `alias` names its event, where a query has several."""

    path: str
    alias: str | None = None


class Literal(Struct, frozen=True, gc=False):
    """A constant. The kind is part of its identity, so that `true` and 1 differ while 1 and 1.0 do not."""

    value: Value
    kind: Kind


class Parameter(Struct, frozen=True, gc=False):
    """A parameter that a template's row gives a value; `many` if the row gives a whole list for `in`."""

    name: str
    many: bool = False


class ArithmeticOperator(StrEnum):
    """The four operations on numbers."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


class Arithmetic(Struct, frozen=True, gc=False):
    """Two numbers combined; unknown where one is absent, of another kind, or divided by zero."""

    operator: ArithmeticOperator
    left: Term
    right: Term


class Negative(Struct, frozen=True, gc=False):
    """A number with its sign changed."""

    term: Term


class Elapsed(Struct, frozen=True, gc=False):
    """`duration` in a sequence: end - start + 1 ticks of the match so far."""


class SpanUnit(StrEnum):
    """Units of a length of time; `TICKS` is whatever the stream counts."""

    TICKS = "ticks"
    MICROSECONDS = "microseconds"
    MILLISECONDS = "milliseconds"
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"


class Span(Struct, frozen=True, gc=False):
    """A length of time, as it was written."""

    amount: int | float
    unit: SpanUnit = SpanUnit.TICKS


class AggregateFunction(StrEnum):
    """The aggregates of `compute` and of views."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


class Aggregate(Struct, frozen=True, gc=False):
    """An aggregate over many events or rows; `argument` is None for `count(*)` alone."""

    function: AggregateFunction
    argument: Term | None = None


class Alternatives(Struct, frozen=True, gc=False):
    """True where one of these predicates holds, else unknown.

    No text has it: it makes one predicate of a clause that a conjunction contains.
    """

    predicates: tuple[Predicate, ...]


class Star(Struct, frozen=True, gc=False):
    """`*`, first in a select list with other items: all attributes."""


Term: TypeAlias = (
    Attribute | Literal | Parameter | Arithmetic | Negative | Elapsed | Span | Aggregate | Alternatives | Star
)


def operands_of(term: Term) -> tuple[Term, ...]:
    """Return the terms directly within a term."""
    if isinstance(term, Arithmetic):
        return term.left, term.right
    if isinstance(term, Negative):
        return (term.term,)
    if isinstance(term, Alternatives):
        return tuple(inner for one in term.predicates for inner in (one.subject, *one.operands))
    return (term.argument,) if isinstance(term, Aggregate) and term.argument is not None else ()


def subterms(term: Term) -> Iterator[Term]:
    """Yield a term and all terms within it."""
    yield term
    for operand in operands_of(term):
        yield from subterms(operand)


def map_operands(term: Term, change: Callable[[Term], Term]) -> Term:
    """Return a term with `change` applied to the terms directly within it."""
    if isinstance(term, Arithmetic):
        return Arithmetic(term.operator, change(term.left), change(term.right))
    if isinstance(term, Negative):
        return Negative(change(term.term))
    if isinstance(term, Aggregate) and term.argument is not None:
        return Aggregate(term.function, change(term.argument))
    return term


def literal(value: Value) -> Literal:
    """Return the constant `value`, which has passed `read_value`.

    A whole float becomes the integer it equals, so that equal constants give equal results in arithmetic, where
    Python's 1 and 1.0 differ beyond 2**53.
    """
    value = _as_written(value)
    return Literal(value, kind_of(value))


def constant(raw: object) -> Literal:
    """Return `raw` as a constant, or raise `KindError` if a subscription cannot contain it."""
    value = constant_value(raw)
    return Literal(value, kind_of(value))


def constant_value(raw: object) -> Value:
    """Return `raw` as the value of a constant, or raise `KindError` if a subscription cannot contain it."""
    value = read_value(raw)
    if value is None:
        raise KindError("null is not a value and equals nothing; use `is missing` or `is present` instead")
    if isinstance(value, float) and math.isinf(value):
        raise KindError("a constant must be finite")
    return _as_written(value)


def _as_written(value: Value) -> Value:
    is_whole = type(value) is float and value.is_integer() and abs(value) < _WRITTEN_OUT
    return int(value) if is_whole else value  # type: ignore[arg-type]
