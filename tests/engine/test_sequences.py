"""Sequences in the engine: notifications, their beginning, and their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tocsin import Engine, Event, Subscription, parse
from tocsin.engine import EventClock
from tocsin.errors import ApplyError, LanguageError, SubscriptionError, TemplateError
from tocsin.formats import Fault
from tocsin.language import to_text
from tocsin.model import Notification

JUMP = "from stock a next stock b on b.name = a.name where b.price > 1.05 * a.price"
FALL = "from stock a fold stock b on b.name = a.name while b.price < last.price compute low = min(price)"


def engine(**options: Any) -> Engine:
    return Engine(clock=EventClock(), **options)


def stock(end: int, name: str, price: float, *, stream: str = "stock") -> Event:
    return Event(f"e{end}{name}", {"name": name, "price": price}, stream, end, end)


def summary(notes: Iterable[Notification]) -> list[tuple[str, tuple[str, ...]]]:
    return [(note.subscription, note.event_ids) for note in notes]


def test_a_sequence_is_notified_with_its_events_values_and_witness() -> None:
    made = engine()
    made.subscribe(FALL + " where duration >= 3", id="fall", witness="full")
    made.subscribe(JUMP + " select b.price / a.price as rise", id="jump")
    events = [stock(end, "IBM", price) for end, price in enumerate([100, 95, 90])]
    (note,) = made.publish_many(events)
    assert note.event_ids == ("e0IBM", "e1IBM", "e2IBM")
    assert [event.attributes["price"] for event in note.events] == [100, 95, 90]
    assert (note.start, note.end, note.values) == (0, 2, {"low": 90})
    assert note.witness is not None
    assert [(step.alias, step.first, step.last, step.chain) for step in note.witness] == [
        ("a", "e0IBM", "e0IBM", ("e0IBM",)),
        ("b", "e1IBM", "e2IBM", ("e1IBM", "e2IBM")),
    ]
    (rise,) = made.publish(stock(3, "IBM", 99))
    assert (rise.subscription, rise.event_ids, rise.values) == ("jump", ("e2IBM", "e3IBM"), {"rise": 1.1})
    assert rise.witness is not None
    assert rise.witness[0].chain is None


def test_filters_are_notified_before_the_sequences_that_an_event_completes() -> None:
    made = engine()
    made.subscribe(JUMP, id="jump")
    made.subscribe("price > 0", id="all")
    events = [stock(1, "A", 1), stock(2, "A", 2), stock(3, "A", 3)]
    one_by_one = [note for event in events for note in made.publish(event)]
    assert summary(one_by_one) == [
        ("all", ("e1A",)),
        ("all", ("e2A",)),
        ("jump", ("e1A", "e2A")),
        ("all", ("e3A",)),
        ("jump", ("e2A", "e3A")),
    ]
    again = engine()
    again.subscribe(JUMP, id="jump")
    again.subscribe("price > 0", id="all")
    assert summary(again.publish_many(events)) == summary(one_by_one)
    assert again.stats().notifications == 5


def test_apublish_notifies_sequences_too() -> None:
    made = engine()
    made.subscribe(JUMP, id="jump")

    async def run() -> list[Notification]:
        await made.apublish(stock(1, "A", 1))
        return await made.apublish(stock(2, "A", 2))

    assert summary(asyncio.run(run())) == [("jump", ("e1A", "e2A"))]


def test_a_sequence_sees_only_events_that_end_after_all_that_had_come() -> None:
    made = engine()
    made.subscribe("from other x next stock b", id="unrelated")
    made.publish(stock(5, "A", 1))
    made.subscribe(JUMP, id="jump")
    assert made.publish(stock(5, "A", 1)) == []
    assert made.publish(stock(6, "A", 2)) == []  # neither event of 5 was seen
    assert summary(made.publish(stock(7, "A", 3))) == [("jump", ("e6A", "e7A"))]


def test_it_does_not_see_events_that_ended_when_nobody_read_its_stream() -> None:
    made = engine()
    made.publish(stock(9, "A", 1))  # no sequence reads any stream yet
    made.subscribe(JUMP, id="jump")
    assert [made.publish(stock(end, "A", end)) for end in (9, 10)] == [[], []]
    assert summary(made.publish(stock(11, "A", 20))) == [("jump", ("e10A", "e11A"))]


def test_kept_events_and_deletions_do_not_reach_sequences() -> None:
    made = engine()
    made.publish({"name": "A", "price": 1}, stream="stock", time=1, valid_until=100)
    assert made.subscribe(JUMP, id="jump").notifications == ()
    made.publish(stock(2, "A", 1))
    assert made.publish({"name": "A", "price": 5}, stream="stock", time=3, delete=True) == []
    assert made.publish({"name": "A", "price": 5, "$delete": True}, stream="stock", time=3) == []
    assert summary(made.publish(stock(4, "A", 2))) == [("jump", ("e2A", "e4A"))]


def test_subscriptions_are_listed_replaced_and_withdrawn_like_filters() -> None:
    made = engine()
    made.subscribe(JUMP, id="s", owner="ann", witness="full")
    made.subscribe("price > 100", id="f", owner="ann")
    assert list(made.subscriptions(owner="ann")) == [
        Subscription("s", parse(JUMP), witness="full"),
        Subscription("f", parse("price > 100")),
    ]
    assert (len(made), "s" in made, made.owner("s"), made.stats().sequences.subscriptions) == (
        2,
        True,
        "ann",
        1,
    )
    with pytest.raises(SubscriptionError, match="it is subscribed already"):
        made.subscribe(JUMP, id="s")
    made.publish(stock(1, "A", 1))
    made.subscribe("from stock a next stock b", id="s", replace=True)
    assert made.publish(stock(2, "A", 2)) == []  # what the first had begun is gone with it
    assert summary(made.publish(stock(3, "A", 1))) == [("s", ("e2A", "e3A"))]
    made.subscribe("price = 1", id="s", replace=True)  # a filter in a sequence's place
    assert summary(made.publish(stock(4, "A", 1))) == [("s", ("e4A",))]
    assert made.stats().sequences.subscriptions == 0
    made.unsubscribe("s")
    assert made.publish(stock(5, "A", 1)) == []


def test_apply_takes_filters_and_sequences_all_or_nothing() -> None:
    made = engine()
    first = made.apply({"s": JUMP, "f": "price > 100"}, owner="ann")
    assert first.added == ("s", "f")
    assert not made.apply({"s": JUMP, "f": "price > 100"}, owner="ann")
    with pytest.raises(ApplyError) as caught:
        made.apply(
            {"s": JUMP, "v": "select min(p) from table t", "w": "from a x within 0.5 microseconds"},
            owner="ann",
        )
    assert [error.id for error in caught.value.errors] == ["v", "w"]
    changed = made.apply([Subscription("s", parse(JUMP), witness="full")], owner="ann")
    assert (changed.changed, changed.removed) == (("s",), ("f",))
    assert made.apply([Subscription("s", parse(JUMP), witness="full")], owner="ann").unchanged == ("s",)


def test_validity_is_of_the_first_event_and_of_the_whole() -> None:
    made = engine()
    made.subscribe("from stock a next stock b", id="x", valid_from=10, valid_until=20)
    ends = [8, 9, 10, 12, 19, 20, 21]
    notes = [note for end in ends for note in made.publish(stock(end, "A", 1))]
    assert [(note.start, note.end) for note in notes] == [(10, 12), (12, 19)]
    assert "x" not in made
    assert made.stats().expired == 1


def test_validity_in_one_batch_is_as_one_by_one() -> None:
    made = engine()
    made.subscribe("from stock a next stock b", id="x", valid_from=10, valid_until=20)
    made.subscribe("from stock a next stock b", id="y", valid_until=10)
    notes = list(made.publish_many([stock(end, "A", 1) for end in (8, 9, 10, 12, 19, 20, 21)]))
    assert [(note.subscription, note.start, note.end) for note in notes] == [
        ("y", 8, 9),
        ("x", 10, 12),
        ("x", 12, 19),
    ]


def test_a_sequence_that_has_not_begun_can_be_removed_and_its_number_reused() -> None:
    made = engine()
    made.publish(stock(1, "A", 1))
    made.subscribe("from stock a next stock b", id="x", valid_from=10)
    made.unsubscribe("x")
    made.subscribe("from stock a next stock b", id="y", valid_from=12)
    notes = list(made.publish_many([stock(end, "A", 1) for end in (10, 11, 12, 13)]))
    assert [(note.subscription, note.start) for note in notes] == [("y", 12)]


def test_filters_on_a_published_name_are_notified_in_the_same_call_and_bare_conditions_are_not() -> None:
    made = engine()
    made.subscribe(JUMP + " select b.name, b.price publish as jumps", id="publisher")
    made.subscribe("from jumps where price > 1", id="of-jumps")
    made.subscribe("price > 1", id="bare")
    made.subscribe("from jumps j next jumps k on k.name = j.name", id="twice")
    made.publish(stock(1, "A", 1))
    assert summary(made.publish(stock(2, "A", 2))) == [
        ("bare", ("e2A",)),
        ("publisher", ("e1A", "e2A")),
        ("of-jumps", ("jumps(e1A,e2A)",)),
    ]
    again = engine()
    for held in made.subscriptions():
        again.subscribe(held.query, id=held.id)
    batch = [stock(1, "A", 1), stock(2, "A", 2), stock(3, "A", 3)]
    assert [note.subscription for note in again.publish_many(batch)] == ["bare", "publisher", "of-jumps"] * 2
    subscribers = [note.subscription for note in made.publish(stock(3, "A", 3))]
    assert subscribers.count("twice") == 0  # its second event starts at 2, when the first ended
    made.publish(stock(4, "A", 3))
    subscribers = [note.subscription for note in made.publish(stock(5, "A", 9))]
    assert subscribers == ["bare", "publisher", "twice", "twice", "of-jumps"]


def test_a_cycle_of_published_names_is_refused_and_changes_nothing() -> None:
    made = engine()
    made.subscribe("from s a publish as t", id="one")
    with pytest.raises(SubscriptionError, match="`two`: publishing as `s` closes a cycle"):
        made.subscribe("from t a publish as s", id="two")
    with pytest.raises(SubscriptionError, match="closes a cycle"):
        made.subscribe("from s a next u b publish as s", id="self")
    assert [held.id for held in made.subscriptions()] == ["one"]
    made.subscribe("from s a publish as u", id="one", replace=True)
    made.subscribe("from t a publish as s", id="two")
    with pytest.raises(SubscriptionError, match="closes a cycle"):
        made.subscribe("from s a publish as t", id="one", replace=True)
    made.publish(Event("x", {}, "t", 1, 1))
    assert sorted(note.subscription for note in made.publish(Event("y", {}, "t", 2, 2))) == ["one", "two"]


def test_a_cycle_is_refused_by_a_test_too() -> None:
    with pytest.raises(SubscriptionError, match="closes a cycle"):
        engine().test("from s a publish as s", [Event("x", {}, "s", 1, 1)])


def test_published_events_have_only_valid_attribute_names() -> None:
    made = engine()
    for text in (
        'from stock a select a.name as "$stream" publish as t',
        'from stock a compute "$stream" = 1 publish as t',
        'from (from stock a next stock b select a.name as "$stream") x next stock c',
    ):
        with pytest.raises(
            SubscriptionError,
            match=r"which cannot have an attribute `\$stream`; select it under another name",
        ):
            made.subscribe(text, id="x")
    assert len(made) == 0


BAD: list[tuple[str, type[Exception], str]] = [
    ("from stock a next stock b on c.price > 1", LanguageError, "c"),
    ("from stock a within 0.5 microseconds", SubscriptionError, "`bad`: .*no whole number of ticks"),
    ("from stock a next stock b on b.price > :p", LanguageError, "parameter"),
]


@pytest.mark.parametrize(("text", "kind", "words"), BAD)
def test_a_refused_subscription_leaves_the_others_alone(text: str, kind: type[Exception], words: str) -> None:
    made = engine()
    made.subscribe(JUMP, id="jump")
    made.publish(stock(1, "A", 1))
    with pytest.raises(kind, match=words):
        made.subscribe(text, id="bad")
    assert summary(made.publish(stock(2, "A", 2))) == [("jump", ("e1A", "e2A"))]


def test_a_bad_event_in_a_batch_loses_nothing_else() -> None:
    made = engine()
    made.subscribe(JUMP, id="jump")
    faults: list[Fault] = []
    events = [
        stock(1, "A", 1),
        {"name": "A", "price": "\ud800"},
        Event("bad", {"$stream": "stock"}, "stock", 1, 1),
        stock(2, "A", 2),
    ]
    assert summary(made.publish_many(events, on_error=faults.append)) == [("jump", ("e1A", "e2A"))]
    assert len(faults) == made.stats().refused == 2


def test_templates_make_a_sequence_of_each_row() -> None:
    made = engine()
    rows = {"n": ["A", "B", None, "A"], "f": [2, 3, 4, 10], "w": [5, 5, 5, 5]}
    text = "from stock a where a.name = :n next stock b on b.name = a.name where b.price > :f * a.price within :w"
    done = made.subscribe_many(text, rows, id="{n}-{f}", witness="full")
    assert done.ids == ("A-2", "B-3", "A-10")
    assert [error.row for error in done.errors] == [2]
    for name in ("A", "B"):
        made.publish(stock(1, name, 1))
    notes = list(made.publish_many([stock(2, "A", 3), stock(3, "B", 3), stock(4, "B", 10)]))
    assert summary(notes) == [("A-2", ("e1A", "e2A")), ("B-3", ("e3B", "e4B"))]
    assert [one.query for one in made.subscriptions() if one.id == "A-10"] == [
        parse(
            "from stock a where a.name = 'A' next stock b on b.name = a.name where b.price > 10 * a.price within 5"
        )
    ]
    with pytest.raises(SubscriptionError, match="`B-3`: it is subscribed already"):
        made.subscribe_many(text, {"n": ["B"], "f": [3], "w": [5]}, id="{n}-{f}")
    made.subscribe_many(text, {"n": ["B"], "f": [3], "w": [5]}, id="{n}-{f}", replace=True)
    made.unsubscribe("A-2")
    assert (len(made), made.stats().sequences.subscriptions) == (2, 2)


def test_a_row_whose_length_of_time_cannot_be_is_left_out() -> None:
    made = engine()
    text = "from stock a next stock b within :w"
    lengths = [5, 0, -1, 1.5, 2**63, 10**30, "x"]
    done = made.subscribe_many(text, [{"w": length} for length in lengths], id="w{row}")
    assert done.ids == ("w0",)
    assert [error.row for error in done.errors] == [1, 2, 3, 4, 5, 6]
    assert "`within` takes a whole number of ticks from 1 to" in done.errors[0].reason
    counted = made.subscribe_many(text, {"w": [0, 2, -1]}, id="c{row}")
    assert counted.ids == ("c1",)
    assert [parse(to_text(one.query)) == one.query for one in made.subscriptions()] == [True, True]


def test_templates_whose_rows_are_compiled_one_by_one() -> None:
    made = engine()
    text = "from stock a next stock b on b.price > a.price and b.name in :names or b.name like :p"
    done = made.subscribe_many(
        text, {"names": [["A"], ["B"], ["C"]], "p": ["x%y_", "%", 5], "n": ["one", "two", "three"]}, id="n"
    )
    assert done.ids == ("one", "two")
    assert [str(error) for error in done.errors] == ["row 2, parameter `:p`: its value must be a string"]
    notes = list(made.publish_many([stock(1, "Z", 1), stock(2, "A", 2)]))
    assert [note.subscription for note in notes] == ["one", "two"]


def test_a_template_that_cannot_be_a_sequence_is_refused() -> None:
    made = engine()
    with pytest.raises(TemplateError):
        made.subscribe_many("from stock a next stock b", {"x": [1]})
    with pytest.raises(SubscriptionError, match="there is no table `t`"):
        made.subscribe_many("select min(p) from table t where p > :p", {"p": [1]})


def test_test_returns_the_matches_that_a_sequence_would_have_had() -> None:
    made = engine()
    events: list[Any] = [
        stock(1, "A", 1),
        stock(2, "A", 2),
        {"name": "\ud800"},
        stock(1, "A", 5),
        stock(3, "A", 3),
    ]
    trial = made.test(JUMP, events)
    assert summary(trial.notifications) == [("test", ("e1A", "e2A")), ("test", ("e2A", "e3A"))]
    assert [event.id for event in trial.events] == ["e2A", "e3A"]
    assert (trial.examined, len(trial.faults)) == (4, 1)
    assert [event.id for event in trial.late] == ["e1A"]
    assert not made.test(JUMP, [])
    records = [{"t": 1, "name": "A", "price": 1}, {"t": 2, "name": "A", "price": 2}]
    assert len(made.test(JUMP, records, stream="stock", time="t").notifications) == 1
    assert made.stats().published == 0


@pytest.mark.parametrize("matcher", ["oracle", "opindex", None])
def test_sequences_are_run_with_the_matcher_that_was_chosen(matcher: str | None) -> None:
    made = engine(matcher=matcher)
    made.subscribe("from stock a where a.price > 1 next stock b on b.price > 2 and b.name = a.name", id="x")
    assert summary(made.publish_many([stock(1, "A", 2), stock(2, "A", 3)])) == [("x", ("e1A", "e2A"))]


REFUSALS: list[Callable[[Engine], object]] = [
    lambda made: made.apply({"x": JUMP, "z": "price > 0"}),
    lambda made: made.subscribe(JUMP, id="x", replace=True),
    lambda made: made.subscribe_many(
        JUMP + " and a.price > :p", {"p": [0], "n": ["x"]}, id="n", replace=True
    ),
]


@pytest.mark.parametrize("change", REFUSALS)
def test_whatever_ends_a_change_nothing_has_changed(
    change: Callable[[Engine], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine()
    made.apply({"x": "from stock a next stock b publish as t", "y": "price > 0"})
    made.publish(stock(1, "A", 1))
    line = made._store.sequences._matchers[1]

    def failing(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(line.matcher, "add", failing)
        with pytest.raises(KeyboardInterrupt):
            change(made)
    assert [held.id for held in made.subscriptions()] == ["x", "y"]
    assert summary(made.publish(stock(2, "A", 2))) == [("y", ("e2A",)), ("x", ("e1A", "e2A"))]
    with pytest.raises(SubscriptionError, match="closes a cycle"):
        made.subscribe("from t a publish as stock", id="z")
    change(made)
    assert made.stats().sequences.subscriptions == 1


def test_apply_and_its_dry_run_refuse_a_cycle_and_leave_nothing() -> None:
    engine = Engine()
    engine.apply({"one": "from a x next b y publish as c"})
    wanted = {
        "one": "from a x next b y publish as c",
        "two": "from c x next d y publish as e",
        "three": "from e x next b y publish as a",
    }
    for dry_run in (True, False):
        with pytest.raises(ApplyError, match="subscription `three`: publishing as `a` closes a cycle"):
            engine.apply(wanted, dry_run=dry_run)
        assert [one.id for one in engine.subscriptions()] == ["one"]
    assert engine.apply({"back": "from c x next b y publish as a"}, dry_run=True).removed == ("one",)
    wanted["three"] = "from e x next b y publish as f"
    assert engine.apply(wanted, dry_run=True).added == ("two", "three")
    assert len(engine) == 1
    assert engine.apply(wanted).added == ("two", "three")
    events = [({"n": 1}, "a"), ({"n": 2}, "b"), ({"n": 3}, "d")]
    assert [n.subscription for event, stream in events for n in engine.publish(event, stream=stream)] == [
        "one",
        "two",
    ]


def test_sequences_that_were_withdrawn_long_before_their_time_leave_the_schedule() -> None:
    made = engine()
    made.subscribe("from s a next s b on b.x > a.x", id="kept", valid_from=50, valid_until=80)
    made.subscribe("from s a next s b on b.x > a.x", id="now", valid_until=70)
    for number in range(500):
        begin = 10**5 if number % 2 else None
        query = f"from s a next s b on b.x = {number}"
        made.subscribe(query, id="gone", valid_from=begin, valid_until=10**6 + number)
        made.unsubscribe("gone")
    schedule = made._store.sequences._matchers[1]
    assert len(schedule._begins) + len(schedule._ends) < 100
    found = {}
    for time in (10, 20, 50, 60, 69, 75, 79, 90):
        notes = made.publish(Event(str(time), {"x": time}, "s", time, time))
        found[time] = sorted(note.subscription for note in notes)
    assert found == {
        10: [],
        20: ["now"],
        50: ["now"],
        60: ["kept", "now"],
        69: ["kept", "now"],
        75: ["kept"],
        79: ["kept"],
        90: [],
    }
