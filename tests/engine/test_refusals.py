"""A refused subscription leaves the engine unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tocsin import Engine
from tocsin.engine import EventClock, ManualClock
from tocsin.errors import ApplyError, EventError, MatcherError, SubscriptionError, TocsinError
from tocsin.matching import ConjunctionBatch

TOO_LARGE = "(" + " or ".join(f"a{i} = 1" for i in range(2**16 + 1)) + ") and (c = 1 or d = 1)"
EVENT: dict[str, object] = {"a": 1, "b": 2, "c": 3}


@pytest.fixture(params=["oracle", "dynamic", "opindex", None])
def engine(request: pytest.FixtureRequest) -> Engine:
    made = Engine(matcher=request.param, clock=ManualClock(100))
    made.apply({"x": "a = 1", "y": "b = 2"})
    return made


def notified(engine: Engine) -> list[str]:
    return sorted(note.subscription for note in engine.publish(EVENT))


def refuse(engine: Engine, monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> None:
    """Let the engine's matcher fail half-way through its next batch."""
    add = engine._store.filters.matcher.add

    def failing(batch: ConjunctionBatch) -> None:
        add(ConjunctionBatch(batch.groups[:1], batch.clauses[:1]))
        raise fault

    monkeypatch.setattr(engine._store.filters.matcher, "add", failing)


CHANGES: list[Callable[[Engine], object]] = [
    lambda engine: engine.apply({"x": "c = 3", "z": "c = 3"}),
    lambda engine: engine.subscribe("c = 3", id="x", replace=True),
    lambda engine: engine.subscribe("c = 3", id="z", valid_until=200),
    lambda engine: engine.subscribe_many("c = :v", {"v": [3, 3], "n": ["x", "z"]}, id="n", replace=True),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fault", [MatcherError("it is too large"), MemoryError(), KeyboardInterrupt()])
def test_whatever_ends_a_change_nothing_has_changed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, change: Callable[[Engine], object], fault: BaseException
) -> None:
    before = list(engine.subscriptions()), engine.stats().generation
    with monkeypatch.context() as patch:
        refuse(engine, patch, fault)
        with pytest.raises(type(fault)):
            change(engine)
    assert (list(engine.subscriptions()), engine.stats().generation) == before
    assert engine.stats().matcher.subscriptions == 2
    assert (engine.owner("x"), engine.owner("y")) == ("default", "default")
    assert notified(engine) == ["x", "y"]
    change(engine)  # it can be tried again
    assert "x" in notified(engine)
    assert engine.stats().matcher.subscriptions == len(engine)


def test_a_form_too_large_for_the_index_changes_nothing() -> None:
    engine = Engine(matcher="opindex", clock=ManualClock(100))
    engine.apply({"x": "a = 1", "y": "b = 2"})
    with pytest.raises(MatcherError, match="65,536"):
        engine.apply({"x": TOO_LARGE, "z": "c = 3"})
    assert [held.id for held in engine.subscriptions()] == ["x", "y"]
    assert notified(engine) == ["x", "y"]
    with pytest.raises(MatcherError, match="65,536"):
        engine.subscribe(TOO_LARGE, id="x", replace=True)
    assert notified(engine) == ["x", "y"]
    assert engine.apply({"x": "a = 1", "z": "c = 3"}).added == ("z",)
    assert notified(engine) == ["x", "z"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"clock": EventClock}, r"`clock` is a clock such as `EventClock\(\)`, not EventClock, the class; write `EventClock\(\)`"),
        ({"clock": "system"}, r"`clock` is a clock such as `EventClock\(\)`, not str$"),
        ({"on_late": []}, "`on_late` is a function that takes an event, not list"),
        ({"memory_limit": "5 MB"}, "`memory_limit` is a number of bytes above 0, not '5 MB'"),
        ({"memory_limit": 0}, "`memory_limit` is a number of bytes above 0, not 0"),
        ({"threads": 0}, "`threads` is a number of threads from 1 on, not 0"),
        ({"threads": 2, "matcher": "opindex"}, "the matcher `opindex` matches with one thread; `adaptive` takes more"),
        ({"view_matcher": "ponts"}, "there is no matcher `ponts`; did you mean `points`"),
    ],
)  # fmt: skip
def test_an_argument_that_would_fail_later_is_refused_at_once(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(TocsinError, match=reason):
        Engine(**arguments)


def test_an_owner_is_a_string(engine: Engine) -> None:
    with pytest.raises(SubscriptionError, match="subscription `z`: an owner is a string, not 5"):
        engine.subscribe("c = 3", id="z", owner=5)  # type: ignore[arg-type]
    with pytest.raises(ApplyError, match=r"an owner is a string, not \[\]"):
        engine.apply({"z": "c = 3"}, owner=[])  # type: ignore[arg-type]


def test_an_error_does_not_name_an_id_that_nobody_gave() -> None:
    engine = Engine()
    with pytest.raises(SubscriptionError) as caught:
        engine.subscribe("select max(price) from table stock")
    assert (caught.value.id, str(caught.value).partition(";")[0]) == (None, "there is no table `stock`")
    with pytest.raises(SubscriptionError, match=r"^subscription `best`: there is no table `stock`"):
        engine.subscribe("select max(price) from table stock", id="best")


@pytest.mark.parametrize("name", [5, "\ud800", ["stock"]])
def test_what_is_no_name_of_a_stream_names_no_table_and_no_tick(name: Any) -> None:
    engine = Engine()
    with pytest.raises(EventError, match="a stream's name is a string of valid Unicode"):
        engine.table(name, key="symbol")
    with pytest.raises(EventError, match="a stream's name is a string of valid Unicode"):
        engine.stream(name, tick="1 second")


@pytest.mark.parametrize("key", [5, None, "", [], [5], ["symbol", ""], ["symbol", "symbol"]])
def test_what_is_no_key_of_a_table_is_refused(key: Any) -> None:
    with pytest.raises(TocsinError, match="the key of a table is an attribute's name, or several, not "):
        Engine().table("stock", key=key)
