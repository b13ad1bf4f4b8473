"""Checks as a condition in SQL: whether an event, given by its values by family, passes all of a conjunction's checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from pyspark.sql import Column, functions

from tocsin.spark.join.checks import Family, Test

__all__ = ["Values", "is_first", "passes"]

_FALSE: Final = False


class Values(Struct, frozen=True):
    """An event's values as arrays, by their place within the family; numbers as the doubles about them."""

    lows: Column
    highs: Column
    texts: Column
    wholes: Column


def passes(values: Values, checks: Column) -> Column:
    """Return whether the values pass all checks."""
    return functions.forall(checks, lambda check: _passes(values, check))


def is_first(values: Values, earlier: Column) -> Column:
    """Return whether the values pass none of the conjunctions before."""
    some = functions.exists(earlier, lambda checks: passes(values, checks))
    return earlier.isNull() | ~some


def _passes(values: Values, check: Column) -> Column:
    family, within = check.getField("family"), check.getField("within")
    low, high = functions.get(values.lows, within), functions.get(values.highs, within)
    text = functions.get(values.texts, within)
    whole = functions.get(values.wholes, within)
    told = (
        functions.when(family == int(Family.NUMBER), _number(low, high, check))
        .when(family == int(Family.TEXT), _text(text, check))
        .otherwise(_whole(whole, check))
    )
    return functions.coalesce(told, functions.lit(_FALSE))


def _number(low: Column, high: Column, check: Column) -> Column:
    constant, several = check.getField("number"), check.getField("numbers")
    # A number between two doubles is less than all that are above the lower one, and so on.
    sign = functions.when(low < constant, 1).when(high > constant, 4).otherwise(2)
    is_member = (low == high) & functions.array_contains(several, low + functions.lit(0.0))
    outside = (low < functions.get(several, functions.lit(0))) | (
        high > functions.get(several, functions.lit(1))
    )
    return _tested(check, low, sign, is_member, outside).otherwise(low.isNull())


def _text(text: Column, check: Column) -> Column:
    constant, several = check.getField("text"), check.getField("texts")
    chosen = _tested(check, text, *_plain(text, constant, several))
    pairs: tuple[tuple[Callable[[Column, Column], Column], Test, Test], ...] = (
        (functions.startswith, Test.STARTS, Test.NOT_STARTS),
        (functions.endswith, Test.ENDS, Test.NOT_ENDS),
        (functions.contains, Test.CONTAINS, Test.NOT_CONTAINS),
    )
    test = check.getField("test")
    for function, positive, negative in pairs:
        chosen = chosen.when(test == int(positive), function(text, constant))
        chosen = chosen.when(test == int(negative), ~function(text, constant))
    return chosen.otherwise(text.isNull())


def _whole(whole: Column, check: Column) -> Column:
    plain = _plain(whole, check.getField("whole"), check.getField("wholes"))
    return _tested(check, whole, *plain).otherwise(whole.isNull())


def _plain(value: Column, constant: Column, several: Column) -> tuple[Column, Column, Column]:
    sign = functions.when(value < constant, 1).when(value > constant, 4).otherwise(2)
    outside = (value < functions.get(several, functions.lit(0))) | (
        value > functions.get(several, functions.lit(1))
    )
    return sign, functions.array_contains(several, value), outside


def _tested(check: Column, value: Column, sign: Column, is_member: Column, outside: Column) -> Column:
    """Return the tests that all families have; what is left is whether there is no value."""
    test = check.getField("test")
    return (
        functions.when(test < int(Test.IN), value.isNotNull() & (test.bitwiseAND(sign) != 0))
        .when(test == int(Test.IN), is_member)
        .when(test == int(Test.NOT_IN), value.isNotNull() & ~is_member)
        .when(test == int(Test.NOT_BETWEEN), outside)
        .when(test == int(Test.PRESENT), value.isNotNull())
    )
