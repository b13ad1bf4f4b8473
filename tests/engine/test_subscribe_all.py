from __future__ import annotations

import pytest

from tocsin import Engine
from tocsin.engine import bulk_subscriptions
from tocsin.language import parse
from tocsin.model import Subscription
from tocsin.model.errors import LanguageError, SubscriptionError, TocsinError


def subscribed_one_by_one(engine: Engine, subscriptions: list[Subscription]) -> dict[int, str]:
    """Subscribe by `subscribe`, and return the errors by position."""
    errors = {}
    for position, one in enumerate(subscriptions):
        try:
            engine.subscribe(
                one.query,
                id=one.id,
                valid_from=one.valid_from,
                valid_until=one.valid_until,
                weight=one.weight,
            )
        except TocsinError as error:
            errors[position] = str(error)
    return errors


TEXTS = [
    "symbol = 'A' and price > 1",
    "symbol = 'B' and price > 2.5",
    "symbol = 'C' and price > 9007199254740993",
    "from trades where symbol = 'A' and price > -3",
    "from trades where symbol = 'it''s' and price > 1e300",
    "price >",
    "price between 5 and 3",
    "symbol = 'A' or price > 2",
    "select price * 2 as twice from trades where symbol = 'A'",
    "from trades a next trades b on b.price > a.price",
    "not (symbol = 'A' and price > 5) and volume in (1, 2)",
    " and ".join(f"(a{i} = 1 or b{i} = 2)" for i in range(30)),
    "symbol != 'A'",
    "symbol = 'B' and price > 2.5",
]
EVENTS = [
    {"symbol": symbol, "price": price, "volume": 1}
    for symbol in ("A", "B", "C", "it's")
    for price in (-2, 1, 2.6, 9007199254740992, 9007199254740993, 9007199254740994, 1e301)
]


@pytest.mark.parametrize("together", [1, 3, 10_000])
@pytest.mark.parametrize("matcher", [None, "dynamic"])
def test_many_are_stored_as_if_one_by_one(
    together: int, matcher: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.engine.engine.TOGETHER", together)
    texts = [Subscription(f"s{i}", text) for i, text in enumerate(TEXTS * 3)]  # type: ignore[arg-type]
    texts.insert(4, texts[2])
    texts.insert(9, Subscription("", "a = 1"))  # type: ignore[arg-type]
    one_by_one, at_once = Engine(matcher=matcher), Engine(matcher=matcher)
    errors = subscribed_one_by_one(one_by_one, texts)
    done = at_once.subscribe_all(texts)
    assert {position: str(error) for position, error in done.errors.items()} == errors
    assert list(at_once.subscriptions()) == list(one_by_one.subscriptions())
    assert [one.id for one in at_once.subscriptions()] == list(done.ids)
    for time, event in enumerate(EVENTS):
        found = at_once.publish(event, stream="trades", time=time, id=str(time))
        expected = one_by_one.publish(event, stream="trades", time=time, id=str(time))
        assert [(note.subscription, note.values) for note in found] == [
            (note.subscription, note.values) for note in expected
        ]
    assert at_once.stats().matcher.conjunctions == one_by_one.stats().matcher.conjunctions


def test_errors_keep_their_kind_and_warnings_their_subscription() -> None:
    done = Engine().subscribe_all({"a": "price >", "b": "price = 1 and price = 2", "c": "price = 1"})
    assert done.ids == ("b", "c")
    assert isinstance(done.errors[0], LanguageError)
    assert done.warnings == {
        "b": ("it can never match: no value of price satisfies `price = 1 and price = 2`",)
    }


def test_an_id_that_is_subscribed_is_refused_or_replaced() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id="x")
    done = engine.subscribe_all({"x": "a = 2", "y": "a = 2"}, owner="me")
    assert (done.ids, list(done.errors)) == (("y",), [0])
    assert isinstance(done.errors[0], SubscriptionError)
    assert "set `replace`" in str(done.errors[0])
    twice = [Subscription("x", parse("a = 3")), Subscription("x", parse("a = 4"))]
    assert engine.subscribe_all(twice, replace=True).errors == {}
    assert {one.id: one.query for one in engine.subscriptions()} == {"x": parse("a = 4"), "y": parse("a = 2")}
    assert engine.owner("y") == "me"


def test_a_runtime_that_refuses_one_does_not_stop_the_others() -> None:
    engine = Engine()
    engine.table("stock", key="symbol")
    done = engine.subscribe_all(
        {
            "filter": "price > 1",
            "no table": "select min(price) from table nowhere",
            "view": "select min(price) from table stock",
            "other": "price > 2",
        }
    )
    assert (done.ids, list(done.errors)) == (("filter", "view", "other"), [1])
    assert [note.subscription for note in done.notifications] == ["view"]
    notes = engine.publish({"symbol": "A", "price": 3}, stream="stock")
    assert [note.subscription for note in notes] == ["filter", "other", "view"]


def test_new_filters_meet_the_kept_events() -> None:
    engine = Engine()
    engine.publish({"a": 2}, time=1, valid_until=2**60)
    done = engine.subscribe_all({f"s{i}": f"a = {i}" for i in range(5)})
    assert [note.subscription for note in done.notifications] == ["s2"]


def test_subscriptions_are_stored_in_parts() -> None:
    count = 2 * bulk_subscriptions.TOGETHER + 5
    engine = Engine()
    done = engine.subscribe_all({f"s{i}": f"a = {i} and b > {i % 7}.5" for i in range(count)})
    assert (len(done.ids), len(engine)) == (count, count)
    engine.unsubscribe("s20001")
    assert [note.subscription for note in engine.publish({"a": 20003, "b": 9})] == ["s20003"]
    assert engine.publish({"a": 20001, "b": 9}) == []
