"""What the adaptive matcher does with large conjunctions and lists, saved state, and events that change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.matching.adaptive.invariants import check_invariants
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, Oracle, open_matcher, save_matcher
from tocsin.matching.adaptive import matcher as adaptive
from tocsin.matching.adaptive.matcher import EAGER, Adaptive
from tocsin.matching.adaptive.state import Total


def add(texts: list[str], *matchers: Matcher) -> None:
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    for matcher in matchers:
        matcher.add(batch)


def test_wide_conjunctions_are_recalled_after_opening(tmp_path: Path) -> None:
    matcher = Adaptive()
    add([" and ".join(f"a{i} = {i}" for i in range(500)), "a1 = 1"], matcher)
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    opened.remove(np.array([0]))
    assert opened.match(EventBatch.of_dicts([{f"a{i}": i for i in range(500)}])).to_lists() == [[1]]
    assert opened.stats().predicates == 1


def test_an_opened_matcher_does_not_plan_again_for_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = Adaptive()
    rows = Template("a = :x and b = :y").bind_many({"x": np.arange(5_000) % 70, "y": np.arange(5_000) % 60})
    matcher.add(ConjunctionBatch.of_rows(np.arange(5_000), rows))
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(adaptive, "plan", fail)
    add(["a = 1 and b = 2"], opened)
    assert opened.stats().conjunctions == 5_001


def test_a_long_list_moves_to_another_access_path_and_back() -> None:
    matcher, oracle = Adaptive(thresholds=EAGER), Oracle()
    members = ", ".join(map(str, range(6_000)))
    texts = [f"a in ({members}) and b = {i}" for i in range(3)] + [f"b = {i} and c = 1" for i in range(100)]
    add(texts, matcher, oracle)
    random = np.random.default_rng(2)
    for a, b in (("a", "b"), ("b", "a"), ("a", "b")):  # now the one, now the other is the rare attribute
        for _ in range(6):
            rows = [
                {
                    a: int(random.integers(0, 12_000)),
                    **({b: int(random.integers(0, 4))} if i % 30 == 0 else {}),
                }
                for i in range(90)
            ]
            events = EventBatch.of_dicts(rows)
            assert matcher.match(events).to_lists() == oracle.match(EventBatch.of_dicts(rows)).to_lists()
            check_invariants(matcher)


def checks_of(matcher: Adaptive, events: list[dict[str, object]]) -> float:
    """Return how many conjunctions were checked for each event."""
    totals = matcher._state.totals
    checks, counted = totals[Total.CHECKS], totals[Total.COUNTED]
    matcher.match(EventBatch.of_dicts(events))
    return float(totals[Total.CHECKS] - checks) / float(totals[Total.COUNTED] - counted)


def test_an_attribute_that_becomes_frequent_is_left_for_a_rarer_one() -> None:
    matcher, random = Adaptive(), np.random.default_rng(4)
    rows = Template("a = :x and b = :y").bind_many(
        {"x": random.integers(0, 100, 1_500), "y": random.integers(0, 100, 1_500)}
    )
    matcher.add(ConjunctionBatch.of_rows(np.arange(1_500), rows))

    def events(rare: str, hot: str) -> list[dict[str, object]]:
        """Return events of which one in fifty has the rare attribute, and all have a few values of the other."""
        return [
            {hot: int(random.integers(0, 3)), **({rare: int(random.integers(0, 100))} if i % 50 == 0 else {})}
            for i in range(1_000)
        ]

    for rare, hot in (("a", "b"), ("b", "a")):
        checks = [checks_of(matcher, events(rare, hot)) for _ in range(40)]
        assert checks[0] > 2.0 > checks[-1]
    check_invariants(matcher)


def test_narrow_ranges_are_put_into_sections_and_few_are_checked() -> None:
    matcher, oracle = Adaptive(), Oracle()
    random = np.random.default_rng(3)
    low = random.random(6_000) * 100
    rows = Template("p between :p and :q").bind_many({"p": low, "q": low + 0.05})
    batch = ConjunctionBatch.of_rows(np.arange(6_000), rows)
    matcher.add(batch)
    oracle.add(batch)
    checks = [checks_of(matcher, [{"p": float(p)} for p in random.random(500) * 100]) for _ in range(8)]
    assert matcher.stats().details["divided clusters"] == 1
    assert checks[-1] < 100
    some = [{"p": float(p)} for p in random.random(20) * 100]
    assert (
        matcher.match(EventBatch.of_dicts(some)).to_lists()
        == oracle.match(EventBatch.of_dicts(some)).to_lists()
    )
