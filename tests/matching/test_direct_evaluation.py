"""Predicates by the column, and generated code: the same truth as row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.matching.arrow_tables import tables
from tests.strategies import conditions, predicates, tested
from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.language.semantics import truth
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, direct_evaluation, generated_code
from tocsin.matching.direct_evaluation import DirectEvaluation
from tocsin.matching.encoding.arrow import ArrowEvents, arrow_events
from tocsin.model import Condition, Predicate
from tocsin.model.conditions import leaves

asked = st.lists(
    st.one_of(predicates(), predicates(), conditions(max_leaves=3), tested), min_size=1, max_size=8
)
ARITHMETIC = [
    "a > b + 120",
    "a > 570 / 60 * b",
    "a / b >= c",
    "a * b != c",
    "-a < b - c",
    "a between b - 1 and c + 1.5",
    "a not between b and 9007199254740993",
    "a * 4503599627370496 > b",
    "a + b < c - price",
    "a = b",
    "a <= price",
    "a > 9007199254740993 or b < 9007199254740993",
    "a > 2.5 or b >= -0.5 or c <= 0.5 or a < 1.5",
    "price in (1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5)",
]


def truths_by_row(predicate: Predicate, events: EventBatch) -> list[bool]:
    return [
        not events.is_refused(row) and truth(predicate, events.attributes(row)) is True
        for row in range(len(events))
    ]


def assert_same_truths(predicate: Predicate, events: ArrowEvents) -> None:
    """Compare the truths by the column, where arrays say them, with those of each row."""
    found = events.holds(predicate)
    if found is not None:
        valid = [not events.is_refused(row) for row in range(len(events))]
        assert (found & np.array(valid, dtype=np.bool_)).tolist() == truths_by_row(predicate, events)


@given(tables(odd=True), st.lists(st.one_of(predicates(), tested), min_size=1, max_size=4))
def test_the_truth_by_the_column_is_the_truth_of_each_row(table: Any, asked: list[Condition]) -> None:
    events = ArrowEvents.by_column(table, stream="s")
    if events is not None:
        for condition in asked:
            for predicate in leaves(condition):
                assert_same_truths(predicate, events)


numbers = st.one_of(
    st.none(),
    st.integers(-4, 4),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]),
)
floats = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.5, 2.5, -1.5, 1e300, float(2**53), float("inf")]))


@given(
    st.lists(st.tuples(numbers, numbers, floats, floats), min_size=1, max_size=6),
    st.sampled_from(ARITHMETIC),
    st.permutations(["a", "b", "c", "price"]),
)
def test_arithmetic_by_the_column_is_exact(rows: list[Any], text: str, names: list[str]) -> None:
    kinds = [pa.int64(), pa.int64(), pa.float64(), pa.float64()]
    columns = zip(*rows, strict=True)
    table = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
    events = ArrowEvents.by_column(table)
    assert events is not None
    for predicate in leaves(parse_condition(text)):
        assert_same_truths(predicate, events)


@given(tables(odd=True), asked, st.booleans(), st.sampled_from([1, 2, 8]))
def test_direct_evaluation_answers_as_the_oracle(
    table: Any, asked: list[Condition], in_clauses: bool, fewest: int
) -> None:
    normal = to_cnf if in_clauses else to_dnf
    oracle = Oracle()
    oracle.add(ConjunctionBatch.of((9 - i, normal(condition)) for i, condition in enumerate(asked)))
    direct, events = DirectEvaluation(oracle), arrow_events(table, stream="s")
    expected = oracle.match(events).to_lists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct_evaluation, "_BY_COLUMN", 0)
        assert direct.match(events).to_lists() == expected
        patch.setattr(direct_evaluation, "_BY_COLUMN", len(events) + 1)
        patch.setattr(direct_evaluation, "_COMPILED_AFTER", -1)
        patch.setattr(generated_code, "_FEWEST", fewest)
        assert direct.match(events).to_lists() == expected
    each = [
        [] if events.is_refused(i) else direct.match_one(events.attributes(i)).tolist()
        for i in range(len(events))
    ]
    assert each == expected


def test_conjunctions_are_reached_through_the_values_they_demand() -> None:
    texts = [f"a = {i % 17} and b > {i % 5}" for i in range(40)] + [f"s = 'v{i}'" for i in range(9)]
    texts += ["a = true", "a = '3'", "a = 3.0", "a = 3 and a = 4", "b > 3", "a = 3 or b = 0"]
    oracle = Oracle()
    oracle.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    search = generated_code.generate(oracle.expressions())
    rows: list[dict[str, Any]] = [
        {"a": a, "b": b} for a in (0, 1, 3, 3.0, 16, 17, True, "3", 2.5) for b in (0, 3, 9)
    ]
    for row in [*rows, {"s": "v4"}, {"s": "w"}, {}, {"b": 4}, {"a": 3}]:
        assert sorted(search(row)) == oracle.match_one(row).tolist()


def test_changed_expressions_are_evaluated_anew() -> None:
    oracle = Oracle()
    direct = DirectEvaluation(oracle)
    for id_ in range(3):
        oracle.add(ConjunctionBatch.of([(id_, to_dnf(parse_condition("a > 1")))]))
        for _ in range(20):
            assert direct.match_one({"a": 2}).tolist() == list(range(id_ + 1))
    oracle.remove(np.array([1]))
    assert direct.match_one({"a": 2}).tolist() == [0, 2]
