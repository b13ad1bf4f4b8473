"""Predicates as checks: decided by SQL, never satisfied, or left to an index."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tocsin.language import parse_condition, to_dnf
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Kind
from tocsin.spark.join.checks import (
    CheckedAttributes,
    Checker,
    CheckOperator,
    JoinCheck,
    NeverError,
    UndecidedError,
)

KINDS = {
    "a": Kind.NUMBER,
    "b": Kind.NUMBER,
    "word": Kind.STRING,
    "flag": Kind.BOOLEAN,
    "moment": Kind.TIMESTAMP,
}


def checks(text: str) -> tuple[JoinCheck, ...]:
    (conjunction,) = to_dnf(parse_condition(text)).conjunctions
    return Checker(CheckedAttributes(KINDS)).checks(conjunction)


def compiled(text: str) -> list[tuple[CheckOperator, tuple[object, ...]]]:
    return [(check.operator, check.constants) for check in checks(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = 1", [(CheckOperator.EQ, (1.0,))]),
        ("a between 1 and 2.5", [(CheckOperator.GE, (1.0,)), (CheckOperator.LE, (2.5,))]),
        ("a not between 1 and 2", [(CheckOperator.NOT_BETWEEN, (1.0, 2.0))]),
        ("a in (1, 2, 'x')", [(CheckOperator.IN, (1.0, 2.0))]),
        ("a not in (1, 'x')", [(CheckOperator.NOT_IN, (1.0,))]),
        ("word like 'x%'", [(CheckOperator.STARTS_WITH, ("x",))]),
        ("word not contains 'x'", [(CheckOperator.NOT_CONTAINS, ("x",))]),
        ("flag > false", [(CheckOperator.GT, (0,))]),
        ("a is present", [(CheckOperator.PRESENT, ())]),
        ("a is missing", [(CheckOperator.MISSING, ())]),
        ("nowhere is missing", []),
        ("a = -0.0", [(CheckOperator.EQ, (0.0,))]),
    ],
)
def test_predicates_that_sql_can_decide_become_checks(
    text: str, found: list[tuple[CheckOperator, tuple[object, ...]]]
) -> None:
    assert compiled(text) == found


def test_timestamps_are_microseconds() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    assert compiled("moment < timestamp '2026-01-02T00:00:00Z'") == [
        (CheckOperator.LT, (microseconds(moment),))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "nowhere = 1",
        "nowhere is present",
        "a = 'x'",
        "flag = 1",
        "a not in ('x')",
        "a starts with 'x'",
        "a = '1' and word ~ 'x'",
    ],
)
def test_predicates_that_no_event_satisfies_are_reported(text: str) -> None:
    with pytest.raises(NeverError):
        checks(text)


@pytest.mark.parametrize(
    "text",
    [
        "a > b + 1",
        "a = b",
        "word like 'x_y'",
        "word ~ 'x+'",
        "a = 9007199254740993",
        "a in (1, 9007199254740993)",
        "word > timestamp '2026-01-02T00:00:00Z'",
        "word in ('x', timestamp '2026-01-02T00:00:00Z')",
    ],
)
def test_predicates_that_sql_cannot_decide_are_left_to_the_index(text: str) -> None:
    with pytest.raises(UndecidedError):
        checks(text)


def test_attributes_are_numbered_in_the_order_of_lookups() -> None:
    places = CheckedAttributes(KINDS)
    found = [places.find(path) for path in ("word", "b", "moment", "b", "nowhere", "flag")]
    assert [place and (place.number, place.position) for place in found] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (1, 0),
        None,
        (3, 1),
    ]
    assert list(places.used) == ["word", "b", "moment", "flag"]
