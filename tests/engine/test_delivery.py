"""Callbacks and streams get the notifications that calls return, in the same order, outside the engine's lock."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tocsin import Engine, Notification
from tocsin.engine import EventClock, ManualClock
from tocsin.model.errors import TocsinError

Notes = list[Notification]


def engine_with_each_kind() -> Engine:
    engine = Engine(clock=EventClock(0))
    engine.stream("stock", tick="1 second")
    engine.table("stock", key="symbol")
    engine.subscribe("price > 10", id="filter")
    engine.subscribe(
        "from stock a next stock b on b.symbol = a.symbol where b.price > a.price", id="sequence"
    )
    engine.subscribe("select max(price) from table stock", id="view")
    return engine


ROWS: list[dict[str, Any]] = [
    {"symbol": s, "price": p, "at": t} for t, (s, p) in enumerate([("A", 9), ("B", 20), ("A", 12), ("B", 25)])
]


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: [n for row in ROWS for n in engine.publish(row, stream="stock", time=row["at"])],
        lambda engine: list(engine.publish_many(ROWS, stream="stock", time="at")),
        lambda engine: list(engine.publish_many(iter(ROWS), stream="stock", time="at")),
        lambda engine: list(engine.publish_many(pa.Table.from_pylist(ROWS), stream="stock", time="at")),
        lambda engine: list(engine.publish_stream(iter(ROWS), stream="stock", time="at")),
        lambda engine: [
            n
            for batch in engine.publish_batches(ROWS, stream="stock", time="at", batch_size=3)
            for n in batch
        ],
    ],
    ids=["publish", "list", "iterator", "table", "stream", "batches"],
)
def test_a_callback_gets_what_publishing_returns_in_its_order(call: Callable[[Engine], Notes]) -> None:
    engine = engine_with_each_kind()
    heard: Notes = []
    engine.on_notification(heard.append)
    returned = call(engine)
    assert heard == returned
    assert {note.subscription for note in heard} == {"filter", "sequence", "view"}
    ends = [note.end or 0 for note in heard]
    assert ends == sorted(ends)


def test_a_flush_delivers_the_sequences_that_waited() -> None:
    engine = Engine(clock=EventClock(0), out_of_orderness=100)
    heard: Notes = []
    engine.subscribe("from s a next s b", id="pair", deliver=heard.append)
    for time in (1, 2):
        engine.publish({"x": time}, stream="s", time=time)
    assert heard == []
    returned = engine.flush()
    assert heard == returned
    assert [note.end for note in heard] == [2]


def test_columns_of_matches_and_changes_are_delivered_without_events() -> None:
    engine = engine_with_each_kind()
    heard: Notes = []
    engine.on_notification(heard.append)
    table = pa.Table.from_pylist(ROWS)
    found = engine.match_sequences(table, stream="stock", time="at")
    changes = engine.upsert(table, stream="stock", time="at")
    assert [note.subscription for note in heard] == [*found.subscriptions, *changes.subscriptions]
    assert [(note.old, note.new) for note in heard if note.view] == [(None, 9), (9, 20), (20, 25)]
    assert all(not note.event_ids for note in heard)


def test_subscribing_delivers_present_answers_and_kept_events() -> None:
    engine = engine_with_each_kind()
    engine.publish({"symbol": "A", "price": 50}, stream="stock", time=5, valid_until=100)
    every: Notes = []
    own: Notes = []
    engine.on_notification(every.append)
    first = engine.subscribe("price > 40", id="kept", deliver=own.append)
    answer = engine.subscribe("select min(price) from table stock", id="least", deliver=own.append)
    assert own == [*first.notifications, *answer.notifications]
    assert [(note.subscription, note.new) for note in own] == [("kept", None), ("least", 50)]
    many = engine.subscribe_many(
        "select sum(price) from table stock where price > :p", {"p": [1, 99]}, id="{p}", deliver=own.append
    )
    assert [note.new for note in own[2:]] == list(many.answers)
    engine.subscribe_many("price > :p", {"p": [20, 99]}, id="f{p}", deliver=own.append)
    engine.subscribe_all({"all": "price = 50"}, deliver=own.append)
    engine.apply({"applied": "price = 50"}, deliver=own.append)
    assert [note.subscription for note in own[4:]] == ["f20", "all", "applied"]
    assert every == own


def test_a_callback_of_a_subscription_gets_its_own_notifications_only() -> None:
    engine = Engine()
    heard: dict[str, Notes] = {"one": [], "many": []}
    engine.subscribe("price > 1", id="one", deliver=heard["one"].append)
    engine.subscribe_many("price > :p", {"p": list(range(100))}, id="m{p}", deliver=heard["many"].append)
    engine.subscribe("price > 1", id="silent")
    calls: list[Callable[[], Any]] = [
        lambda: engine.publish({"price": 3}),
        lambda: engine.publish_many([{"price": 2}, {"price": 3}]),
    ]
    for call in calls:
        found = call()
        assert heard["one"] == [note for note in found if note.subscription == "one"]
        assert heard["many"] == [note for note in found if note.subscription.startswith("m")]
        heard["one"].clear()
        heard["many"].clear()


@pytest.mark.parametrize("remove", ["unsubscribe", "expire", "apply", "replace"])
def test_a_callback_goes_with_its_subscription(remove: str) -> None:
    clock = ManualClock(0)
    engine = Engine(clock=clock)
    heard: Notes = []
    until = 10 if remove == "expire" else None
    engine.subscribe("a = 1", id="it", owner="default", valid_until=until, deliver=heard.append)
    engine.publish({"a": 1}, time=1)
    assert len(heard) == 1
    if remove == "unsubscribe":
        engine.unsubscribe("it")
    elif remove == "expire":
        clock.time = 11
    elif remove == "apply":
        engine.apply({})
    else:
        engine.subscribe("a = 1", id="it", replace=True)
    engine.subscribe("a = 1", id="other")  # which gets the number of the one before
    engine.publish({"a": 1}, time=1)
    assert len(heard) == 1
    assert not engine._store.deliveries.is_wanted


def test_replacing_a_subscription_replaces_its_callback() -> None:
    engine = Engine()
    before: Notes = []
    after: Notes = []
    engine.subscribe("a = 1", id="it", deliver=before.append)
    engine.subscribe("a > 0", id="it", replace=True, deliver=after.append)
    engine.publish({"a": 1})
    assert (len(before), len(after)) == (0, 1)


def test_apply_delivers_for_unchanged_subscriptions_too() -> None:
    engine = Engine()
    heard: Notes = []
    engine.apply({"same": "a = 1", "old": "a = 1"})
    engine.apply({"same": "a = 1", "old": "a > 0"}, deliver=heard.append)
    engine.publish({"a": 1})
    assert sorted(note.subscription for note in heard) == ["old", "same"]
    heard.clear()
    engine.apply({"same": "a = 1", "old": "a = 1"}, dry_run=True, deliver=print)
    engine.publish({"a": 1})
    assert len(heard) == 2


def test_what_a_callback_raises_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    heard: list[str] = []

    def fail(note: Notification) -> None:
        raise ValueError(note.subscription)

    engine.subscribe("a = 1", id="bad", deliver=fail)
    engine.on_notification(fail)
    engine.on_notification(lambda note: heard.append(note.subscription))
    engine.subscribe("a = 1", id="good")
    with caplog.at_level(logging.ERROR, "tocsin"):
        assert [note.subscription for note in engine.publish({"a": 1})] == ["bad", "good"]
    assert heard == ["bad", "good"]
    assert [record.getMessage().count("`bad`") for record in caplog.records] == [1, 1, 0]
    assert all(record.exc_info for record in caplog.records)


def test_an_interrupt_ends_the_call_and_the_next_one_goes_on_where_it_was() -> None:
    engine = Engine()
    heard: list[int] = []

    def interrupt(note: Notification) -> None:
        heard.append(int(str(note.events[0].attributes["a"])))
        if heard == [1]:
            raise KeyboardInterrupt

    engine.on_notification(interrupt)
    engine.subscribe("a > 0")
    with pytest.raises(KeyboardInterrupt):
        engine.publish_many([{"a": 1}, {"a": 2}])
    engine.publish({"a": 3})
    assert heard == [1, 2, 3]


def test_a_callback_may_change_the_engine_and_what_it_causes_comes_later() -> None:
    engine = Engine()
    heard: list[tuple[str, Any]] = []

    def answer(note: Notification) -> None:
        n = note.events[0].attributes["n"]
        heard.append((note.subscription, n))
        if (note.subscription, n) == ("a", 1):
            engine.publish({"n": 2})
            engine.subscribe("n > 1", id="later")
            engine.unsubscribe("b")

    engine.on_notification(answer)
    engine.subscribe("n > 0", id="a")
    engine.subscribe("n > 0", id="b")
    engine.publish_many([{"n": 1}])
    engine.publish({"n": 3})
    assert heard == [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("later", 3)]


def test_a_callback_may_wait_for_another_thread_that_publishes() -> None:
    engine = Engine()
    heard: list[Any] = []

    def wait(note: Notification) -> None:
        n = note.events[0].attributes["n"]
        heard.append(n)
        if n == 1:
            other = threading.Thread(target=engine.publish, args=({"n": 2},))
            other.start()
            other.join(timeout=30)
            assert not other.is_alive()

    engine.on_notification(wait)
    engine.subscribe("n > 0")
    engine.publish({"n": 1})
    assert heard == [1, 2]


def test_callbacks_run_one_at_a_time_in_the_order_of_the_engine_whoever_publishes() -> None:
    engine = Engine(clock=ManualClock(0))
    heard: list[int] = []
    inside = threading.Lock()

    def hear(note: Notification) -> None:
        assert inside.acquire(blocking=False)
        heard.append(int(str(note.values and note.values["n"])))
        inside.release()

    engine.table("t", key="k")
    engine.subscribe("select n from t", id="all", deliver=hear)
    order: list[int] = []
    engine.on_notification(lambda note: order.append(int(str(note.values and note.values["n"]))))

    def publish(first: int) -> None:
        for n in range(first, first + 200):
            engine.publish({"n": n, "k": 1}, stream="t")

    threads = [threading.Thread(target=publish, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.publish({"n": 9999, "k": 1}, stream="t")
    assert heard == order
    assert len(heard) == 801
    for i in range(4):
        own = [n for n in heard if 1000 * i <= n < 1000 * i + 200]
        assert own == sorted(own)


def test_a_callback_runs_outside_the_lock_even_in_apublish() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id="it")
    free: list[bool] = []

    def try_lock() -> None:
        free.append(engine._lock.acquire(timeout=5))
        if free[-1]:
            engine._lock.release()

    def hear(_: Notification) -> None:
        other = threading.Thread(target=try_lock)
        other.start()
        other.join()

    async def publish() -> None:
        for _ in range(3):
            assert len(await engine.apublish({"a": 1})) == 1

    asyncio.run(publish())  # from now on in the event loop
    engine.on_notification(hear)
    asyncio.run(publish())
    engine.publish({"a": 1})
    assert free == [True] * 4


@pytest.mark.parametrize("callback", ["text", None], ids=["no function", "a coroutine"])
def test_what_cannot_be_called_back_is_refused(callback: Any) -> None:
    async def coroutine(_: Notification) -> None: ...

    engine = Engine()
    given = coroutine if callback is None else callback
    calls: list[Callable[[], object]] = [
        lambda: engine.on_notification(given),
        lambda: engine.subscribe("a = 1", deliver=given),
        lambda: engine.subscribe_many("a = :a", {"a": [1]}, deliver=given),
        lambda: engine.subscribe_all({"x": "a = 1"}, deliver=given),
        lambda: engine.apply({"x": "a = 1"}, deliver=given),
    ]
    for call in calls:
        with pytest.raises(TocsinError, match="a callback is a"):
            call()
    assert len(engine) == 0


# async for


def test_a_stream_gets_what_other_threads_publish() -> None:
    engine = Engine()
    engine.subscribe("n > 0", id="it")

    async def read() -> list[Any]:
        found = []
        async with engine.notifications() as stream:
            thread = threading.Thread(
                target=lambda: [engine.publish({"n": n}) for n in range(1, 101)], daemon=True
            )
            thread.start()
            async for note in stream:
                found.append(note.events[0].attributes["n"])
                if len(found) == 100:
                    break
            thread.join()
        return found

    assert asyncio.run(read()) == list(range(1, 101))
    engine.publish({"n": 1})
    assert not engine._store.deliveries.is_wanted


def test_a_full_stream_drops_the_oldest_counts_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    engine.subscribe("n > 0", id="it")

    async def read() -> tuple[int, list[Any]]:
        stream = engine.notifications(limit=3)
        with caplog.at_level(logging.WARNING, "tocsin"):
            for n in range(1, 11):
                engine.publish({"n": n})
        stream.close()
        return stream.dropped, [note.events[0].attributes["n"] async for note in stream]

    assert asyncio.run(read()) == (7, [8, 9, 10])
    assert [record.getMessage() for record in caplog.records if "dropped" in record.getMessage()] == [
        record.getMessage() for record in caplog.records
    ]
    assert len(caplog.records) == 1
    with pytest.raises(TocsinError, match="1 or more"):
        engine.notifications(limit=0)


def test_closing_wakes_those_who_wait_and_cancelling_loses_nothing() -> None:
    engine = Engine()
    engine.subscribe("n > 0", id="it")

    async def run() -> list[Any]:
        stream = engine.notifications()
        first = asyncio.create_task(anext(stream, None))
        second = asyncio.create_task(anext(stream, None))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        engine.publish({"n": 1})
        got = await asyncio.wait_for(second, 10)
        assert got is not None
        third = asyncio.create_task(anext(stream, None))
        await asyncio.sleep(0)
        engine.publish({"n": 2})
        third.cancel()  # it was woken, and does not take the notification with it
        await asyncio.gather(third, return_exceptions=True)
        after = await asyncio.wait_for(anext(stream), 10)
        fourth = asyncio.create_task(anext(stream, None))
        await asyncio.sleep(0)
        await stream.aclose()
        stream.close()
        assert await asyncio.wait_for(fourth, 10) is None
        return [got.events[0].attributes["n"], after.events[0].attributes["n"]]

    assert asyncio.run(run()) == [1, 2]


def test_a_stream_that_nobody_holds_costs_the_engine_nothing() -> None:
    engine = Engine()
    engine.subscribe("n > 0", id="it")

    async def leave() -> None:
        task = asyncio.create_task(_first_of(engine))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(leave())
    gc.collect()
    engine.publish({"n": 1})
    assert not engine._store.deliveries.is_wanted


async def _first_of(engine: Engine) -> Notification | None:
    async for note in engine.notifications():
        return note
    return None


def test_a_stream_outlives_its_event_loop() -> None:
    engine = Engine()
    engine.subscribe("n > 0", id="it")
    stream = engine.notifications()

    async def wait() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), 0.01)

    asyncio.run(wait())
    engine.publish({"n": 1})

    async def take() -> Notification:
        return await anext(stream)

    assert asyncio.run(take()).subscription == "it"
