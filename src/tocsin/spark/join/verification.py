"""The SQL condition that verifies a candidate: whether an event's values pass all checks of a conjunction."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from pyspark.sql import Column, functions

from tocsin.spark.join.checks import CheckOperator, ValueFamily


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
    constant, several = check.getField("number"), check.getField("numbers")
    # A number between two doubles is less than every double above the lower one.
    sign = functions.when(low < constant, 1).when(high > constant, 4).otherwise(2)
    is_member = (low == high) & functions.array_contains(several, low + functions.lit(0.0))
    outside = (low < functions.get(several, functions.lit(0))) | (
        high > functions.get(several, functions.lit(1))
    )
    return _common_cases(check, low, sign, is_member, outside).otherwise(low.isNull())


def _text(text: Column, check: Column) -> Column:
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


def _plain(value: Column, constant: Column, several: Column) -> tuple[Column, Column, Column]:
    sign = functions.when(value < constant, 1).when(value > constant, 4).otherwise(2)
    outside = (value < functions.get(several, functions.lit(0))) | (
        value > functions.get(several, functions.lit(1))
    )
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
