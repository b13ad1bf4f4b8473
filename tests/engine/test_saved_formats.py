"""Files of every format that Tocsin has written open with this version."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tocsin import Engine, attr
from tocsin.engine import EventClock

FILES = Path(__file__).parent / "saved"
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def engine_of_every_format() -> Engine:
    """Return the engine that is in the files.

    `format-1.tocsin` was made with the code of commit 8ad0583, and `format-2.tocsin` by the commit that added it, both by
    `engine_of_every_format().save(…)`; what only later formats hold is added by `with_state`.
    """
    engine = Engine(clock=EventClock(0), lateness=5, out_of_orderness=3)
    engine.stream("ticks", tick="1 second")
    engine.table("stock", key=["symbol", "b"])
    engine.table("empty", key="k")
    for i in range(12):
        row = {"symbol": f"S{i % 5}", "price": i % 7 - 1.5, "b": i % 2 == 0, "when": MOMENT, "n": 2**70 + i}
        engine.publish({**row, "text": "größe"}, stream="stock", time=i)
    engine.publish({"symbol": "S0", "b": True}, stream="stock", time=20, delete=True)
    kept: dict[str, Any] = {"when": MOMENT, "n": 2**70, "f": 7.0, "t": "ü"}
    engine.publish(kept, time=21, id="kept", valid_until=1000)
    engine.subscribe("price > 5", id="first", owner="ann", valid_from=2, valid_until=10_000)
    rows = {"s": [f"S{i % 4}" for i in range(80)], "p": [i % 11 for i in range(80)]}
    text = "symbol = :s and price > :p"
    engine.subscribe_many(text, rows, id="many-{row}-{s}", owner="bob", weight={"price": 2.5})
    mixed = {"v": [1, 2.5, "x", True, MOMENT, 2**80]}
    engine.subscribe_many("n = :v or price = :v", mixed, valid_until=9_000, id="mixed-{row}")
    engine.subscribe("select symbol, price + 1 as above from stock where b = true", id="selected")
    engine.subscribe((attr("price") > 7) & attr("symbol").contains("S"), id="built", weight=3.0)
    pair = "from ticks a next ticks b on b.symbol = a.symbol where b.price > a.price within 9 seconds"
    engine.subscribe(pair, id="pair", witness="full")
    jumps = "from ticks a next ticks b where b.price > a.price + :d publish as jumps"
    engine.subscribe_many(jumps, {"d": [0, 1, 2]}, id="jump{d}")
    engine.subscribe("select * from jumps", id="on published")
    engine.subscribe("select max(price) from table stock where symbol >= 'S2'", id="view")
    least = "select min(price) from table stock where price between :a and 20"
    engine.subscribe_many(least, {"a": [0, 1, 2]}, id="v{a}")
    for i in range(0, 80, 4):
        engine.unsubscribe(f"many-{i}-S{i % 4}")
    return engine


def with_state(engine: Engine) -> Engine:
    """Return the engine with partial matches, waiting events, and a view whose last change was not reported."""
    engine.subscribe("select max(price) from table stock where price > 0", id="later", valid_from=200)
    for time, price in enumerate((5, 3, 4, 9), 30):
        engine.publish({"symbol": "A", "price": price}, stream="ticks", time=time, id=f"t{time}")
    engine.publish({"symbol": "S9", "price": 50, "b": False}, stream="stock", time=35, id="high")
    return engine


def told(engine: Engine) -> list[Any]:
    """Return what an engine tells its subscribers of the same events."""
    notes = list(engine.subscribe("t = 'ü'", id="late").notifications)
    for time in range(40, 48):
        row = {"symbol": f"S{time % 3}", "price": time % 5 + 3, "n": 2**80, "b": time % 2 == 0}
        for stream in ("stock", "ticks", None):
            notes += engine.publish(row, stream=stream, time=time, id=f"{time} {stream}")
    notes += engine.publish({"symbol": "S9", "price": 60, "b": False}, stream="stock", time=300, id="higher")
    notes += engine.flush()
    return [
        (one.subscription, one.values, one.old, one.new, one.start, one.end, one.witness) for one in notes
    ]


def test_a_file_of_the_first_format_opens() -> None:
    expected = engine_of_every_format()
    opened = Engine.open(FILES / "format-1.tocsin")
    assert list(opened.subscriptions()) == list(expected.subscriptions())
    assert [opened.owner(one.id) for one in opened.subscriptions()] == [
        expected.owner(one.id) for one in expected.subscriptions()
    ]
    assert opened.stats().views.rows == expected.stats().views.rows == 9
    assert opened.stats().kept_events == 1
    assert opened._clock.now() == 21
    # Numbers are given anew, so that the order of filters is another.
    assert sorted(map(repr, told(opened))) == sorted(map(repr, told(expected)))


def test_a_file_of_the_second_format_opens_with_all_that_waited() -> None:
    expected = with_state(engine_of_every_format())
    opened = Engine.open(FILES / "format-2.tocsin")
    assert list(opened.subscriptions()) == list(expected.subscriptions())
    assert opened.stats().sequences.waiting == expected.stats().sequences.waiting > 0
    assert opened.stats().sequences.instances == expected.stats().sequences.instances > 0
    notes = told(expected)
    assert told(opened) == notes
    assert [(old, new) for id_, _, old, new, *_ in notes if id_ == "later"] == [(4.5, 60)]
