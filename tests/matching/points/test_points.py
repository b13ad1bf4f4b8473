"""Conjunctions that are points and others; both are matched alike."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.test_matchers import add, match, remove
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import (
    ConjunctionBatch,
    EventBatch,
    Matcher,
    Oracle,
    create_matcher,
    open_matcher,
    save_matcher,
)
from tocsin.matching.points.state import MOST_SHAPES
from tocsin.model import Operator, Predicate
from tocsin.model.terms import Attribute, literal

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
WIDEST = float(np.finfo(np.float64).max)


def points_in(matcher: Matcher) -> int:
    return int(matcher.stats().details["points"])


@pytest.mark.parametrize(
    ("text", "is_point"),
    [
        ("a > 3", True),
        ("a <= 3 and b = 'x'", True),
        ("a between 3 and 5", True),
        ("a between 3 and 5 and b = 1 and c = true", True),
        ("a > 3 and a < 5", True),
        ("a > 3 and b > 3", True),
        ("a < 3 and b >= 3 and c <= 5 and d > 5", True),
        ("t = 'min' and a < 3 and b >= 3 and c <= 3 and d > 3", True),
        ("a < 3 and b >= 3 and c > 5", True),
        ("a < 3 and b >= 4 and c > 5", False),  # three constants
        ("a < 3 and b < 3 and c < 3", False),  # one coordinate has only two sides
        ("a < 3 and b between 3 and 5", False),
        ("a = 1", False),
        ("a = 1 and b = 2 and c = 3 and d > 4", False),
        ("a != 1 and b > 3", False),
        ("a > 'm'", False),
        ("a > timestamp '2026-01-01T00:00:00Z'", False),
        (f"a > {2**60 + 1}", False),
        ("a > b", False),
        ("true", False),
    ],
)
def test_conjunctions_that_are_points(text: str, is_point: bool) -> None:
    matcher = create_matcher("points")
    add(matcher, (1, parse_condition(text)))
    assert points_in(matcher) == is_point
    assert matcher.stats().details["conjunctions that are no points"] == (not is_point)
    (held,) = matcher.explain(next(iter(EventBatch.of_dicts([{}]))), 1).conjunctions
    assert tuple(one.predicate for one in held) == to_dnf(parse_condition(text)).conjunctions[0]
    remove(matcher, 1)
    assert matcher.stats().conjunctions == matcher.stats().predicates == 0
    assert matcher.stats().details["trees"] == matcher.stats().details["shapes"] == 0


constants = st.sampled_from([1, 2, 3, 2.5, -0.0, 2**53, -(10**30), WIDEST, -WIDEST, np.inf, -np.inf, 5e-324])
operators = st.sampled_from([Operator.LT, Operator.LE, Operator.GT, Operator.GE])
equalities = st.tuples(
    st.sampled_from("kl"), st.just(Operator.EQ), st.sampled_from(["x", 1, True, 2**60 + 1])
)
compared = st.tuples(st.sampled_from("abcd"), operators, constants)
conjunctions = st.one_of(
    st.lists(st.one_of(equalities, compared), min_size=1, max_size=6),
    st.tuples(constants, constants, st.permutations("abcd"), st.lists(operators, min_size=3, max_size=4)).map(
        lambda drawn: [
            (path, operator, drawn[place % 2])
            for place, (path, operator) in enumerate(zip(drawn[2], drawn[3], strict=False))
        ]
    ),
)
values = st.one_of(
    constants, st.sampled_from([2**53 + 1, 2**60 + 1, -(2**60) - 1, 10**400, -(10**400), "x", True])
)
events = st.dictionaries(st.sampled_from("abcdkl"), values, max_size=6)


@settings(max_examples=2_000 if LONG else 100)
@given(st.lists(conjunctions, min_size=1, max_size=12), st.lists(events, min_size=1, max_size=8), st.data())
def test_points_and_others_match_as_the_oracle_says(
    forms: list[list[tuple[str, Operator, object]]], rows: list[dict[str, object]], data: st.DataObject
) -> None:
    matcher, oracle = create_matcher("points"), Oracle()
    shapes = [
        tuple(Predicate(Attribute(path), operator, (literal(value),)) for path, operator, value in form)  # type: ignore[arg-type]
        for form in forms
    ]
    batch = ConjunctionBatch.of_shapes(np.array([0]), to_dnf(parse_condition("true")), {})
    group = type(batch.groups[0])
    wanted = ConjunctionBatch(
        tuple(group(shape, np.array([i % 7]), {}) for i, shape in enumerate(shapes)), (), {}
    )
    gone = data.draw(st.lists(st.integers(0, 7), max_size=4))
    for each in (matcher, oracle):
        each.add(wanted)
    assert match(matcher, *rows) == match(oracle, *rows)
    for each in (matcher, oracle):
        remove(each, *gone)
        each.add(wanted)
    assert match(matcher, *rows) == match(oracle, *rows)


def test_a_view_of_many_ranges_is_one_tree_and_survives_its_folder(tmp_path: Path) -> None:
    matcher, oracle = create_matcher("points"), Oracle()
    template = Template(
        "type = 'min' and outer_l < :x1 and inner_l >= :x1 and inner_r <= :x2 and outer_r > :x2"
    )
    random = np.random.default_rng(5)
    low, high = np.sort(random.integers(0, 30, (2, 500)), axis=0)
    rows = template.bind_many({"x1": low, "x2": high})
    for each in (matcher, oracle):
        each.add(ConjunctionBatch.of_rows(np.arange(500), rows))
        remove(each, *range(0, 500, 7))
    details = matcher.stats().details
    assert (details["shapes"], details["trees"]) == (1, 1)
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    asked: list[dict[str, object]] = [
        {"type": kind, "outer_l": a, "inner_l": b, "inner_r": c, "outer_r": d}
        for kind in ("min", "max")
        for a, b, c, d in random.integers(-1, 31, (20, 4)).tolist()
    ]
    assert match(opened, *asked) == match(matcher, *asked) == match(oracle, *asked)
    assert any(match(opened, *asked))


def test_shapes_beyond_the_limit_are_matched_too() -> None:
    matcher = create_matcher("points")
    count = MOST_SHAPES + 20
    add(matcher, *((i, parse_condition(f"a{i} > 3")) for i in range(count)))
    assert points_in(matcher) == MOST_SHAPES
    assert match(matcher, {f"a{i}": 4 for i in range(count)}) == [list(range(count))]
    remove(matcher, *range(50))
    add(matcher, *((i, parse_condition(f"a{i} > 3")) for i in range(50)))
    assert points_in(matcher) == MOST_SHAPES
    assert match(matcher, {f"a{i}": 4 for i in range(count)}) == [list(range(count))]


def test_many_different_equalities_are_as_many_trees() -> None:
    matcher = create_matcher("points")
    template, count = Template("symbol = :s and price > :p"), 5_000
    rows = template.bind_many({"s": [f"s{i}" for i in range(count)], "p": np.arange(count) % 10})
    matcher.add(ConjunctionBatch.of_rows(np.arange(count), rows))
    assert matcher.stats().details["trees"] == count
    assert match(matcher, {"symbol": "s12", "price": 3}, {"symbol": "s12", "price": 2}) == [[12], []]
    remove(matcher, *range(count))
    assert matcher.stats().details["trees"] == 0
