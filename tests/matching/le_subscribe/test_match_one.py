"""One event at a time: the short way finds what a batch of one finds, whatever its buffers hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, create_matcher, open_matcher, save_matcher
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe.dynamic import Dynamic
from tocsin.matching.le_subscribe.static import Static
from tocsin.structures.chunked_lists import LARGEST


def filters(*texts: str) -> ConjunctionBatch:
    return ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))


def test_more_matches_than_there_was_room_for() -> None:
    matcher, count = Dynamic(), 40 * LARGEST
    matcher.add(filters(*["a = 1"] * count))
    assert matcher.match_one({"a": 1}).tolist() == list(range(count))
    assert matcher.match_one({"a": 2}).tolist() == []


def test_results_are_not_overwritten_by_the_next_event() -> None:
    matcher = Dynamic()
    matcher.add(filters("a = 1", "a = 2"))
    first = matcher.match_one({"a": 1})
    matcher.match_one({"a": 2})
    assert first.tolist() == [0]


def test_an_event_with_more_attributes_than_the_buffer_has_pairs() -> None:
    matcher = Dynamic()
    matcher.add(filters(*[f"a{i} = {i}" for i in range(200)]))
    assert matcher.match_one({f"a{i}": i for i in range(200)}).tolist() == list(range(200))
    assert matcher.match_one({"a7": 7}).tolist() == [7]


NUMBERS = [0, 0.0, -0.0, -1, -1.5, 2**53, 2**53 + 1, -(2**70), 1e308, float("inf")]


@pytest.mark.parametrize("value", [*NUMBERS, True, "x", "ž", "2026-01-01T00:00:00Z"])
def test_a_value_of_any_kind_is_encoded_as_in_a_batch(value: float | str) -> None:
    matcher = Dynamic()
    tests = ("a = 0", "a < 0", "a >= 0", "a > 9007199254740991", "a = true", "a = 'x'", "a is present")
    matcher.add(filters(*tests, "a >= 'x'", "a starts with 'x'", "a < timestamp '2026-02-01T00:00:00Z'"))
    for removed in ([], [7], [8], [9]):
        matcher.remove(np.array(removed, dtype=np.int64))
        wanted = matcher.match(EventBatch([{"a": value, "b": 1}])).ids
        assert matcher.match_one({"a": value, "b": 1}).tolist() == wanted.tolist()


def test_residual_predicates_are_evaluated() -> None:
    matcher = Dynamic()
    matcher.add(filters("a = 1 and b + c > 3", "a = 1", "b + c > 9"))
    assert matcher.match_one({"a": 1, "b": 2, "c": 2}).tolist() == [0, 1]
    assert matcher.match_one({"a": 1, "b": 5, "c": 5}).tolist() == [0, 1, 2]
    assert matcher.match_one({"a": 1}).tolist() == [1]


def test_attributes_that_another_matcher_has_added_to_the_vocabulary() -> None:
    vocabulary = Vocabulary()
    matcher, other = Dynamic(vocabulary=vocabulary), Dynamic(vocabulary=vocabulary)
    matcher.add(filters("a = 1"))
    other.add(filters(*[f"b{i} = 1" for i in range(500)]))
    assert matcher.match_one({"a": 1, **{f"b{i}": 1 for i in range(500)}}).tolist() == [0]


def test_tables_are_made_for_events_that_come_one_by_one() -> None:
    matcher = Dynamic(costs={"create": 0.001}, adaptive=False)
    matcher.add(filters(*[f"a = {i % 20} and b = {i % 30}" for i in range(3_000)]))
    assert matcher.rounds == 0
    matcher.adaptive = True
    for i in range(2_000):
        matcher.match_one({"a": i % 20, "b": i % 30})
    assert matcher.rounds > 0
    assert matcher.stats().details["tables"] > 0


def test_the_static_matcher_clusters_before_the_first_event() -> None:
    matcher = Static()
    matcher.add(filters(*[f"a = {i % 20} and b = {i % 30}" for i in range(100)]))
    assert matcher.match_one({"a": 3, "b": 3}).tolist() == [3, 63]
    assert matcher._clustered == 100


@pytest.mark.parametrize("name", ["dynamic", "static", "propagation", "counting"])
def test_a_matcher_that_was_saved_and_opened_matches_one_event_before_and_after_it_grows(
    name: str, tmp_path: Path
) -> None:
    matcher = create_matcher(name)
    matcher.add(filters(*[f"a = {i} and b > {i % 7}" for i in range(300)]))
    save_matcher(matcher, tmp_path / "saved")
    opened = open_matcher(tmp_path / "saved")
    assert opened.match_one({"a": 5, "b": 9}).tolist() == [5]
    more = ConjunctionBatch.of((i, to_dnf(parse_condition(f"c = {i}"))) for i in range(1_000, 3_000))
    opened.add(more)
    assert opened.match_one({"a": 5, "b": 9, "c": 2_999}).tolist() == [5, 2_999]
