"""The calls of an event in Tocsin's files: at most as many as in docs/architecture.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tocsin
from tocsin import Engine
from tocsin.engine import EventClock

PACKAGE = str(Path(tocsin.__file__).parent)
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
EVENT: dict[str, object] = {"symbol": "S10", "price": 50, "a": 1, "b": "x", "c": 2.5}


def filters() -> Callable[[int], list[Any]]:
    engine = Engine()
    count = 6_000  # as many as are indexed at once
    engine.subscribe_many(
        "symbol = :s and price > :p", {"s": [f"S{i}" for i in range(count)], "p": list(range(count))}
    )
    return lambda _: engine.publish(EVENT)


def sequences() -> Callable[[int], list[Any]]:
    engine = Engine(clock=EventClock())
    engine.subscribe("from stock a next stock b on b.symbol = a.symbol where b.price > a.price")
    return lambda time: engine.publish({**EVENT, "price": time}, stream="stock", time=time)


def views() -> Callable[[int], list[Any]]:
    engine = Engine(clock=EventClock())
    engine.table("stock", key="symbol")
    engine.subscribe("select max(price) from table stock where a between 0 and 5")
    return lambda time: engine.publish({**EVENT, "price": time}, stream="stock", time=time)


@pytest.mark.parametrize(("kind", "make"), [("filter", filters), ("sequence", sequences), ("view", views)])
def test_an_event_takes_no_more_calls_and_files_than_documented(
    kind: str, make: Callable[[], Callable[[int], list[Any]]]
) -> None:
    row = re.search(rf"^\| {kind} \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    calls, files = [int(cell) for cell in row[1].split("|")][-2:]
    publish = make()
    for time in range(1, 5):
        publish(time)
    seen: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        notifications = publish(5)
    finally:
        sys.setprofile(before)
    assert len(notifications) == 1
    assert len(seen) <= calls
    assert len(set(seen)) <= files
