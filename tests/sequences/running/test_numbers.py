"""Programs compute and compare as the algebra does, to the last bit."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.language import parse
from tocsin.language.semantics import compare
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Sequence
from tocsin.model.conditions import Operator
from tocsin.model.terms import ArithmeticOperator, Attribute
from tocsin.model.values import Value
from tocsin.sequences.arithmetic import combine
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.sequences.running.values import ValueCodec

_SUMS = "from s a next s b select a.x + b.x as p, a.x - b.x as m, a.x * b.x as t, a.x / b.x as d"
_TESTS = {
    Operator.EQ: "=",
    Operator.NE: "!=",
    Operator.LT: "<",
    Operator.LE: "<=",
    Operator.GT: ">",
    Operator.GE: ">=",
}
_X = Attribute("x")

integers = st.one_of(
    st.integers(-10, 10),
    st.integers(2**53 - 2, 2**53 + 2),
    st.integers(2**62 - 2, 2**62 + 2),
    st.integers(2**63 - 2, 2**63 + 2),
    st.integers(-(2**63) - 2, -(2**63) + 2),
    st.integers(2**70 - 2, 2**70 + 2),
    st.integers(-(2**64), 2**64),
    st.sampled_from([10**400, 10**400 + 1, -(10**400), 3037000500, -3037000500]),
)
numbers = st.one_of(
    integers,
    st.floats(allow_nan=False),
    st.sampled_from([0.5, -0.0, 2.0**53, 2.0**63, -(2.0**63), 2.0**70, math.inf]),
)
values = st.one_of(
    numbers,
    st.text(max_size=3),
    st.booleans(),
    st.sampled_from([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]),
)


def _runner(*texts: str) -> AutomatonMatcher:
    runner = AutomatonMatcher(matcher="oracle")
    for number, text in enumerate(texts):
        query = parse(text)
        assert isinstance(query, Sequence)
        runner.add(np.array([number]), compile_sequence(query), {})
    return runner


def _pair(left: Value, right: Value) -> TimedBatch:
    return TimedBatch([Event("e1", {"x": left}, "s", 1, 1), Event("e2", {"x": right}, "s", 2, 2)])


@given(numbers, numbers)
def test_arithmetic(left: Value, right: Value) -> None:
    match = _runner(_SUMS).process(_pair(left, right)).match(0)
    expected = {
        "p": combine(ArithmeticOperator.ADD, left, right),
        "m": combine(ArithmeticOperator.SUBTRACT, left, right),
        "t": combine(ArithmeticOperator.MULTIPLY, left, right),
        "d": combine(ArithmeticOperator.DIVIDE, left, right),
    }
    assert match.values == expected
    assert [type(value) for value in match.values.values()] == [type(value) for value in expected.values()]


@given(values, values)
def test_comparisons(left: Value, right: Value) -> None:
    runner = _runner(*(f"from s a next s b where b.x {sign} a.x" for sign in _TESTS.values()))
    found = set(runner.process(_pair(left, right)).subscriptions.tolist())
    expected = {
        place for place, operator in enumerate(_TESTS) if compare(operator, _X, right, _X, left) is True
    }
    assert found == expected


@pytest.mark.parametrize("test", ["contains", "starts with", "ends with"])
@given(text=st.text("aé🔔", max_size=6), part=st.text("aé🔔", max_size=3))
def test_texts(test: str, text: str, part: str) -> None:
    truths = {
        "contains": part in text,
        "starts with": text.startswith(part),
        "ends with": text.endswith(part),
    }
    runner = _runner(f"from s a next s b where b.x {test} a.x", f"from s a next s b where not b.x {test} a.x")
    found = runner.process(_pair(part, text)).subscriptions.tolist()
    assert found == [0 if truths[test] else 1]


@given(values)
def test_values_come_back_as_they_were(value: Value) -> None:
    match = _runner("from s a next s b select a.x as x").process(_pair(value, 1)).match(0)
    assert match.values["x"] == value
    assert isinstance(match.values["x"], bool) is isinstance(value, bool)


def test_integers_of_more_than_64_bits_are_ranked_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[ValueCodec] = []
    rank = ValueCodec._rank

    def counted(words: ValueCodec) -> None:
        ranked.append(words)
        rank(words)

    monkeypatch.setattr(ValueCodec, "_rank", counted)
    runner = _runner("from s a where a.k = 1 next s b on b.x > a.x")
    numbers = [2**64 + 1 + 2 * (n * 7 % 100) for n in range(100)]
    events = [
        Event(f"e{n}", {"x": x, "k": int(n % 10 == 0)}, "s", n, n) for n, x in enumerate(numbers, start=1)
    ]
    found = runner.process(TimedBatch(events))
    expected = [
        (begin, next(end for end in range(begin + 1, 101) if numbers[end - 1] > numbers[begin - 1]))
        for begin in range(10, 91, 10)
    ]
    assert sorted(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == expected
    assert len(ranked) == 1
