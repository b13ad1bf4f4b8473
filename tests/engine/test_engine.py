from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Engine, attr, parse, read_event
from tocsin.engine import EventClock, ManualClock
from tocsin.errors import ApplyError, EventError, LanguageError, SubscriptionError, TemplateError
from tocsin.formats import Fault
from tocsin.formats.notifications import JsonNotifications
from tocsin.matching import registered_matchers
from tocsin.model import Event, Notification, Subscription
from tocsin.model.values import Opaque


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(100)


@pytest.fixture
def engine(clock: ManualClock) -> Engine:
    return Engine(clock=clock)


def notified(notes: Iterable[Notification]) -> list[str]:
    return [note.subscription for note in notes]


# subscribing


def test_a_subscription_may_be_text_json_built_or_a_model(engine: Engine) -> None:
    engine.subscribe("a = 1", id="text")
    engine.subscribe({"=": [{"attribute": ["a"]}, 1]}, id="json")
    engine.subscribe(attr("a") == 1, id="built")
    engine.subscribe(parse("a = 1"), id="model")
    assert sorted(notified(engine.publish({"a": 1}))) == ["built", "json", "model", "text"]


def test_an_id_is_made_where_none_is_given(engine: Engine) -> None:
    first, second = engine.subscribe("a = 1").id, engine.subscribe("a = 1").id
    assert first != second
    assert first in engine
    assert len(engine) == 2


def test_a_repeated_id_is_an_error_unless_it_replaces(engine: Engine) -> None:
    engine.subscribe("a = 1", id="x")
    with pytest.raises(SubscriptionError, match="subscription `x`: it is subscribed already"):
        engine.subscribe("a = 2", id="x")
    engine.subscribe("a = 2", id="x", replace=True)
    assert notified(engine.publish({"a": 1})) == []
    assert notified(engine.publish({"a": 2})) == ["x"]


def test_a_faulty_replacement_leaves_the_old_subscription(engine: Engine) -> None:
    engine.subscribe("a = 1", id="x")
    with pytest.raises(LanguageError):
        engine.subscribe("a => 1", id="x", replace=True)
    assert notified(engine.publish({"a": 1})) == ["x"]


@pytest.mark.parametrize("bad", ["", 5])
def test_an_id_is_a_string(engine: Engine, bad: object) -> None:
    with pytest.raises(SubscriptionError, match="an id is a string"):
        engine.subscribe("a = 1", id=bad)  # type: ignore[arg-type]


def test_unsubscribing(engine: Engine) -> None:
    engine.subscribe("a = 1", id="x")
    engine.unsubscribe("x")
    assert notified(engine.publish({"a": 1})) == []
    with pytest.raises(SubscriptionError, match="`x`: it is not subscribed"):
        engine.unsubscribe("x")


def test_a_filter_that_can_never_match_is_accepted_with_a_warning_and_costs_nothing(engine: Engine) -> None:
    assert engine.subscribe("a = 1 and a = 2", id="x").warnings == (
        "it can never match: no value of a satisfies `a = 1 and a = 2`",
    )
    assert engine.stats().matcher.conjunctions == 0
    engine.unsubscribe("x")


def test_too_large_a_condition_is_refused_by_its_id(engine: Engine) -> None:
    clauses = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(11))
    text = f"{clauses} and ({' or '.join(f'c{i} = 1 and d{i} = 1' for i in range(11))})"
    with pytest.raises(SubscriptionError, match=r"`x`: the disj.*1,024 conj.*1,024 clauses.*split the subsc"):
        engine.subscribe(text, id="x")
    assert len(engine) == 0


def test_subscriptions_can_be_listed(engine: Engine) -> None:
    engine.subscribe("a = 1", id="x", valid_from=5, valid_until=500, owner="ann")
    engine.subscribe_many("a = :v", [{"v": 1}], id="t{v}")
    assert list(engine.subscriptions()) == [
        Subscription("x", parse("a = 1"), 5, 500),
        Subscription("t1", parse("a = 1")),
    ]
    assert [s.id for s in engine.subscriptions(owner="ann")] == ["x"]


# templates


def test_one_subscription_per_row(engine: Engine) -> None:
    rows = [{"s": "IBM", "p": 100}, {"s": "MSFT", "p": 25}, {"s": None, "p": 1}, {"s": "X", "p": 3}]
    made = engine.subscribe_many("symbol = :s and price > :p", rows, id="{s}-{row}")
    assert made.ids == ("IBM-0", "MSFT-1", "X-3")
    assert [str(e) for e in made.errors] == [
        "row 2, parameter `:s`: null is not a value and equals nothing; use `is missing` or `is present` instead"
    ]
    assert notified(engine.publish({"symbol": "MSFT", "price": 26})) == ["MSFT-1"]
    engine.unsubscribe("MSFT-1")
    assert notified(engine.publish({"symbol": "MSFT", "price": 26})) == []


def test_ids_may_stand_in_a_column_and_repeats_are_reported(engine: Engine) -> None:
    rows = {"name": ["x", "y", "x"], "v": [1, 2, 3]}
    made = engine.subscribe_many("a = :v", rows, id="name")
    assert made.ids == ("x", "y")
    assert [str(e) for e in made.errors] == ["row 2: another row has made the id `x` already"]
    assert notified(engine.publish({"a": 3})) == []
    with pytest.raises(SubscriptionError, match="`x`: it is subscribed already"):
        engine.subscribe_many("a = :v", rows, id="name")
    engine.subscribe_many("b = :v", rows, id="name", replace=True)
    assert notified(engine.publish({"a": 1, "b": 2})) == ["y"]


def test_rows_may_be_an_iterator_and_ids_are_made(engine: Engine) -> None:
    made = engine.subscribe_many("a = :v", ({"v": i} for i in range(3)))
    assert len(set(made.ids)) == 3


def test_ids_that_cannot_be_made(engine: Engine) -> None:
    with pytest.raises(TemplateError, match="no column `nam` holds the ids"):
        engine.subscribe_many("a = :v", [{"v": 1}], id="nam")
    with pytest.raises(TemplateError, match=r"names `\{w\}`; known are row, v"):
        engine.subscribe_many("a = :v", [{"v": 1}], id="{w}")


def test_a_template_over_a_stream_and_rows_that_never_match(engine: Engine) -> None:
    made = engine.subscribe_many(
        "select a from s where a between :l and :h", [{"l": 1, "h": 2}, {"l": 2, "h": 1}]
    )
    assert made.never == (1,)
    assert notified(engine.publish({"a": 1}, stream="t")) == []
    note = engine.publish({"a": 1}, stream="s")[0]
    assert note.values == {"a": 1}


# publishing


def test_a_notification_has_the_event_the_selected_values_and_the_times(engine: Engine) -> None:
    engine.subscribe("select price * 2 as twice, gone from stock where price > 1", id="x")
    note = engine.publish({"price": 5}, stream="stock", time=17, start=15, id="e1")[0]
    assert note.event_ids == ("e1",)
    assert note.values == {"twice": 10, "gone": None}
    assert (note.start, note.end, note.generation) == (15, 17, 1)
    assert note.events[0].attributes == {"price": 5}


def test_a_filter_on_a_stream_matches_only_that_stream(engine: Engine) -> None:
    engine.subscribe("from s where a = 1", id="s")
    engine.subscribe("a = 1", id="any")
    assert notified(engine.publish({"a": 1}, stream="s")) == ["s", "any"]
    assert notified(engine.publish({"a": 1}, stream="t")) == ["any"]
    assert notified(engine.publish({"a": 1})) == ["any"]
    with pytest.raises(EventError, match="the name is reserved"):
        engine.publish({"$stream": "s"})


def test_a_bad_event_is_refused_and_changes_nothing(engine: Engine) -> None:
    engine.subscribe("true", id="x")
    with pytest.raises(EventError, match="attribute `a`: the string"):
        engine.publish({"a": "\ud800"})
    assert engine.stats().published == 0


def test_one_bad_record_never_stops_a_batch(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    engine.subscribe("a > 0", id="x")
    faults: list[Fault] = []
    records = [{"a": 1}, {"a": "\ud800"}, "nonsense", {"$stream": 1}, {"a": 2}]
    assert notified(engine.publish_many(records, on_error=faults.append)) == ["x", "x"]
    assert [fault.line for fault in faults] == [2, 3, 4]
    assert engine.stats().refused == 3
    with caplog.at_level(logging.WARNING, "tocsin"):
        assert notified(engine.publish_many([{"a": "\ud800"}, {"a": 3}])) == ["x"]
    assert "event:1: attribute `a`: the string" in caplog.text


@pytest.mark.parametrize("matcher", sorted(registered_matchers()))
def test_an_event_made_by_hand_is_refused_by_itself(matcher: str) -> None:
    engine = Engine(matcher=matcher, clock=ManualClock(100))
    engine.subscribe("a < 'b' or s like '%x' or n > 0", id="x")
    good = Event("good", {"a": "a"})
    wrong: list[Any] = ["\ud800", 10**5000, {1: 2}]
    bad = [Event("bad", {"a": value}) for value in wrong] + [Event("bad", {"a": "a"}, "\ud800")]
    faults: list[Fault] = []
    notes = engine.publish_many([good, *bad, good], on_error=faults.append)
    assert [note.event_ids for note in notes] == [("good",), ("good",)]
    assert [fault.line for fault in faults] == [2, 3, 4, 5]
    assert faults[0].reason == (
        "attribute `a`: the string is not valid Unicode: a lone surrogate at position 0"
    )
    assert (engine.stats().published, engine.stats().refused) == (2, 4)
    found = engine.match([good, *bad])
    assert list(found) == [("x",), (), (), (), ()]
    assert len(found.faults) == 4
    assert len(engine.test("true", [good, *bad]).faults) == 4
    with pytest.raises(EventError, match="lone surrogate"):
        engine.publish(bad[0])


def test_one_event_object_in_two_rows_is_matched_in_both() -> None:
    engine = Engine(clock=ManualClock(100))
    engine.subscribe("a > 0", id="x")
    event = Event("e", {"a": 1})
    assert list(engine.match([event, {"a": 0}, event])) == [("x",), (), ("x",)]


def test_matching_an_event_of_a_table_does_not_need_its_key() -> None:
    engine = Engine(clock=ManualClock(100))
    engine.table("t", key="k")
    engine.subscribe("a > 0", id="x")
    found = engine.match([{"a": 1}], stream="t")
    assert (list(found), found.faults) == ([("x",)], ())


def test_an_iterator_is_answered_event_by_event(engine: Engine) -> None:
    engine.subscribe("a > 0", id="x")
    given: list[int] = []

    def live() -> Iterable[dict[str, object]]:
        for i in range(1, 4):
            given.append(i)
            yield {"a": i}

    notes = engine.publish_stream(live())
    next(iter(notes))
    assert given == [1]


def test_arrow_tables_are_published_and_matched(engine: Engine) -> None:
    engine.subscribe("a > 1 and city.name = 'Oslo'", id="x")
    engine.subscribe("t >= timestamp '2026-01-01T00:00:00Z'", id="y")
    table = pa.table(
        {
            "a": [1, 2, None, 3],
            "city": [{"name": "Oslo"}] * 3 + [None],
            "t": pa.array([None, datetime(2026, 1, 1), None, None], pa.timestamp("us")),  # noqa: DTZ001 - as Arrow has it
        }
    )
    assert notified(engine.publish_many(table)) == ["x", "y"]
    assert notified(engine.publish_many(iter(table.to_batches()))) == ["x", "y"]
    assert engine.match(table).to_arrow().to_pydict() == {"row": [1, 1], "subscription": ["x", "y"]}


def test_match_returns_the_subscriptions_of_each_row_and_publishes_nothing(engine: Engine) -> None:
    engine.subscribe("a = 1", id="x")
    engine.subscribe("a >= 1", id="w")
    found = engine.match([{"a": 1}, {"a": "\ud800"}, {"a": 0}, {"a": 2}, {"$stream": 1}])
    assert list(found) == [("w", "x"), (), (), ("w",), ()]
    assert [fault.reason[:14] for fault in found.faults] == ["attribute `a`:", "attribute `$st"]
    assert engine.stats().published == 0
    with pytest.raises(IndexError):
        found[5]


@pytest.mark.parametrize("event", [{"a": 1, "$delete": True}, {"a": 1, "_deleted": True}])
def test_a_deletion_reaches_no_filter(engine: Engine, event: dict[str, object]) -> None:
    engine.subscribe("a = 1", id="x")
    assert engine.publish(event) == []
    assert engine.publish({"a": 1}, delete=True) == []
    assert list(engine.publish_many([event])) == []


def test_what_cannot_be_compared_is_present_counted_and_logged_once(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("tags is present", "tags is missing", "tags = 1", "not tags = 1", "n > 0", "n is missing"):
        engine.subscribe(text, id=text)
    row = {"tags": [1, 2], "raw": b"x", "n": 1}
    with caplog.at_level(logging.INFO, "tocsin"):
        for made in (
            engine.publish(row),
            engine.publish_many([row]),
            engine.publish_many(pa.table({"tags": [[1]], "raw": [b"x"], "n": [1]})),
        ):
            assert sorted(notified(made)) == ["n > 0", "tags is present"]
    assert engine.stats().opaque_values == 6
    assert [record.message.split("`")[1] for record in caplog.records] == ["tags", "raw"]
    assert sorted(notified(engine.publish({"n": float("nan")}))) == ["n is missing", "tags is missing"]


def test_publish_counts_what_it_refuses_as_publish_many_does(engine: Engine) -> None:
    engine.table("r", key="k")
    for bad, stream in (({"a": "\ud800"}, None), ({"raw": b"x"}, "r"), ({"k": b"x"}, "r")):
        with pytest.raises(EventError):
            engine.publish(bad, stream=stream)
    one = engine.stats()
    other = Engine()
    other.table("r", key="k")
    other.publish_many([{"a": "\ud800"}], on_error=lambda _: None)
    other.publish_many([{"raw": b"x"}, {"k": b"x"}], stream="r", on_error=lambda _: None)
    many = other.stats()
    assert (one.published, one.refused, one.opaque_values) == (
        many.published,
        many.refused,
        many.opaque_values,
    )
    assert (one.refused, one.opaque_values) == (3, 2)


def test_opaque_values_are_null_in_json_and_shown_by_explain(engine: Engine) -> None:
    engine.subscribe("select *, raw as copy from s where raw is present", id="x")
    engine.subscribe("raw = 'x'", id="y")
    notes = engine.publish_many([{"raw": b"x", "n": 1}], stream="s")
    assert next(iter(notes)).values == {"raw": Opaque("bytes"), "n": 1, "copy": Opaque("bytes")}
    written = io.BytesIO()
    with JsonNotifications(written) as file:
        file.write(next(iter(notes)))
    assert json.loads(written.getvalue())["values"] == {"raw": None, "n": 1, "copy": None}
    assert json.loads(notes.to_arrow()["values"][0].as_py()) == {"raw": None, "n": 1, "copy": None}
    assert "it is a bytes value, not comparable" in str(engine.explain("y", {"raw": b"x"}))


# validity


def test_a_subscription_applies_from_and_until(engine: Engine) -> None:
    engine.subscribe("true", id="x", valid_from=200, valid_until=300)
    assert [bool(engine.publish({}, time=t)) for t in (199, 200, 299, 300)] == [False, True, True, False]


def test_the_clock_reclaims_expired_subscriptions(engine: Engine, clock: ManualClock) -> None:
    engine.subscribe("a = 1", id="x", valid_until=200)
    engine.subscribe_many("a = :v", [{"v": 1}, {"v": 2}], valid_until=300)
    clock.time = 200
    assert "x" not in engine
    clock.time = 300
    stats = engine.stats()
    assert (stats.subscriptions, stats.expired, stats.matcher.conjunctions) == (0, 3, 0)
    engine.subscribe("a = 1", id="x")  # its id is free again


def test_lateness_holds_expired_subscriptions_for_late_events(clock: ManualClock) -> None:
    engine = Engine(clock=clock, lateness=50)
    engine.subscribe("true", id="x", valid_until=200)
    clock.time = 249
    assert notified(engine.publish({}, time=199)) == ["x"]
    assert notified(engine.publish({}, time=200)) == []
    clock.time = 250
    assert notified(engine.publish({}, time=199)) == []


def test_times_may_be_datetimes_and_texts(engine: Engine, clock: ManualClock) -> None:
    clock.time = 0
    engine.subscribe(
        "true", id="x", valid_from=datetime(2026, 1, 1, tzinfo=UTC), valid_until="2026-01-02T00:00:00Z"
    )
    assert notified(engine.publish({}, time="2026-01-01T12:00:00Z")) == ["x"]
    assert notified(engine.publish({}, time=datetime(2026, 1, 2, tzinfo=UTC))) == []
    with pytest.raises(
        SubscriptionError, match="subscription `y`: its validity cannot be read: `soon` is not"
    ):
        engine.subscribe("true", id="y", valid_until="soon")


def test_an_expired_subscription_is_warned_of_and_an_event_clock_replays_the_past() -> None:
    assert (
        "it has expired already"
        in Engine().subscribe("true", id="x", valid_until="2013-06-01T00:00:00Z").warnings[0]
    )
    replay = Engine(clock=EventClock())
    assert replay.subscribe("true", id="x", valid_until="2013-06-01T00:00:00Z").warnings == ()
    assert notified(replay.publish({}, time="2013-05-31T00:00:00Z")) == ["x"]
    assert notified(replay.publish({}, time="2013-06-01T00:00:00Z")) == []
    assert len(replay) == 0


def test_kept_events_meet_a_new_subscription_at_once(engine: Engine, clock: ManualClock) -> None:
    engine.publish({"a": 1}, id="kept", valid_until=200)
    engine.publish({"a": 1}, id="gone", valid_until=150)
    engine.publish({"a": 1}, id="passing")
    clock.time = 150
    assert [n.event_ids for n in engine.subscribe("a = 1", id="x").notifications] == [("kept",)]
    assert engine.subscribe("a = 2", id="y").notifications == ()
    assert engine.subscribe("a = 1", id="later", valid_from=101).notifications == ()
    assert [n.subscription for n in engine.subscribe_many("a = :v", [{"v": 1}], id="t{v}").notifications] == [
        "t1"
    ]
    assert [n.subscription for n in engine.apply({"z": "a = 1"}).notifications] == ["z"]
    clock.time = 200
    assert engine.subscribe("a = 1", id="w").notifications == ()
    assert engine.stats().kept_events == 0


def test_late_events_are_matched_by_filters(engine: Engine) -> None:
    engine.subscribe("true", id="x")
    assert notified(engine.publish({}, time=50)) == ["x"]
    assert notified(engine.publish({}, time=10)) == ["x"]


# explaining and testing


def test_explain_shows_the_truth_of_each_predicate_and_the_failed_ones(engine: Engine) -> None:
    engine.subscribe("symbol = 'IBM' and (price > 100 or not volume < 5)", id="x")
    why = engine.explain("x", {"symbol": "IBM", "price": 99, "volume": 3})
    assert not why.matched
    assert [(p.text, p.value, p.truth) for p in why.reason.predicates()] == [
        ("symbol = 'IBM'", "IBM", True),
        ("price > 100", 99, False),
        ("volume < 5", 3, True),
    ]
    assert [p.text for p in why.failed] == ["price > 100", "volume < 5"]
    hit = engine.explain("x", {"symbol": "IBM", "price": 101})
    assert (hit.matched, hit.failed) == (True, ())


def test_explain_names_the_stream_or_validity_that_excludes_an_event(engine: Engine) -> None:
    engine.subscribe("from s where true", id="x", valid_from=5, valid_until=500)
    assert engine.explain("x", read_event({}, stream="t", time=500)).outside == (
        "it reads stream `s`, the event is of stream `t`",
        "it is valid until 500, the event ended at 500",
    )
    assert engine.explain("x", read_event({"$delete": True}, time=4)).outside == (
        "it reads stream `s`, the event is of no stream",
        "it is valid from 5, the event ended at 4",
        "the event is a deletion, which reaches no filter",
    )
    assert engine.explain("x", {}, stream="s").matched
    with pytest.raises(SubscriptionError, match="`y`: it is not subscribed"):
        engine.explain("y", {})


def test_test_returns_the_matched_events_without_subscribing(engine: Engine) -> None:
    trial = engine.test("a > 1", [{"a": 1}, {"a": 2}, {"a": "\ud800"}, {"a": 3}])
    assert ([e.attributes["a"] for e in trial.events], trial.examined, len(trial.faults)) == ([2, 3], 3, 1)
    assert trial
    assert not engine.test("from s where a > 1", [{"a": 2}])
    assert engine.test("from s where a > 1", [{"a": 2}], stream="s")
    assert len(engine) == 0


def test_a_dry_run_names_what_no_event_has() -> None:
    engine = Engine()
    engine.table("stock", key="symbol")
    events = [{"symbol": "A", "price": 4}, {"symbol": "B", "price": 5}]
    for text, warning in (
        ("pirce > 3", "no event has the attribute `pirce`; did you mean `price`?"),
        ("price = 'x'", "`price = 'x'` never matches: `price` is a number in the events, not a string"),
        ("from stok where price > 3", "no event was of stream `stok`; did you mean `stock`?"),
        ("from stok a next stock b", "no event was of stream `stok`; did you mean `stock`?"),
        ("select max(pirce) from table stock", "no event has the attribute `pirce`; did you mean `price`?"),
    ):
        run = engine.test(text, events, stream="stock")
        assert run.warnings == (warning,)
        assert f"0 times in 2 events, 1 warning: {warning}" in repr(run)
    assert engine.test("price > 3 and pirce is missing", events).warnings == ()
    assert engine.test("pirce > 3", []).warnings == ()


# applying


def test_apply_makes_an_owners_subscriptions_equal_to_a_set(engine: Engine) -> None:
    engine.subscribe("a = 9", id="other")
    first = engine.apply({"x": "a = 1", "y": "a = 2"}, owner="ann")
    assert (first.added, first.changed, first.removed) == (("x", "y"), (), ())
    before = engine.stats().generation
    again = engine.apply({"x": "a = 1.0", "y": "a = 3", "z": "a = 4"}, owner="ann", dry_run=True)
    assert (again.added, again.changed, again.removed, again.unchanged) == (("z",), ("y",), (), ("x",))
    assert engine.stats().generation == before
    engine.apply(
        [Subscription("y", parse("a = 3")), Subscription("x", parse("a = 1"), valid_until=500)], owner="ann"
    )
    assert engine.apply({}, owner="bob") == engine.apply({}, owner="bob")
    assert sorted(s.id for s in engine.subscriptions()) == ["other", "x", "y"]
    assert engine.stats().generation == before + 1
    assert engine.apply({}, owner="ann").removed == ("y", "x")


def test_apply_is_all_or_nothing_and_names_every_error(engine: Engine) -> None:
    engine.subscribe("a = 9", id="other")
    engine.apply({"x": "a = 1"}, owner="ann")
    with pytest.raises(ApplyError) as caught:
        engine.apply(
            {"x": "a => 1", "y": "a = 2", "z": "select min(p) from table t", "other": "a = 1"}, owner="ann"
        )
    assert [error.id for error in caught.value.errors] == ["x", "z", "other"]
    assert "nothing was applied: 3 subscriptions are at fault" in str(caught.value)
    assert sorted(s.id for s in engine.subscriptions()) == ["other", "x"]
    with pytest.raises(ApplyError, match="has this id twice"):
        engine.apply([Subscription("x", parse("a = 1"))] * 2, owner="ann")


# several at once


def test_publishing_from_asyncio(engine: Engine) -> None:
    engine.subscribe("a = 1", id="x")

    async def main() -> list[list[Notification]]:
        return await asyncio.gather(*(engine.apublish({"a": i % 2}, time=i) for i in range(20)))

    assert [len(notes) for notes in asyncio.run(main())] == [0, 1] * 10


def test_many_threads_see_whole_changes_only(engine: Engine) -> None:
    """One thread flips a set back and forth; no event ever sees half of it."""
    sets = [{f"{name}{i}": "true" for i in range(5)} for name in "xy"]
    engine.apply(sets[0])
    done = threading.Event()
    seen: set[frozenset[str]] = set()

    def watch() -> None:
        while not done.is_set():
            seen.add(frozenset(notified(engine.publish({}))))

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for thread in watchers:
        thread.start()
    for i in range(200):
        engine.apply(sets[i % 2])
    done.set()
    for thread in watchers:
        thread.join()
    assert seen <= {frozenset(sets[0]), frozenset(sets[1])}


# one answer, whichever way it is asked


def test_the_stream_can_be_tested_selected_and_explained(engine: Engine) -> None:
    text = "\"$stream\" in ('a', 'b')"
    engine.publish({"x": 1}, stream="a", valid_until=200)
    assert len(engine.subscribe(text, id="in").notifications) == 1
    assert len(engine.subscribe('"$stream" is missing', id="none").notifications) == 0
    assert notified(engine.publish({"x": 1}, stream="b")) == ["in"]
    assert notified(engine.publish({"x": 1})) == ["none"]
    assert engine.explain("in", {}, stream="a").matched
    assert len(engine.test(text, [{}], stream="a").events) == 1
    engine.subscribe('select "$stream" as s from a', id="select")
    assert [n.values for n in engine.publish({}, stream="a") if n.values] == [{"s": "a"}]


def test_batches_are_matched_as_if_one_by_one() -> None:
    events = [read_event({}, time=t) for t in (200, 50)]
    for lateness, wanted in ((0, []), (150, ["x"])):
        answers = []
        for size in (1, 2, 256):
            engine = Engine(clock=EventClock(), lateness=lateness)
            engine.subscribe("true", id="x", valid_until=100)
            answers.append(notified(engine.publish_many(events, batch_size=size)))
        assert answers == [wanted] * 3


def test_events_before_a_source_failed_are_published(engine: Engine) -> None:
    engine.subscribe("a > 0", id="x")

    def failing() -> Iterable[Mapping[str, object]]:
        for i in range(1, 6):
            yield {"a": i}
        raise OSError("the wire was cut")

    notes: list[Notification] = []
    with pytest.raises(OSError, match="the wire was cut"):
        notes.extend(engine.publish_stream(failing(), batch_size=10))
    assert notified(notes) == ["x"] * 5
    assert engine.stats().published == 5


def test_a_refused_event_is_neither_kept_nor_counted(engine: Engine) -> None:
    faults: list[Fault] = []
    smuggled = Event("e", {"x": 1, "$stream": "a"}, valid_until=200)
    assert list(engine.publish_many([smuggled], on_error=faults.append)) == []
    assert len(faults) == 1
    assert (engine.stats().kept_events, engine.stats().published) == (0, 0)


def test_a_cloud_event_is_one_whichever_way_it_comes(engine: Engine) -> None:
    event: dict[str, object] = {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "order",
        "data": {"p": 5},
    }
    engine.subscribe("from order where data.p = 5", id="x")
    assert notified(engine.publish(event)) == notified(engine.publish_many([event])) == ["x"]
    assert list(engine.match([event])) == [("x",)]
    assert engine.explain("x", event).matched


def test_an_event_brings_its_own_stream_and_time(engine: Engine) -> None:
    with pytest.raises(EventError, match="an `Event` brings its own stream, time"):
        engine.publish(read_event({}), stream="s", time=5)
    for nonsense in ("abc", None, 5):
        with pytest.raises(EventError, match="an event is a mapping"):
            engine.publish(nonsense)  # type: ignore[arg-type]


def test_ids_made_for_events_are_never_repeated(engine: Engine) -> None:
    engine.subscribe("true", id="x")
    ids = [note.event_ids[0] for _ in range(2) for note in engine.publish_many([{}] * 10)]
    assert len(set(ids)) == 20


def test_the_last_tick_is_within_an_unlimited_validity(engine: Engine) -> None:
    engine.subscribe("true", id="x")
    engine.subscribe("false", id="y", valid_until=500)
    assert notified(engine.publish({}, time=2**63 - 1)) == ["x"]


def test_templates_free_removed_rows(engine: Engine) -> None:
    engine.subscribe_many("a = :v", {"v": list(range(1000))}, id="{v}")
    for i in range(990):
        engine.unsubscribe(str(i))
    assert notified(engine.publish({"a": 995})) == ["995"]
    stored, _ = engine._store.queries._batches.find(engine._store.registry.number("995"))
    assert len(stored) < 250
    assert [s.query for s in engine.subscriptions()] == [parse(f"a = {i}") for i in range(990, 1000)]


def test_the_callers_arrays_may_change_after_a_template_was_subscribed(engine: Engine) -> None:
    rows = {
        "v": np.arange(100),
        "w": np.arange(100) / 2,
        "s": np.array([f"s{i}" for i in range(100)], dtype=object),
    }
    engine.subscribe_many("a = :v and b = :w and c = :s", rows, id="{s}-{v}-{w}")
    for column in rows.values():
        column[:] = column[0]
    assert notified(engine.publish({"a": 7, "b": 3.5, "c": "s7"})) == ["s7-7-3.5"]
    assert next(s.query for s in engine.subscriptions() if s.id == "s7-7-3.5") == parse(
        "a = 7 and b = 3.5 and c = 's7'"
    )
    engine.unsubscribe("s7-7-3.5")
    assert len(engine) == 99


def test_many_kept_events_meet_many_rows_at_once(engine: Engine) -> None:
    for i in range(100):
        engine.publish({"a": i}, valid_until=500)
    made = engine.subscribe_many("a = :v", {"v": list(range(50, 550))}, id="{v}")
    assert sorted(notified(made.notifications)) == sorted(str(i) for i in range(50, 100))


@pytest.mark.parametrize("pattern", ["a-{", "{v!x}", "{v:d}", "a}{row}", "{row:99999999999}", "{}"])
def test_a_faulty_pattern_for_ids_is_refused(engine: Engine, pattern: str) -> None:
    with pytest.raises(TemplateError, match="the id's pattern"):
        engine.subscribe_many("a = :v", [{"v": 1}], id=pattern)


def test_a_row_without_an_id_is_reported(engine: Engine) -> None:
    made = engine.subscribe_many("a = :v", {"v": [1, 2, 3], "name": ["x", None, ""]}, id="name")
    assert made.ids == ("x",)
    assert [str(error) for error in made.errors] == ["row 1: it has no id", "row 2: it has no id"]


def test_apply_minds_ids_and_forms(engine: Engine) -> None:
    with pytest.raises(ApplyError, match="an id is a string that is not empty, not 1"):
        engine.apply({1: "x > 1", "": "x > 2"})  # type: ignore[arg-type]
    with pytest.raises(SubscriptionError, match="not str"):
        engine.apply(["x > 1"])  # type: ignore[list-item]


def test_counts_are_exact_when_several_threads_publish(engine: Engine) -> None:
    batch: list[Mapping[str, object]] = [{"a": 1, "list": [1]}, {"a": "\ud800"}]

    def publish() -> None:
        for _ in range(200):
            list(engine.publish_many(batch, on_error=lambda _: None))

    threads = [threading.Thread(target=publish) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    stats = engine.stats()
    assert (stats.published, stats.refused, stats.opaque_values) == (800, 800, 800)


def test_a_dry_run_has_the_notifications_of_a_filter_as_the_engine_sends_them() -> None:
    rows: list[dict[str, object]] = [{"s": "A", "p": price} for price in (1, 5, 9)]
    for text in ("p > 2", "select s, p * 2 as twice from t where p > 2"):
        engine = Engine()
        found = engine.test(text, rows, stream="t")
        engine.subscribe(text, id="it")
        sent = engine.publish_many(rows, stream="t")
        assert [note.values for note in found.notifications] == [note.values for note in sent]
        assert [note.events for note in found.notifications] == [(event,) for event in found.events]
        assert [dict(event.attributes) for event in found.events] == [
            dict(note.events[0].attributes) for note in sent
        ]
        assert len(found.notifications) == 2
    assert Engine().test("p > 9", rows).notifications == ()


def test_several_events_are_explained_one_by_one() -> None:
    engine = Engine()
    engine.table("t", key="s")
    for name, text in {
        "filter": "p > 2",
        "sequence": "from t a next t b",
        "view": "select max(p) from table t",
    }.items():
        engine.subscribe(text, id=name)
        with pytest.raises(
            EventError, match=r"takes one event, a mapping of attributes, not list; .* to `test`"
        ):
            engine.explain(name, [{"s": "A", "p": 1}], stream="t")  # type: ignore[call-overload]
