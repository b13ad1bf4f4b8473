"""The engine's own matcher: brute force at first, an index when there is work for one."""

from __future__ import annotations

import time
from threading import Event

import numpy as np
import pytest

from tocsin import Engine
from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, starting_matcher
from tocsin.matching.starting_matcher import Compiling, StartingMatcher
from tocsin.model.values import Value
from tocsin.structures import answering, jit
from tocsin.structures.background_compiler import compiler


def batch(first: int, count: int) -> ConjunctionBatch:
    texts = ((i, f"a = {i % 7} and b > {i % 5} or c like '%{i % 3}'") for i in range(first, first + count))
    return ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in texts)


EVENTS = EventBatch.of_dicts([{"a": i % 7, "b": i % 6, "c": f"x{i % 4}"} for i in range(40)])


def test_a_few_subscriptions_are_tried_one_by_one() -> None:
    matcher = StartingMatcher()
    matcher.add(batch(0, 10))
    matcher.match(EVENTS)
    assert isinstance(matcher.current, Oracle)


def test_many_subscriptions_go_into_the_index_with_the_earlier_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: True)
    matcher, oracle = StartingMatcher(max_stored=50), Oracle()
    for first, count in ((0, 10), (10, 30), (40, 100), (140, 10)):
        for each in (matcher, oracle):
            each.add(batch(first, count))
            each.remove(np.arange(first, first + count, 4))
        assert matcher.match(EVENTS).to_lists() == oracle.match(EVENTS).to_lists()
    assert type(matcher.current).__name__ == "Adaptive"
    assert matcher.stats().subscriptions == oracle.stats().subscriptions


def test_much_work_goes_to_the_index_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: True)
    matcher = StartingMatcher(max_tried=1000, max_few=0)
    matcher.add(batch(0, 10))
    expected = matcher.match(EVENTS).to_lists()
    assert matcher.match(EVENTS).to_lists() == expected
    assert type(matcher.current).__name__ == "Adaptive"


def test_clause_forms_are_kept_and_expanded_for_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: True)
    matcher = StartingMatcher(max_tried=1000, max_few=0)
    matcher.add(batch(0, 10))
    clauses = to_cnf(parse_condition("(a = 1 or b = 2) and (b > 1 or c = 'x1')"))
    matcher.add(ConjunctionBatch.of([(50, clauses)]))
    huge = to_cnf(parse_condition(" and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(20))))
    matcher.add(ConjunctionBatch.of([(51, huge)]))
    expected = matcher.match(EVENTS).to_lists()
    assert any(50 in ids for ids in expected)
    assert matcher.match(EVENTS).to_lists() == expected
    assert type(matcher.current).__name__ == "Adaptive"
    event = {f"{'ab'[i % 2]}{i}": 1 for i in range(20)}
    satisfied = EventBatch.of_dicts([event, event | {"b7": 2}])
    assert [51 in ids for ids in matcher.match(satisfied).to_lists()] == [True, False]


def test_cnfs_of_the_oracle_go_into_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: True)
    oracle = Oracle()
    clauses = to_cnf(parse_condition("(a = 1 or b = 2) and (b > 1 or c = 'x1')"))
    oracle.add(ConjunctionBatch.of([(50, clauses)]))
    expected = oracle.match(EVENTS).to_lists()
    matcher = StartingMatcher(oracle, max_stored=5)
    matcher.add(batch(0, 10))
    assert type(matcher.current).__name__ == "Adaptive"
    assert [[i for i in ids if i == 50] for ids in matcher.match(EVENTS).to_lists()] == expected


def test_brute_force_goes_on_while_the_index_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    finished = False

    def compile_slowly() -> None:
        while not finished:
            time.sleep(0.001)

    monkeypatch.delenv(answering.VARIABLE, raising=False)
    monkeypatch.setattr(starting_matcher, "_warm_up", compile_slowly)
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: False)
    matcher = StartingMatcher(max_tried=10, max_few=0)
    matcher.add(batch(0, 10))
    expected = matcher.match(EVENTS).to_lists()
    assert isinstance(matcher.current, Oracle)
    finished = True
    assert matcher._compiling is not None
    matcher._compiling.wait()
    assert matcher.match(EVENTS).to_lists() == expected
    assert type(matcher.current).__name__ == "Adaptive"


@pytest.mark.parametrize(("stored", "waits_after"), [(10, 100), (60, 4), (200, 0)])
def test_brute_force_ends_where_waiting_is_quicker(
    monkeypatch: pytest.MonkeyPatch, stored: int, waits_after: int
) -> None:
    """Up to 50 conjunctions never wait, up to 100 (with two each) until 500 are tried, and more wait at once."""
    finish = Event()
    warmed = []

    def compile_slowly() -> None:
        finish.wait(5) if compiler.is_own_thread() else warmed.append(1)

    monkeypatch.delenv(answering.VARIABLE, raising=False)
    monkeypatch.setattr(starting_matcher, "_NEVER_WAITS", 50)
    monkeypatch.setattr(starting_matcher, "_MOST_MEANWHILE", 300)
    monkeypatch.setattr(starting_matcher, "_TRIED_MEANWHILE", 500)
    monkeypatch.setattr(starting_matcher, "_warm_up", compile_slowly)
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: False)
    matcher, oracle = StartingMatcher(max_stored=10, max_few=0), Oracle()
    for each in (matcher, oracle):
        each.add(batch(0, stored))
    assert isinstance(matcher.current, Oracle) == (2 * stored <= 300)
    assert (matcher._compiling is not None) == (2 * stored <= 300)
    one: dict[str, Value] = {"a": 3, "b": 4, "c": "x1"}
    expected = oracle.match_one(one).tolist()
    for published in range(1, 20):
        assert matcher.match_one(one).tolist() == expected
        assert isinstance(matcher.current, Oracle) == (published <= waits_after)
    finish.set()
    if matcher._compiling is not None:
        matcher._compiling.wait()
        assert matcher.match_one(one).tolist() == expected
    assert type(matcher.current).__name__ == "Adaptive"
    assert bool(warmed) == (stored == 200)


def test_an_index_that_may_never_be_compiled_here_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = False
    monkeypatch.setattr(jit, "is_compiled_before", lambda _: compiled)
    matcher = StartingMatcher(max_stored=5, compiling=Compiling.NEVER)
    matcher.add(batch(0, 10))
    assert isinstance(matcher.current, Oracle)
    compiled = True
    matcher.add(batch(10, 1))
    assert type(matcher.current).__name__ == "Adaptive"


@pytest.mark.parametrize("name", ["oracle", "counting", "propagation-wp", "static", "dynamic", "adaptive"])
def test_an_engine_notifies_the_same_with_every_matcher(name: str) -> None:
    def notified(engine: Engine) -> list[tuple[str, str]]:
        engine.subscribe_many("a = :a and b > :b", {"a": [1, 2, 3], "b": [0, 1, 2]}, id="r{row}")
        engine.subscribe("from s where c like 'x%' and a is missing", id="pattern")
        events = [{"a": i % 4, "b": i % 3} for i in range(12)] + [{"c": "xyz"}, {"c": "yx"}]
        found = [
            (n.subscription, str(n.events[0].attributes)) for n in engine.publish_many(events, stream="s")
        ]
        engine.unsubscribe("r1")
        return found + [(n.subscription, "later") for n in engine.publish_many(events, stream="s")]

    assert notified(Engine(matcher=name)) == notified(Engine())
