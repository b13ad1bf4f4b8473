"""`apublish`: in the event loop while events are quick and nobody holds the lock, in a thread otherwise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tocsin import Engine
from tocsin.engine import pace as module


def published_in(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The thread of each event that is published from now on."""
    threads: list[int] = []
    publish = engine.publish

    def watched(event: Any, **options: Any) -> Any:
        threads.append(threading.get_ident())
        return publish(event, **options)

    monkeypatch.setattr(engine, "publish", watched)
    return threads


@contextmanager
def held(engine: Engine) -> Iterator[None]:
    """Another thread holds the engine's lock."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine._lock:
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(30)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.subscribe("a > 0", id="x")
    return made


def test_quick_events_are_published_in_the_loop(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUICK", 60.0)
    threads = published_in(engine, monkeypatch)

    async def run() -> int:
        for _ in range(3):
            assert [note.subscription for note in await engine.apublish({"a": 1})] == ["x"]
        return threading.get_ident()

    loop = asyncio.run(run())
    assert threads[0] != loop  # nothing is known yet of how long it takes
    assert threads[1:] == [loop, loop]


def test_after_a_new_subscription_the_first_event_is_published_in_a_thread(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUICK", 60.0)
    threads = published_in(engine, monkeypatch)

    async def run() -> int:
        await engine.apublish({"a": 1})
        engine.subscribe("b > 0", id="y")
        await engine.apublish({"a": 1})
        await engine.apublish({"a": 1})
        return threading.get_ident()

    loop = asyncio.run(run())
    assert [thread == loop for thread in threads] == [False, False, True]


def test_slow_events_are_published_in_threads(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUICK", 0.0)
    threads = published_in(engine, monkeypatch)

    async def run() -> int:
        await asyncio.gather(*(engine.apublish({"a": 1}) for _ in range(5)))
        return threading.get_ident()

    assert asyncio.run(run()) not in threads
    assert len(threads) == 5


def test_the_loop_goes_on_while_another_call_holds_the_lock(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUICK", 60.0)

    async def run() -> list[str]:
        await engine.apublish({"a": 1})
        with held(engine):
            waiting = asyncio.create_task(engine.apublish({"a": 1}))
            for _ in range(5):
                await asyncio.sleep(0.001)
            assert not waiting.done()
        return [note.subscription for note in await waiting]

    assert asyncio.run(run()) == ["x"]


def test_the_event_that_loads_an_index_is_published_in_a_thread(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUICK", 60.0)
    threads = published_in(engine, monkeypatch)

    async def run() -> int:
        monkeypatch.setattr(engine._store.filters.matcher, "_max_few", 0)
        await engine.apublish({"a": 1})
        monkeypatch.setattr(engine._store.filters.matcher, "_max_tried", 1)
        await engine.apublish({"a": 1})
        return threading.get_ident()

    assert asyncio.run(run()) not in threads


def test_an_error_is_raised_where_it_is_awaited(engine: Engine) -> None:
    async def run() -> None:
        for _ in range(3):
            with pytest.raises(Exception, match="not valid Unicode"):
                await engine.apublish({"a": "\ud800"})

    asyncio.run(run())
