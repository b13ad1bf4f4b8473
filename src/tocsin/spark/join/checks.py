"""Predicates as checks on a DataFrame's columns: what Spark SQL can decide exactly as the language means it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Final

from msgspec import Struct

from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Attribute, Literal
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Kind, Value, kind_of

Constant = float | str | int


class ColumnFamily(IntEnum):
    """What a column's values are compared as."""

    NUMBER = 0  # doubles, two for a value that lies between them
    TEXT = 1  # strings, by their bytes
    WHOLE = 2  # 64-bit integers: booleans, and timestamps in microseconds


class Question(IntEnum):
    """What a check asks of a value. Up to 6, which of less (1), equal (2) and greater (4) will do."""

    LT = 1
    EQ = 2
    LE = 3
    GT = 4
    NE = 5
    GE = 6
    IN = 8
    NOT_IN = 9
    NOT_BETWEEN = 10
    STARTS = 11
    NOT_STARTS = 12
    ENDS = 13
    NOT_ENDS = 14
    CONTAINS = 15
    NOT_CONTAINS = 16
    PRESENT = 17
    MISSING = 18

    @property
    def has_list(self) -> bool:
        """Tell whether it asks with several constants."""
        return self in (Question.IN, Question.NOT_IN, Question.NOT_BETWEEN)


_QUESTIONS: Final = {
    Operator.EQ: Question.EQ,
    Operator.NE: Question.NE,
    Operator.LT: Question.LT,
    Operator.LE: Question.LE,
    Operator.GT: Question.GT,
    Operator.GE: Question.GE,
    Operator.IN: Question.IN,
    Operator.NOT_IN: Question.NOT_IN,
    Operator.NOT_BETWEEN: Question.NOT_BETWEEN,
    Operator.STARTS_WITH: Question.STARTS,
    Operator.NOT_STARTS_WITH: Question.NOT_STARTS,
    Operator.ENDS_WITH: Question.ENDS,
    Operator.NOT_ENDS_WITH: Question.NOT_ENDS,
    Operator.CONTAINS: Question.CONTAINS,
    Operator.NOT_CONTAINS: Question.NOT_CONTAINS,
}
_ON_STRINGS: Final = frozenset(
    {
        Operator.STARTS_WITH,
        Operator.NOT_STARTS_WITH,
        Operator.ENDS_WITH,
        Operator.NOT_ENDS_WITH,
        Operator.CONTAINS,
        Operator.NOT_CONTAINS,
        Operator.LIKE,
        Operator.NOT_LIKE,
        Operator.REGEX,
        Operator.NOT_REGEX,
    }
)
_LISTS: Final = (Operator.IN, Operator.NOT_IN)


class Place(Struct, frozen=True):
    """An attribute that the events have a column for: of which kind, and where it stands among those of its family."""

    kind: Kind
    number: int  # among all
    within: int  # among those of the family

    @property
    def family(self) -> ColumnFamily:
        """Return what the values are compared as."""
        return _FAMILIES[self.kind]


_FAMILIES: Final = {
    Kind.NUMBER: ColumnFamily.NUMBER,
    Kind.STRING: ColumnFamily.TEXT,
    Kind.BOOLEAN: ColumnFamily.WHOLE,
    Kind.TIMESTAMP: ColumnFamily.WHOLE,
}


class ColumnPlaces:
    """The attributes that events have columns for, by their kinds; one gets its place when it is first asked for."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._counts = dict.fromkeys(ColumnFamily, 0)
        self.used: dict[str, Place] = {}

    def find(self, path: str) -> Place | None:
        """Return an attribute's place, or None if no event has a value for it."""
        kind = self._kinds.get(path)
        if kind is None:
            return None
        if path not in self.used:
            family = _FAMILIES[kind]
            self.used[path] = Place(kind, len(self.used), self._counts[family])
            self._counts[family] += 1
        return self.used[path]


class JoinCheck(Struct, frozen=True):
    """A question about the value at a place, with constants of its family."""

    place: Place
    question: Question
    constants: tuple[Constant, ...] = ()

    @property
    def values(self) -> tuple[Constant, ...]:
        """Return the values of which the event's must be one; none if other values may do."""
        return self.constants if self.question in (Question.EQ, Question.IN) else ()

    def narrowed(self, value: Constant) -> JoinCheck:
        """Return the check that the value is just this one."""
        return JoinCheck(self.place, Question.EQ, (value,))


class NeverError(Exception):
    """No event of these columns satisfies the predicate."""


class UndecidedError(Exception):
    """Spark SQL cannot tell exactly what the predicate means."""


class Checker:
    """Turns conjunctions into checks of the values at places."""

    def __init__(self, places: ColumnPlaces) -> None:
        self._places = places
        self._known: dict[Predicate, tuple[JoinCheck, ...] | type[Exception]] = {}

    def checks(self, conjunction: Conjunction) -> tuple[JoinCheck, ...]:
        """Return the checks that must all hold; raise `NeverError`, or `UndecidedError` if that cannot be told so."""
        found: list[JoinCheck] = []
        is_never = False
        for predicate in conjunction:
            known = self._known.get(predicate)
            if known is None:
                known = self._known[predicate] = self._read(predicate)
            if isinstance(known, tuple):
                found += known
            elif known is NeverError:
                is_never = True
        if is_never:  # whatever else it asks
            raise NeverError
        if any(self._known[predicate] is UndecidedError for predicate in conjunction):
            raise UndecidedError
        return tuple(found)

    def _read(self, predicate: Predicate) -> tuple[JoinCheck, ...] | type[Exception]:
        try:
            return self._checks(predicate)
        except (NeverError, UndecidedError) as outcome:
            return type(outcome)

    def _checks(self, predicate: Predicate) -> tuple[JoinCheck, ...]:
        operator, subject = predicate.operator, predicate.subject
        if type(subject) is not Attribute:
            raise UndecidedError
        place = self._places.find(subject.path)
        if operator is Operator.MISSING:
            return () if place is None else (JoinCheck(place, Question.MISSING),)
        if place is None:
            raise NeverError
        if operator is Operator.PRESENT:
            return (JoinCheck(place, Question.PRESENT),)
        if not all(type(operand) is Literal for operand in predicate.operands):
            raise UndecidedError
        values = [operand.value for operand in predicate.operands if type(operand) is Literal]
        return _compared(place, operator, values)


def _compared(place: Place, operator: Operator, values: Sequence[Value]) -> tuple[JoinCheck, ...]:
    """Return the checks that compare a value with constants, each known to be of the kind that makes sense."""
    if place.kind is Kind.STRING and any(isinstance(value, datetime) for value in values):
        raise UndecidedError  # texts that may be read as timestamps
    if operator in _ON_STRINGS:
        if place.kind is not Kind.STRING:
            raise NeverError
        if operator not in _QUESTIONS:
            raise UndecidedError  # patterns
        return (JoinCheck(place, _QUESTIONS[operator], (str(values[0]),)),)
    alike = [value for value in values if kind_of(value) is place.kind]
    if not alike or (operator not in _LISTS and len(alike) < len(values)):
        raise NeverError  # a comparison across kinds is unknown
    constants = (
        tuple(dict.fromkeys(map(_constant, alike))) if operator in _LISTS else tuple(map(_constant, alike))
    )
    if operator is Operator.BETWEEN:
        return JoinCheck(place, Question.GE, constants[:1]), JoinCheck(place, Question.LE, constants[1:])
    if operator not in _QUESTIONS:
        raise UndecidedError
    return (JoinCheck(place, _QUESTIONS[operator], constants),)


def _constant(value: Value) -> Constant:
    """Return a constant as its column's values are compared with it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return microseconds(value)
    try:
        number = float(value)
    except OverflowError:
        raise UndecidedError from None
    if number != value:  # an integer that no double equals
        raise UndecidedError
    return number + 0.0  # there is one zero
