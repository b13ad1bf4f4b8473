"""Numbers of 64 bits."""

from __future__ import annotations

import math

import pytest

from tocsin.model import AggregateFunction, ArithmeticOperator, Value
from tocsin.sequences.arithmetic import accumulate, combine

ADD, SUBTRACT = ArithmeticOperator.ADD, ArithmeticOperator.SUBTRACT
MULTIPLY, DIVIDE = ArithmeticOperator.MULTIPLY, ArithmeticOperator.DIVIDE


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (2**62, ADD, 2**62 - 1, 2**63 - 1),
        (2**62, ADD, 2**62, 2.0**63),
        (-(2**63), SUBTRACT, 1, -(2.0**63)),
        (2**53 + 1, MULTIPLY, 3, 3 * (2**53 + 1)),
        (2**63 - 1, MULTIPLY, 2**63 - 1, float((2**63 - 1) ** 2)),
        (2**70 + 1, ADD, 0, 2.0**70),
        (10**320, ADD, 1, None),
        (7, DIVIDE, 2, 3.5),
        (6, DIVIDE, 2, 3.0),
        (2**53 + 1, DIVIDE, 1, 2.0**53),
        (1, DIVIDE, 0, None),
        (1.5, DIVIDE, 0.0, None),
        (math.inf, SUBTRACT, math.inf, None),
        (1e308, MULTIPLY, 10, math.inf),
        (True, ADD, 1, None),
        ("1", ADD, 1, None),
        (None, ADD, 1, None),
    ],
)
def test_two_numbers(
    left: Value | None, operator: ArithmeticOperator, right: Value, result: float | None
) -> None:
    given = combine(operator, left, right)
    assert given == result
    assert type(given) is type(result)


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        (AggregateFunction.COUNT, [], None),
        (AggregateFunction.COUNT, [None, 3, "x", None], 2),
        (AggregateFunction.COUNT, [None], 0),
        (AggregateFunction.SUM, [None, 3, "x", 0.5], 3.5),
        (AggregateFunction.SUM, ["x", True], None),
        (AggregateFunction.SUM, [2**70], 2.0**70),
        (AggregateFunction.SUM, [2**63 - 1, 10**320, 1], 2.0**63),
        (AggregateFunction.MIN, [None, 3, "a", 2, 2.5], 2),
        (AggregateFunction.MAX, ["a", 9, "b"], "b"),
        (AggregateFunction.MAX, [2**70, 2**70 + 1, 2.0**70], 2**70 + 1),
        (AggregateFunction.MIN, [True, False, 0], False),
    ],
)
def test_aggregates(function: AggregateFunction, values: list[Value | None], result: Value | None) -> None:
    so_far: Value | None = None
    for value in values:
        so_far = accumulate(function, so_far, value)
    assert so_far == result
    assert type(so_far) is type(result)
