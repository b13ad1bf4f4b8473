"""Predicates as checks of a DataFrame's columns, where Spark SQL decides them exactly as the language does, and their SQL conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Final

from msgspec import Struct
from pyspark.sql import Column, functions

from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Attribute, Literal
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Kind, Opaque, Value, kind_of

Constant = float | str | int


class ValueFamily(IntEnum):
    """The type that a column's values are compared as."""

    NUMBER = 0  # doubles, two for a value that lies between them
    TEXT = 1  # strings, by their bytes
    WHOLE = 2  # 64-bit integers: booleans, timestamps in microseconds, and 0 for what is opaque


class CheckOperator(IntEnum):
    """The operator of a check. Up to 6, a set of bits: less (1), equal (2), greater (4)."""

    LT = 1
    EQ = 2
    LE = 3
    GT = 4
    NE = 5
    GE = 6
    IN = 8
    NOT_IN = 9
    NOT_BETWEEN = 10
    STARTS_WITH = 11
    NOT_STARTS_WITH = 12
    ENDS_WITH = 13
    NOT_ENDS_WITH = 14
    CONTAINS = 15
    NOT_CONTAINS = 16
    PRESENT = 17
    MISSING = 18

    @property
    def has_list(self) -> bool:
        """Return whether it takes several constants."""
        return self in (CheckOperator.IN, CheckOperator.NOT_IN, CheckOperator.NOT_BETWEEN)


_OPERATORS: Final = {
    one: CheckOperator[one.name] for one in Operator if one.name in CheckOperator.__members__
}
_STRING_OPERATORS: Final = frozenset(
    one
    for one in Operator
    if one.name.removeprefix("NOT_") in ("LIKE", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "REGEX")
)
_LISTS: Final = (Operator.IN, Operator.NOT_IN)


class CheckedAttribute(Struct, frozen=True):
    """An attribute with a column in the events: its kind, and its number among all and among its family."""

    kind: Kind
    number: int  # among all
    position: int  # in its family's array

    @property
    def family(self) -> ValueFamily:
        """Return the type that the values are compared as."""
        return _FAMILIES[self.kind]


_FAMILIES: Final = {
    Kind.NUMBER: ValueFamily.NUMBER,
    Kind.STRING: ValueFamily.TEXT,
    Kind.BOOLEAN: ValueFamily.WHOLE,
    Kind.TIMESTAMP: ValueFamily.WHOLE,
    Kind.OPAQUE: ValueFamily.WHOLE,
}


class CheckedAttributes:
    """The attributes with a column in the events, numbered in the order of their first use."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._counts = dict.fromkeys(ValueFamily, 0)
        self.used: dict[str, CheckedAttribute] = {}

    def find(self, path: str) -> CheckedAttribute | None:
        """Return an attribute, numbered if it is new, or None if the events have no column for it."""
        kind = self._kinds.get(path)
        if kind is None:
            return None
        if path not in self.used:
            family = _FAMILIES[kind]
            self.used[path] = CheckedAttribute(kind, len(self.used), self._counts[family])
            self._counts[family] += 1
        return self.used[path]


class JoinCheck(Struct, frozen=True):
    """A test of an attribute's value against constants of its family."""

    attribute: CheckedAttribute
    operator: CheckOperator
    constants: tuple[Constant, ...] = ()

    @property
    def values(self) -> tuple[Constant, ...]:
        """Return the values of an equality or a list; none for other operators."""
        return self.constants if self.operator in (CheckOperator.EQ, CheckOperator.IN) else ()

    def narrowed(self, value: Constant) -> JoinCheck:
        """Return the check that the value equals one of the values."""
        return JoinCheck(self.attribute, CheckOperator.EQ, (value,))


class NeverError(Exception):
    """No event of these columns satisfies the predicate."""


class UndecidedError(Exception):
    """Spark SQL cannot decide the predicate exactly."""


class Checker:
    """Turns conjunctions into checks of attributes."""

    def __init__(self, attributes: CheckedAttributes) -> None:
        self._attributes = attributes
        self._known: dict[Predicate, tuple[JoinCheck, ...] | type[Exception]] = {}

    def checks(self, conjunction: Conjunction) -> tuple[JoinCheck, ...]:
        """Return the checks that must all hold; raise `NeverError` or `UndecidedError`."""
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
        if is_never:  # even if other predicates are undecided
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
        """Return the checks of a predicate; raise `UndecidedError` or `NeverError` if it has none."""
        operator, subject = predicate.operator, predicate.subject
        if type(subject) is not Attribute:
            raise UndecidedError
        attribute = self._attributes.find(subject.path)
        if operator is Operator.MISSING:
            return () if attribute is None else (JoinCheck(attribute, CheckOperator.MISSING),)
        if attribute is None:
            raise NeverError
        if operator is Operator.PRESENT:
            return (JoinCheck(attribute, CheckOperator.PRESENT),)
        if not all(type(operand) is Literal for operand in predicate.operands):
            raise UndecidedError
        values = [operand.value for operand in predicate.operands if type(operand) is Literal]
        return _comparison(attribute, operator, values)


def _comparison(
    attribute: CheckedAttribute, operator: Operator, values: Sequence[Value]
) -> tuple[JoinCheck, ...]:
    """Return the checks that compare an attribute with constants."""
    if attribute.kind is Kind.STRING and any(isinstance(value, datetime) for value in values):
        raise UndecidedError  # strings that may be read as timestamps
    if operator in _STRING_OPERATORS:
        if attribute.kind is not Kind.STRING:
            raise NeverError
        if operator not in _OPERATORS:
            raise UndecidedError  # patterns
        return (JoinCheck(attribute, _OPERATORS[operator], (str(values[0]),)),)
    alike = [value for value in values if kind_of(value) is attribute.kind]
    if not alike or (operator not in _LISTS and len(alike) < len(values)):
        raise NeverError  # a comparison across kinds is unknown
    found = map(_constant, alike)
    constants = tuple(dict.fromkeys(found) if operator in _LISTS else found)
    if operator is Operator.BETWEEN:
        return JoinCheck(attribute, CheckOperator.GE, constants[:1]), JoinCheck(
            attribute, CheckOperator.LE, constants[1:]
        )
    if operator not in _OPERATORS:
        raise UndecidedError
    return (JoinCheck(attribute, _OPERATORS[operator], constants),)


def _constant(value: Value) -> Constant:
    """Return a constant in the type of its family."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return microseconds(value)
    if isinstance(value, Opaque):  # no constant is
        raise UndecidedError
    try:
        number = float(value)
    except OverflowError:
        raise UndecidedError from None
    if number != value:  # an integer that no double equals
        raise UndecidedError
    return number + 0.0  # turns -0.0 into 0.0


class Values(Struct, frozen=True):
    """An event's values as one array per family; a number is the doubles next below and above it."""

    lows: Column
    highs: Column
    texts: Column
    wholes: Column


def passes(values: Values, checks: Column) -> Column:
    """Return whether the values pass all checks."""
    return functions.forall(checks, lambda check: _passes(values, check))


def is_first(values: Values, earlier: Column) -> Column:
    """Return whether the values pass none of the earlier conjunctions."""
    return ~functions.exists(earlier, lambda checks: passes(values, checks))


def _passes(values: Values, check: Column) -> Column:
    """Return whether the values pass a check, by the family of its attribute."""
    family, position = check.getField("family"), check.getField("position")
    low, high = functions.get(values.lows, position), functions.get(values.highs, position)
    text = functions.get(values.texts, position)
    whole = functions.get(values.wholes, position)
    passed = (
        functions.when(family == int(ValueFamily.NUMBER), _number(low, high, check))
        .when(family == int(ValueFamily.TEXT), _text(text, check))
        .otherwise(_whole(whole, check))
    )
    return functions.coalesce(passed, functions.lit(False))


def _number(low: Column, high: Column, check: Column) -> Column:
    """Return whether a number, given by the doubles around it, passes a check."""
    constant, several = check.getField("number"), check.getField("numbers")
    # A number between two doubles is less than every double above the lower one.
    sign = functions.when(low < constant, 1).when(high > constant, 4).otherwise(2)
    is_member = (low == high) & functions.array_contains(several, low + functions.lit(0.0))
    least, most = _ends(several)
    outside = (low < least) | (high > most)
    return _common_cases(check, low, sign, is_member, outside).otherwise(low.isNull())


def _text(text: Column, check: Column) -> Column:
    """Return whether a text passes a check."""
    constant, several = check.getField("text"), check.getField("texts")
    chosen = _common_cases(check, text, *_plain(text, constant, several))
    pairs: tuple[tuple[Callable[[Column, Column], Column], CheckOperator, CheckOperator], ...] = (
        (functions.startswith, CheckOperator.STARTS_WITH, CheckOperator.NOT_STARTS_WITH),
        (functions.endswith, CheckOperator.ENDS_WITH, CheckOperator.NOT_ENDS_WITH),
        (functions.contains, CheckOperator.CONTAINS, CheckOperator.NOT_CONTAINS),
    )
    operator = check.getField("operator")
    for function, positive, negative in pairs:
        chosen = chosen.when(operator == int(positive), function(text, constant))
        chosen = chosen.when(operator == int(negative), ~function(text, constant))
    return chosen.otherwise(text.isNull())


def _whole(whole: Column, check: Column) -> Column:
    plain = _plain(whole, check.getField("whole"), check.getField("wholes"))
    return _common_cases(check, whole, *plain).otherwise(whole.isNull())


def _ends(several: Column) -> tuple[Column, Column]:
    return functions.get(several, functions.lit(0)), functions.get(several, functions.lit(1))


def _plain(value: Column, constant: Column, several: Column) -> tuple[Column, Column, Column]:
    sign = functions.when(value < constant, 1).when(value > constant, 4).otherwise(2)
    least, most = _ends(several)
    outside = (value < least) | (value > most)
    return sign, functions.array_contains(several, value), outside


def _common_cases(check: Column, value: Column, sign: Column, is_member: Column, outside: Column) -> Column:
    """Return the cases of operators that all families have; `otherwise` is left for MISSING."""
    operator = check.getField("operator")
    return (
        functions.when(operator < int(CheckOperator.IN), value.isNotNull() & (operator.bitwiseAND(sign) != 0))
        .when(operator == int(CheckOperator.IN), is_member)
        .when(operator == int(CheckOperator.NOT_IN), value.isNotNull() & ~is_member)
        .when(operator == int(CheckOperator.NOT_BETWEEN), outside)
        .when(operator == int(CheckOperator.PRESENT), value.isNotNull())
    )
