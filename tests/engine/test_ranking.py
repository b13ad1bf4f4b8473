"""The best of an engine's subscriptions: the same with every matcher, in a fixed order, and only those in force."""

from __future__ import annotations

import pytest

from tocsin import Engine
from tocsin.engine import ManualClock
from tocsin.matching import registered_matchers
from tocsin.model.errors import MatcherError, SubscriptionError

MATCHERS = [None, *sorted(registered_matchers())]


@pytest.fixture(params=MATCHERS)
def engine(request: pytest.FixtureRequest) -> Engine:
    engine = Engine(matcher=request.param)
    engine.subscribe("age = 3 and state = 'NY'", id="c1", weight={"age": 0.25, "state": 4.0})
    engine.subscribe("age = 3 and gender = 'F'", id="c2", weight={"gender": 2.0})
    engine.subscribe("age in (3, 4)", id="c5")
    engine.subscribe("age = 3 or gender = 'F' and state != 'CA'", id="c7", weight=0.5)
    engine.subscribe("(age = 3 or gender = 'F') and (age = 3 or state = 'NY')", id="c8")
    engine.subscribe("age > 2 * height", id="c9", weight=0.75)
    engine.subscribe("from people where age >= 3", id="d0", weight=0.5)
    return engine


def test_the_best_come_first_and_equal_ones_by_id(engine: Engine) -> None:
    events: list[dict[str, object]] = [
        {"age": 3, "state": "NY", "gender": "F", "height": 1},
        {"age": 4},
        {},
        {"age": 3},
    ]
    found = engine.match(events, top=3, weights={"age": 2.0})
    assert list(found) == [("c1", "c2", "c5"), ("c5",), (), ("c5", "c8", "c7")]
    assert found.scores == (4.5, 4.0, 2.0, 2.0, 2.0, 2.0, 1.0)
    assert found.to_arrow().to_pylist()[0] == {"row": 0, "subscription": "c1", "score": 4.5}
    every = engine.match(events, top=99)
    assert list(map(sorted, every)) == list(map(sorted, engine.match(events)))


def test_rows_may_have_weights_of_their_own(engine: Engine) -> None:
    event: dict[str, object] = {"age": 3, "state": "NY", "gender": "F"}
    found = engine.match([event, event], top=1, weights=[{"gender": 9.0}, {"state": 9.0}])
    assert list(found) == [("c2",), ("c1",)]
    with pytest.raises(MatcherError, match="the weights of 1 events"):
        engine.match([event], top=1, weights=[{}, {}])
    with pytest.raises(MatcherError, match="1 or more, not 0"):
        engine.match([event], top=0)


def test_an_unreadable_event_has_no_top_k(engine: Engine) -> None:
    found = engine.match([{"age": "\ud800"}, {"age": 4}], top=1)
    assert (list(found), len(found.faults)) == ([(), ("c5",)], 1)


def test_the_stream_adds_no_score(engine: Engine) -> None:
    found = engine.match([{"age": 5}], stream="people", top=2)
    assert (list(found), found.scores) == ([("d0",)], (0.5,))


def test_only_the_top_k_are_notified(engine: Engine) -> None:
    notes = engine.publish({"age": 3, "state": "NY"}, top=2, weights={"age": 4.0})
    assert [(note.subscription, note.score) for note in notes] == [("c1", 5.0), ("c5", 4.0)]
    many = engine.publish_many([{"age": 3, "state": "NY"}, {"age": 4}], top=1)
    assert [(note.subscription, note.score) for note in many] == [("c1", 4.25), ("c5", 1.0)]
    assert [note.score for note in engine.publish({"age": 4})] == [None]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_one_that_is_not_in_force_takes_nobodys_place(matcher: str | None) -> None:
    engine = Engine(matcher=matcher, clock=ManualClock(10))
    engine.subscribe("a = 1", id="later", weight=9.0, valid_from=20)
    engine.subscribe("a = 1", id="now", weight=2.0)
    assert list(engine.match([{"a": 1}], top=1)) == [("now",)]
    assert [note.subscription for note in engine.publish({"a": 1}, time=25, top=1)] == ["later"]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_templates_rows_and_equal_scores(matcher: str | None) -> None:
    engine = Engine(matcher=matcher)
    rows = {"x": list(range(40)), "y": [i % 3 for i in range(40)]}
    engine.subscribe_many("(a >= :x or b = :y) and a >= :y", rows, id="r{row}", weight=1.5)
    found = engine.match([{"a": 7, "b": 1}], top=4)
    assert (list(found), found.scores) == ([("r0", "r1", "r10", "r13")], (3.0,) * 4)


def test_weights_are_kept_compared_and_checked() -> None:
    engine = Engine()
    engine.apply({"a": "x = 1"})
    engine.subscribe("x = 1", id="b", weight={"x": 3.0}, owner="me")
    assert [one.weight for one in engine.subscriptions()] == [1.0, {"x": 3.0}]
    (held,) = engine.subscriptions(owner="me")
    assert engine.apply([held], owner="me", dry_run=True).unchanged == ("b",)
    engine.subscribe("x = 1", id="b", replace=True)
    assert list(engine.match([{"x": 1}], top=1)) == [("a",)]
    with pytest.raises(SubscriptionError, match="subscription `c`: a weight is a finite number, 0 or more"):
        engine.subscribe("x = 1", id="c", weight=-1.0)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_templates_constants_are_computed_before_it_is_scored(matcher: str | None) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe_many(":x + 1 < a and b = :x", {"x": [1, 2, 3]}, id="r{row}", weight={"a": 3.0})
    found = engine.match([{"a": 9, "b": 2}], top=3)
    assert (list(found), found.scores) == ([("r1",)], (4.0,))


@pytest.mark.parametrize("matcher", [None, "k-index"])
def test_later_changes_of_a_mapping_do_not_reach_the_engine(matcher: str | None) -> None:
    engine, weight = Engine(matcher=matcher), {"a": 2.0}
    engine.subscribe("a = 1", id="x", weight=weight)
    weight["a"] = 5.0
    (held,) = engine.subscriptions()
    held.weight["a"] = 7.0  # type: ignore[index]
    assert engine.match([{"a": 1}], top=1).scores == (2.0,)
    assert [note.score for note in engine.publish({"a": 1}, top=1)] == [2.0]


def test_very_many_equal_scores_are_ordered_by_id() -> None:
    engine = Engine(matcher="k-index")
    engine.subscribe_many("a = 1 and b >= :x", {"x": [i % 3 for i in range(500)]}, id="r{row}")
    engine.subscribe("a = 1", id="best", weight=3.0)
    events: list[dict[str, object]] = [{"a": 1, "b": 5}, {"a": 1}, {"a": 1, "b": 5, "$delete": True}]
    found = engine.match(events, top=3)
    assert (list(found), found.scores) == ([("best", "r0", "r1"), ("best",), ()], (3.0, 2.0, 2.0, 3.0))


def test_weights_without_top_are_refused() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id="one")
    with pytest.raises(MatcherError, match="say with `top` how many"):
        engine.match([{"a": 1}], weights={"a": 2.0})
    with pytest.raises(MatcherError, match="say with `top` how many"):
        engine.publish({"a": 1}, weights={"a": 2.0})
    with pytest.raises(MatcherError, match="say with `top` how many"):
        list(engine.publish_many([{"a": 1}], weights={"a": 2.0}))
