"""Checks as a condition in SQL: whether an event, given by its values by family, passes all of a conjunction's checks."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from pyspark.sql import Column, functions

from tocsin.spark.join.checks import ColumnFamily, Question


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
    return ~functions.exists(earlier, lambda checks: passes(values, checks))


def _passes(values: Values, check: Column) -> Column:
    family, within = check.getField("family"), check.getField("within")
    low, high = functions.get(values.lows, within), functions.get(values.highs, within)
    text = functions.get(values.texts, within)
    whole = functions.get(values.wholes, within)
    told = (
        functions.when(family == int(ColumnFamily.NUMBER), _number(low, high, check))
        .when(family == int(ColumnFamily.TEXT), _text(text, check))
        .otherwise(_whole(whole, check))
    )
    return functions.coalesce(told, functions.lit(False))


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
    pairs: tuple[tuple[Callable[[Column, Column], Column], Question, Question], ...] = (
        (functions.startswith, Question.STARTS, Question.NOT_STARTS),
        (functions.endswith, Question.ENDS, Question.NOT_ENDS),
        (functions.contains, Question.CONTAINS, Question.NOT_CONTAINS),
    )
    question = check.getField("question")
    for function, positive, negative in pairs:
        chosen = chosen.when(question == int(positive), function(text, constant))
        chosen = chosen.when(question == int(negative), ~function(text, constant))
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
    """Return the questions that all families have; what is left is whether there is no value."""
    question = check.getField("question")
    return (
        functions.when(question < int(Question.IN), value.isNotNull() & (question.bitwiseAND(sign) != 0))
        .when(question == int(Question.IN), is_member)
        .when(question == int(Question.NOT_IN), value.isNotNull() & ~is_member)
        .when(question == int(Question.NOT_BETWEEN), outside)
        .when(question == int(Question.PRESENT), value.isNotNull())
    )
