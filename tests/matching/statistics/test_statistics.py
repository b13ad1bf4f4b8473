from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import TEXTS, TIMES, events, literals, predicates
from tocsin.language import parse_condition
from tocsin.language.semantics import truth
from tocsin.matching import EventBatch, Statistics
from tocsin.model import Attribute, Event, Kind, Literal, Operator, Predicate
from tocsin.model.values import Opaque

histories = st.lists(events, max_size=30)
constant_predicates = predicates().filter(
    lambda p: type(p.subject) is Attribute and all(type(o) is Literal for o in p.operands)
)


def counted(history: list[Event], *asked: Predicate) -> float:
    """Return the share of events that satisfy all of some predicates."""
    found = sum(all(truth(p, event.attributes) is True for p in asked) for event in history)
    return found / len(history) if history else 0.0


def probability_of(statistics: Statistics, text: str) -> float:
    condition = parse_condition(text)
    assert isinstance(condition, Predicate)
    return statistics.probability(condition)


def of_two_kinds(predicate: Predicate) -> bool:
    """Return whether a range has ends of two kinds, whose probability is an assumption."""
    return "between" in predicate.operator and len({o.kind for o in predicate.operands}) > 1  # type: ignore[union-attr]


@given(histories, constant_predicates)
def test_probabilities_of_counted_values_are_exact(history: list[Event], predicate: Predicate) -> None:
    statistics = Statistics.of(EventBatch.of(history), top=1000)
    probability = statistics.probability(predicate)
    if of_two_kinds(predicate):
        assert 0.0 <= probability <= 1.0
    else:
        assert probability == pytest.approx(counted(history, predicate))


@given(histories, predicates(), st.integers(1, 3), st.integers(1, 4))
def test_a_probability_is_one_whatever_is_known(
    history: list[Event], predicate: Predicate, top: int, bins: int
) -> None:
    statistics = Statistics.of(EventBatch.of(history), top=top, bins=bins)
    assert 0.0 <= statistics.probability(predicate) <= 1.0
    assert 0.0 <= statistics.joint_probability([predicate, predicate]) <= 1.0


@given(
    st.lists(st.one_of(st.integers(-50, 50), st.floats(-50, 50)), min_size=1, max_size=300),
    st.integers(0, 10),
    st.integers(1, 8),
    st.integers(-60, 60),
)
def test_the_order_of_numbers_is_right_to_within_a_bin(
    values: list[float], top: int, bins: int, limit: int
) -> None:
    statistics = Statistics.of([{"a": value} for value in values], top=top, bins=bins)
    found = statistics.attribute("a").of(Kind.NUMBER)
    deepest = max(found.depths, default=0)
    assert len(found.depths) <= bins
    assert found.rest + sum(found.frequent.values()) == found.count == len(values)
    assert abs(found.up_to(limit) - sum(value <= limit for value in values)) <= deepest
    assert abs(found.below(limit) - sum(value < limit for value in values)) <= 2 * deepest
    assert found.equal_to(max(values)) > 0
    assert found.equal_to(math.inf) == 0


def test_a_bin_is_no_deeper_than_its_share_and_one_value() -> None:
    statistics = Statistics.of([{"a": i // 3} for i in range(3000)], top=10, bins=16)
    depths = statistics.attribute("a").of(Kind.NUMBER).depths
    assert len(depths) == 16
    assert max(depths) <= (3000 - 30) / 16 + 3


@given(histories, st.lists(literals, min_size=2, max_size=2))
def test_a_group_counts_values_that_occur_together(history: list[Event], pair: list[Literal]) -> None:
    statistics = Statistics.of(EventBatch.of(history), groups=[("b", "a")], top=1000)
    asked = [
        Predicate(Attribute(name), Operator.EQ, (value,)) for name, value in zip("ab", pair, strict=True)
    ]
    read = any(one.kind is Kind.TIMESTAMP for one in pair)  # beside a string, estimated by independence
    if not read:
        assert statistics.joint_probability(asked) == pytest.approx(counted(history, *asked))
    compared = [{name for name, value in e.attributes.items() if type(value) is not Opaque} for e in history]
    assert statistics.groups["a", "b"].count == sum({"a", "b"} <= names for names in compared)


def test_without_a_group_attributes_are_taken_to_be_independent() -> None:
    rows = [{"a": i % 2, "b": i % 2, "c": i % 3} for i in range(60)]
    asked = [parse_condition(text) for text in ("a = 1", "b = 1", "c = 1")]
    apart, together = Statistics.of(rows), Statistics.of(rows, groups=[("a", "b")])
    assert apart.joint_probability(asked) == pytest.approx(1 / 12)  # type: ignore[arg-type]
    assert together.joint_probability(asked) == pytest.approx(1 / 6)  # type: ignore[arg-type]


def test_the_probability_of_a_rare_combination_is_the_average_of_the_rest() -> None:
    rows = [{"a": 0, "b": 0}] * 60 + [{"a": i, "b": i} for i in range(1, 41)]
    statistics = Statistics.of(rows, groups=[("a", "b")], top=1)
    rare = [parse_condition("a = 7"), parse_condition("b = 7")]
    assert statistics.joint_probability(rare) == pytest.approx(0.01)  # type: ignore[arg-type]


def test_kinds_are_kept_apart_and_equal_numbers_together() -> None:
    big = 2**53 + 1
    rows: list[dict[str, Any]] = [
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": big},
        {"a": float(2**53)},
        {"a": -0.0},
        {"a": 0},
        {"a": datetime(2026, 1, 1, tzinfo=UTC)},
        {"a": math.inf},
    ]
    statistics = Statistics.of(rows)
    for text, wanted in {
        "a = 1": 0.2,
        "a = true": 0.1,
        "a = '1'": 0.1,
        f"a = {big}": 0.1,
        f"a = {2**53}": 0.1,
        "a = 0": 0.2,
        "a > 9007199254740992": 0.2,
        "a = timestamp '2026-01-01T00:00:00Z'": 0.1,
        "a is present": 1.0,
    }.items():
        assert probability_of(statistics, text) == pytest.approx(wanted), text


def test_text_is_counted_as_the_timestamp_it_reads_as_too() -> None:
    rows = [{"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-01T01:00:00+01:00"}, {"at": "soon"}, {}]
    statistics = Statistics.of(rows)
    assert probability_of(statistics, "at = timestamp '2026-01-01T00:00:00Z'") == 0.5
    assert probability_of(statistics, "at = '2026-01-01T00:00:00Z'") == 0.25
    assert (
        probability_of(statistics, "at in (timestamp '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'soon')")
        == 0.75
    )
    assert statistics.presence("at") == 0.75


def test_comparisons_of_attributes_have_assumed_probabilities() -> None:
    statistics = Statistics.of([{"a": 1, "b": 2}, {"a": 1}])
    assert probability_of(statistics, "a = b") == pytest.approx(0.05)
    assert probability_of(statistics, "a < 2 * b") == pytest.approx(1 / 6)


def test_a_record_that_is_no_event_is_counted_as_such() -> None:
    statistics = Statistics.of([{"a": "\ud800"}, {"a": 1}])
    assert (statistics.events, statistics.refused) == (1, 1)
    assert probability_of(statistics, "a = 1") == 1.0


def test_nothing_is_probable_where_there_were_no_events() -> None:
    assert probability_of(Statistics.of([]), "a = 1") == 0.0
    assert probability_of(Statistics.of([]), "a is missing") == 0.0


def test_a_group_is_of_two_attributes_or_more() -> None:
    with pytest.raises(ValueError, match="a group is two attributes or more, not 'ab'"):
        Statistics.of([], groups=["ab"])
    with pytest.raises(ValueError, match="not \\('a', 'a'\\)"):
        Statistics.of([], groups=[("a", "a")])


@given(st.lists(histories, max_size=3))
def test_parts_that_are_counted_wholly_merge_to_the_whole(parts: list[list[Event]]) -> None:
    groups = [("a", "b")]
    merged = Statistics.merged(
        [Statistics.of(EventBatch.of(part), groups=groups, top=1000) for part in parts], top=1000
    )
    whole = Statistics.of(EventBatch.of([e for part in parts for e in part]), groups=groups, top=1000)
    assert merged.events == whole.events
    assert merged.attributes == whole.attributes
    assert merged.groups == (whole.groups if parts else {})


@given(st.lists(histories, max_size=3), st.integers(1, 3), st.integers(1, 3))
def test_merged_parts_add_up_however_little_is_known(parts: list[list[Event]], top: int, bins: int) -> None:
    given = [Statistics.of(EventBatch.of(part), groups=[("a", "b")], top=top, bins=bins) for part in parts]
    merged = Statistics.merged(given, top=top, bins=bins)
    for path, attribute in merged.attributes.items():
        assert attribute.count == sum(one.attribute(path).count for one in given)
        for kind, values in attribute.kinds.items():
            assert values.count == sum(one.attribute(path).of(kind).count for one in given)
            assert values.count == values.rest + sum(values.frequent.values())
            assert all(depth >= 0 for depth in values.depths)
            assert values.distinct >= len(values.frequent)
    for joint in merged.groups.values():
        assert joint.rest >= 0
        assert joint.count == sum(one.groups["a", "b"].count for one in given)


def test_merged_parts_keep_every_event_and_come_near_the_whole() -> None:
    random = np.random.default_rng(5)
    parts = [[{"a": int(random.integers(700)), "id": 10_000 * j + i} for i in range(2000)] for j in range(3)]
    merged = Statistics.merged([Statistics.of(part, top=20, bins=16) for part in parts], top=20, bins=16)
    whole = Statistics.of([row for part in parts for row in part], top=20, bins=16)
    for name in ("a", "id"):
        found, wanted = merged.attribute(name).of(Kind.NUMBER), whole.attribute(name).of(Kind.NUMBER)
        assert found.count == wanted.count == found.rest + sum(found.frequent.values())
        assert found.distinct == pytest.approx(wanted.distinct, rel=0.1)
        for limit in range(0, 25_000, 97):
            assert found.up_to(limit) == pytest.approx(wanted.up_to(limit), abs=wanted.count / 16)


def test_the_summary_has_the_most_frequent_attributes() -> None:
    rows: list[Mapping[str, object]] = [{"a": i, "b": "x"} for i in range(3)]
    statistics = Statistics.of([*rows, {"a": "s"}], groups=[("a", "b")])
    assert statistics.summary(most=1).splitlines() == [
        "4 events, 2 attributes, 1 groups",
        " 100.0%  a: 3 numbers, 1 string",
        "and 1 more attributes",
        "  75.0%  a, b: 3 combinations",
    ]


@given(st.sampled_from(TEXTS), st.sampled_from(TIMES))
def test_equal_probabilities_do_not_depend_on_how_a_constant_is_written(text: str, time: datetime) -> None:
    statistics = Statistics.of([{"a": text}, {"a": time}])
    assert statistics.equality("a", Kind.STRING, text) == 0.5
    assert statistics.equality("a", Kind.TIMESTAMP, time) >= 0.5
