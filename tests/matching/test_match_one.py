"""One event at a time, in every index: the short way finds what a batch of one finds, whatever its buffers hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.matching.test_kernels import versions
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, create_matcher

INDEXES = ("dynamic", "counting", "opindex", "be-tree", "amkh", "k-index", "points")
WIDE = {f"w{i}": i for i in range(20)}  # as many attributes as an event needs to be written in one go


@pytest.fixture(params=INDEXES)
def matcher(request: pytest.FixtureRequest) -> Matcher:
    return create_matcher(request.param)


def filters(*texts: str, first: int = 0) -> ConjunctionBatch:
    return ConjunctionBatch.of((first + i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))


def check(matcher: Matcher, event: dict[str, Any]) -> list[int]:
    """Match an event alone, several times, so that its shape is known; return what a batch of one finds, too."""
    wanted: list[int] = matcher.match(EventBatch([event])).ids.tolist()
    for _ in range(4):
        assert matcher.match_one(event).tolist() == wanted
    return wanted


def test_more_matches_than_there_is_room_for(matcher: Matcher) -> None:
    count = 9_000
    batch = filters("a >= 1")
    group = batch.groups[0]
    ids = np.arange(count)
    matcher.add(ConjunctionBatch((type(group)(group.shape, ids, {}),)))
    assert matcher.match_one({"a": 1}).tolist() == ids.tolist()
    assert matcher.match_one({"a": 0}).tolist() == []


def test_an_answer_is_not_overwritten_by_the_next_event(matcher: Matcher) -> None:
    matcher.add(filters("a = 1", "a = 2"))
    first = matcher.match_one({"a": 1})
    assert matcher.match_one({"a": 2}).tolist() == [1]
    assert first.tolist() == [0]


def test_an_event_with_more_attributes_than_any_before(matcher: Matcher) -> None:
    matcher.add(filters(*(f"w{i} = {i}" for i in range(300))))
    for wide in (20, 300, 20):
        assert check(matcher, {f"w{i}": i for i in range(wide)}) == list(range(wide))


VALUES = [
    0,
    0.0,
    -0.0,
    -3,
    -1.5,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**64,
    -(2**70),
    1e308,
    float("-inf"),
]


@pytest.mark.parametrize("value", [*VALUES, True, "x", "ž", "2026-01-01T00:00:00Z"])
def test_a_value_of_any_kind_in_a_wide_event(matcher: Matcher, value: float | str) -> None:
    tests = (
        "a = 0",
        "a < 0",
        "a >= 0",
        "a > 9007199254740991",
        "a = 9007199254740993",
        "a = true",
        "a = 'x'",
    )
    matcher.add(filters(*tests, "a is present", "w3 = 3 and w19 >= 19", "w4 = 4 and w5 <= 5 and w6 > 5"))
    for event in ({**WIDE, "a": value}, {**WIDE, "a": value, "w3": 2.5}, {"a": value, **WIDE, "w4": "four"}):
        check(matcher, event)
    assert {8, 9} <= set(check(matcher, {**WIDE, "a": value}))


def test_the_shape_of_an_event_is_read_again_after_subscriptions_changed(matcher: Matcher) -> None:
    event = {**WIDE, "s": "text", "t": "other"}
    matcher.add(filters(*(f"w{i} = {i}" for i in range(6)), "s = 'text'"))
    assert check(matcher, event) == [*range(7)]
    matcher.add(filters("w9 = 9", "t = 'other'", first=7))
    assert check(matcher, event) == [*range(9)]
    matcher.add(filters("s starts with 'te'", "s >= 'text'", "s < timestamp '2026-01-01T00:00:00Z'", first=9))
    assert check(matcher, event) == [*range(11)]
    matcher.remove(np.array([0, 6, 9, 10, 11]))
    assert check(matcher, event) == [1, 2, 3, 4, 5, 7, 8]


def test_predicates_that_python_evaluates(matcher: Matcher) -> None:
    matcher.add(filters("a = 1 and b + c > 3", "a = 1", "b + c > 9"))
    assert matcher.match_one({"a": 1, "b": 2, "c": 2}).tolist() == [0, 1]
    assert matcher.match_one({"a": 1, "b": 5, "c": 5}).tolist() == [0, 1, 2]
    assert matcher.match_one({"a": 1}).tolist() == [1]


def test_many_events_one_by_one_between_changes(matcher: Matcher) -> None:
    random = np.random.default_rng(5)
    matcher.add(filters(*(f"a = {i % 20} and b >= {i % 30}" for i in range(800))))
    held = set(range(800))
    for i in range(300):
        if i % 50 == 0:
            matcher.remove(np.array([i, i + 1]))
            held -= {i, i + 1}
        a, b = int(random.integers(20)), int(random.integers(30))
        wanted = [n for n in range(a, 800, 20) if n in held and b >= n % 30]
        assert matcher.match_one({"a": a, "b": b, "c": 1.5}).tolist() == wanted


@pytest.mark.parametrize("name", ["opindex", "be-tree", "amkh", "k-index", "points"])
def test_the_kernel_of_a_single_event_is_compiled_once(name: str) -> None:
    versions(name)  # leaves compiled code behind, as in `test_kernels`
    counted = versions(name)
    package = f"tocsin.matching.{name.replace('-', '_')}._kernels."
    mine = {kernel: count for kernel, count in counted.items() if kernel.startswith(package)}
    assert sum(count for kernel, count in mine.items() if kernel.endswith(".match_event")) == 1
    assert {kernel: count for kernel, count in mine.items() if count > 1} == {}
