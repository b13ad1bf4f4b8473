"""Predicates over columns: the same answers as one row at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.matching.arrow_tables import tables
from tests.strategies import conditions, predicates
from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.language.semantics import truth
from tocsin.matching import ConjunctionBatch, Oracle, create_matcher
from tocsin.matching.column_scan import scan
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.starting_matcher import StartingMatcher
from tocsin.model import Predicate
from tocsin.structures import jit


@given(tables(), st.lists(predicates(), min_size=1, max_size=6))
def test_a_column_holds_for_the_rows_for_which_the_predicate_is_true(
    table: Any, asked: list[Predicate]
) -> None:
    events = ArrowEvents.by_column(table)
    if events is None:
        return
    usable = [row for row in range(len(events)) if not events.is_refused(row)]
    for predicate in asked:
        found = events.holds(predicate)
        if found is not None:
            expected = [truth(predicate, events.attributes(row)) is True for row in usable]
            assert found[usable].tolist() == expected


@given(tables(), st.lists(conditions(), min_size=1, max_size=5), st.booleans())
def test_a_scan_finds_what_the_oracle_finds(table: Any, asked: list[Any], clauses: bool) -> None:
    events = ArrowEvents.by_column(table, stream="s")
    if events is None:
        return
    oracle = Oracle()
    normal = to_cnf if clauses else to_dnf
    oracle.add(ConjunctionBatch.of((i % 3, normal(condition)) for i, condition in enumerate(asked)))
    assert scan(oracle, events).to_lists() == oracle.match(events).to_lists()


FLIGHTS = pa.table(
    {
        "delay": pa.array([1, 200, None, 61, -5], pa.int64()),
        "air": pa.array([100.0, 0.0, 30.5, None, 1e300], pa.float64()),
        "dest": pa.array(["BOS", "SFO", None, "2013-12-24T00:00:00Z", "BOS"]),
        "big": pa.array([2**53 + 1, 2**62, 0, -(2**63), 5], pa.int64()),
        "up": pa.array([True, False, None, True, False]),
        "time": pa.array([0, 10**15, None, -1, 5], pa.timestamp("us", "UTC")),
    }
)


@pytest.mark.parametrize(
    ("text", "by_column"),
    [
        ("delay > air + 120", False),  # 1e300 + 120 may stand for an integer
        ("delay + delay > 60 / 7 * delay", True),
        ("delay / delay = 1", True),
        ("-delay >= 5", True),
        ("delay / 0 > 1 or delay / (delay - 1) > 1", True),
        ("big + 1 > 3", False),
        ("big > 2.5", False),
        ("big = 9007199254740993", False),
        ("delay = 61.0", True),
        ("dest in ('BOS', 'OAK')", True),
        ("dest not in ('BOS', 'OAK')", True),
        ("dest ~ '^(SFO|OAK)$'", True),
        ("dest <= timestamp '2013-12-24T00:00:00Z'", True),
        ("dest != 5", True),
        ("dest is missing", True),
        ("nothing is missing", True),
        ("up = true", True),
        ("time between timestamp '1970-01-01T00:00:00Z' and timestamp '1970-01-01T00:00:01Z'", True),
        ("time not between timestamp '1970-01-01T00:00:00Z' and timestamp '1970-01-01T00:00:01Z'", True),
        ("dest = up", False),
    ],
)
def test_what_is_evaluated_by_the_column(text: str, by_column: bool) -> None:
    events = ArrowEvents.by_column(FLIGHTS)
    assert events is not None
    oracle = Oracle()
    oracle.add(ConjunctionBatch.of([(7, to_dnf(parse_condition(text)))]))
    held = [events.holds(predicate) for _, conjunction in oracle.conjunctions() for predicate in conjunction]
    assert all(mask is not None for mask in held) is by_column
    assert scan(oracle, events).to_lists() == oracle.match(events).to_lists()


@pytest.mark.parametrize("matcher", ["dynamic", "k-index"])
def test_an_index_verifies_residual_predicates_by_the_column(matcher: str) -> None:
    rows = np.arange(400)
    events = ArrowEvents.by_column(pa.table({"a": rows % 7, "b": rows % 11, "c": rows}))
    assert events is not None
    texts = ["a + b > 9", "a = 3 and b - a > 2", "a + c = 17", "c = 5 and a + b = 10", "b * a > 20 or a = b"]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    index, oracle = create_matcher(matcher), Oracle()
    index.add(batch)
    oracle.add(batch)
    assert index.match(events).to_lists() == oracle.match(events).to_lists()


def test_the_time_of_a_column_is_compared_in_microseconds() -> None:
    times = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), None]
    for kind in (pa.timestamp("s"), pa.timestamp("ns", "Europe/Oslo"), pa.date32()):
        events = ArrowEvents.by_column(pa.table({"t": pa.array(times, kind)}))
        assert events is not None
        for _, conjunction in ConjunctionBatch.of(
            [(0, to_dnf(parse_condition("t > timestamp '2026-01-01T12:00:00Z'")))]
        ):
            held = events.holds(conjunction[0])
            assert held is not None
            assert held.tolist() == [False, True, False]


def test_an_index_takes_over_from_scanned_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: True)
    matcher = StartingMatcher(max_tried=6_400, max_few=0)
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a > 2")))]))
    events = ArrowEvents.by_column(pa.table({"a": np.arange(3_200)}))
    assert events is not None
    for _ in range(2):
        assert len(matcher.match(events).ids) == 3_197
        assert isinstance(matcher.current, Oracle)
    assert len(matcher.match(events).ids) == 3_197
    assert not isinstance(matcher.current, Oracle)
