"""A saved engine opens as the same one; a damaged or foreign file is refused, and no file is ever half written."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import Engine, attr
from tocsin.engine import EventClock, ManualClock
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import SavedError
from tocsin.structures import archive

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVENTS = [
    {"symbol": f"S{i % 7}", "price": i % 23 - 3, "b": i % 2 == 0, "when": MOMENT, "n": 2**70 + i}
    for i in range(120)
]


def full_engine(**options: Any) -> Engine:
    """Return an engine with something of everything that is saved."""
    engine = Engine(clock=EventClock(0), **options)
    engine.stream("ticks", tick="1 second")
    engine.table("stock", key=["symbol", "b"])
    engine.table("empty", key="k")
    for row in EVENTS[:60]:
        engine.publish({**row, "text": "größe"}, stream="stock", time=3)
    engine.publish({"symbol": "S0", "b": False}, stream="stock", time=4, delete=True)
    engine.subscribe("price > 5", id="first", owner="ann", valid_from=2, valid_until=10_000)
    count = 300
    rows: dict[str, list[Any]] = {
        "s": [f"S{i % 9}" for i in range(count)],
        "p": [i % 11 for i in range(count)],
    }
    engine.subscribe_many(
        "symbol = :s and price > :p", rows, id="many-{row}-{s}", owner="bob", weight={"price": 2.5}
    )
    engine.subscribe("select symbol, price + 1 as above from stock where b = true", id="selected")
    mixed = [1, 2.5, "x", True, MOMENT, 2**80, "\u00e9"] * 20
    engine.subscribe_many("n = :v or price = :v or symbol = :v", {"v": mixed}, valid_until=9_000)
    lists = [["S1", "S2"], [3, 4.5], [MOMENT]] * 30
    engine.subscribe_many(
        "symbol in :v or price in :v", {"v": lists, "id": [f"größe {i}" for i in range(90)]}, id="id"
    )
    engine.subscribe_all(
        {f"text {i}": f"price = {i % 9} and symbol = 'S{i % 3}'" for i in range(200)}, owner="ann"
    )
    engine.subscribe((attr("price") > 7) & attr("symbol").contains("S"), id="built", weight=3.0)
    engine.subscribe(
        "from ticks a next ticks b on b.symbol = a.symbol where b.price > a.price within 3 seconds",
        id="pair",
        witness="full",
    )
    engine.subscribe_many(
        "from ticks a next ticks b where b.price > a.price + :d publish as jumps",
        {"d": list(range(70))},
        id="jump{d}",
    )
    engine.subscribe("select * from jumps", id="on published")
    engine.subscribe("select max(price) from table stock where symbol >= 'S2'", id="view")
    engine.subscribe_many(
        "select min(price) from table stock where price between :a and 20", {"a": list(range(100))}, id="v{a}"
    )
    for i in range(0, 300, 4):
        engine.unsubscribe(f"many-{i}-S{i % 9}")
    for i in range(180):
        engine.unsubscribe(f"text {i}")
    engine.subscribe("price < 0", id="first", replace=True, owner="ann", valid_until=5_000)
    return engine


def contents(engine: Engine) -> list[Any]:
    found = engine.subscriptions()
    return [(one, engine.owner(one.id)) for one in found]


def told(engine: Engine, seed: int) -> list[Any]:
    """Publish random events, and return what the subscribers are told, without the generated ids of events."""
    chosen = [EVENTS[i] for i in np.random.default_rng(seed).integers(len(EVENTS), size=60).tolist()]
    notes = []
    for time, event in enumerate(chosen, 100):
        for stream in (None, "ticks", "stock"):
            found = engine.publish(event, stream=stream, time=time, id=f"{time} {stream}")
            notes += sorted(
                found, key=lambda note: (note.view, note.subscription)
            )  # as numbers have no order
    return [
        (note.subscription, note.event_ids, note.values, note.old, note.new, note.witness, note.generation)
        for note in notes
    ]


@pytest.mark.parametrize("matcher", [None, "opindex", "oracle"])
def test_an_engine_opens_as_it_was_saved(tmp_path: Path, matcher: str | None) -> None:
    engine = full_engine(matcher=matcher)
    done = engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine")
    assert contents(opened) == contents(engine)
    assert (done.subscriptions, done.tables, done.rows, done.left_out) == (len(engine), 2, 13, ())
    assert done.bytes == (tmp_path / "engine").stat().st_size
    assert [opened.answer(id_) for id_ in ("view", "v3", "v99")] == [
        engine.answer(id_) for id_ in ("view", "v3", "v99")
    ]
    assert opened.ticks.lengths == engine.ticks.lengths
    assert told(opened, 1) == told(engine, 1)
    assert opened.stats().matcher.conjunctions == engine.stats().matcher.conjunctions
    again = opened.save(tmp_path / "again")
    assert (again.subscriptions, again.rows) == (done.subscriptions, opened.stats().views.rows)
    assert contents(Engine.open(tmp_path / "again")) == contents(engine)


def test_an_opened_engine_can_be_changed_like_any_other(tmp_path: Path) -> None:
    engine = full_engine()
    engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine")
    for one in (engine, opened):
        one.unsubscribe("view")
        one.subscribe("price = 1", id="many-1-S1", replace=True)
        one.apply({"first": "price < 1", "new": "price > 2"}, owner="ann")
        with pytest.raises(Exception, match="subscribed already"):
            one.subscribe("price = 1", id="pair")
    assert contents(opened) == contents(engine)
    assert told(opened, 2) == told(engine, 2)
    count = len(engine)
    opened.publish({"price": 1}, time=20_000)
    engine.publish({"price": 1}, time=20_000)
    assert len(opened) == len(engine) == count - 140  # which were valid until then


def test_options_clocks_and_kept_events_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "engine"
    engine = Engine(
        matcher="opindex",
        clock=EventClock(70),
        lateness=5,
        out_of_orderness=7,
        memory_limit=10**6,
        view_matcher="opindex",
    )
    engine.publish({"when": MOMENT, "n": 2**70, "f": float(7), "t": "ü"}, time=80, id="kept", valid_until=100)
    engine.subscribe("n > 1", id="it", valid_until=200)
    assert engine.save(path).kept_events == 1
    opened = Engine.open(path)
    assert opened._options == engine._options
    assert opened._clock.now() == 80
    notes = opened.subscribe("t = 'ü'", id="late").notifications
    assert [(note.events, note.subscription) for note in notes] == [
        (engine.subscribe("t = 'ü'", id="late").notifications[0].events, "late")
    ]
    assert opened.stats().generation == engine.stats().generation
    opened.publish({"x": 1}, time=101)
    assert opened.stats().kept_events == 0
    assert "it" in Engine.open(path, clock=ManualClock(204))
    assert "it" not in Engine.open(path, clock=ManualClock(207))


def test_what_cannot_be_saved_is_named_and_must_be_given_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "engine"
    engine = Engine(clock=ManualClock(), out_of_orderness=2, on_late=print)
    engine.subscribe("from s a next s b where b.x > 99", id="pair", deliver=print)
    engine.on_notification(print)
    for time in range(5):
        engine.publish({"x": 1}, stream="s", time=time)
    with caplog.at_level(logging.WARNING, "tocsin"):
        saved = engine.save(path)
    assert [text.partition(":")[0] for text in saved.left_out] == [
        "1 subscriptions' callbacks",
        "1 callbacks and streams of all notifications",
        "the clock, a ManualClock",
        "the callback for late events",
    ]
    stats = engine.stats().sequences
    assert (saved.partial_matches, saved.waiting) == (stats.instances, stats.waiting) == (2, 2)
    assert all(text in caplog.text for text in saved.left_out)
    about = json.loads(zipfile.ZipFile(path).read("about.json"))
    assert about["clock"] == {"kind": "other", "name": "ManualClock"}
    with pytest.raises(SavedError, match=r"a ManualClock; give one: `Engine.open\(…, clock=…\)`"):
        Engine.open(path)
    opened = Engine.open(path, clock=ManualClock(), on_late=print)
    assert opened.stats().sequences.instances == stats.instances


def test_statistics_are_saved_and_may_be_given_anew(tmp_path: Path) -> None:
    statistics = Statistics.of([{"a": i % 3} for i in range(50)])
    Engine(statistics=statistics).save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine")
    assert opened._statistics is not None
    assert opened._statistics.to_document() == statistics.to_document()
    other = Statistics.of([{"b": 1}])
    assert Engine.open(tmp_path / "engine", statistics=other)._statistics is other


def test_pickling_and_copying_say_what_to_do() -> None:
    engine = Engine()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"`engine.save\(path\)`.*`Engine.open\(path\)`"):
            attempt(engine)


def test_an_empty_engine_is_saved_too(tmp_path: Path) -> None:
    Engine().save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine")
    assert len(opened) == 0
    opened.subscribe("a = 1", id="it")
    assert len(opened.publish({"a": 1})) == 1


def test_rows_of_templates_are_saved_as_columns(tmp_path: Path) -> None:
    engine = Engine()
    count = 20_000
    rows = {"s": [f"SYM{i % 50}" for i in range(count)], "p": np.arange(count) % 90}
    engine.subscribe_many("symbol = :s and price > :p", rows, id="alert-{row}")
    done = engine.save(tmp_path / "engine")
    assert done.bytes < 8 * count
    with zipfile.ZipFile(tmp_path / "engine") as file:
        assert len(file.read("about.json")) < 4_000
        assert len(file.namelist()) < 10
    opened = Engine.open(tmp_path / "engine")
    event = {"symbol": "SYM7", "price": 50}
    assert opened.match([event]).ids == engine.match([event]).ids


def test_many_subscriptions_of_many_owners_are_few_members(tmp_path: Path) -> None:
    engine = Engine(clock=EventClock(0))
    for i in range(500):
        engine.subscribe(
            f"a = {i} and b > 1", id=f"i{i}", owner=f"o{i}", valid_until=1000 + i, weight=1.0 + i
        )
    for i in range(100):
        engine.subscribe_many("a = :a", {"a": [i]}, id=f"t{i}-{{a}}")
    engine.save(tmp_path / "engine")
    with zipfile.ZipFile(tmp_path / "engine") as file:
        assert len(file.namelist()) < 20
    assert contents(Engine.open(tmp_path / "engine")) == contents(engine)


# files that are no saved engines, or not any more


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda _: None, "there is no such file"),
        (lambda path: path.mkdir(), "this is a folder"),
        (lambda path: path.write_bytes(b""), "no file of Tocsin's"),
        (lambda path: path.write_text("price > 3"), "no file of Tocsin's"),
        (lambda path: zipped(path, {"other": "x"}), "Tocsin did not write"),
        (lambda path: zipped(path, {"about.json": "[1"}), "no JSON object"),
        (lambda path: zipped(path, {"about.json": '{"saved": "tocsin lunch"}'}), "a `tocsin lunch`"),
        (lambda path: Engine().save_tables(path), "Tocsin did not write"),
    ],
)
def test_foreign_files_are_refused_by_name(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(SavedError, match=reason) as refused:
        Engine.open(path)
    assert str(refused.value).startswith(f"{path}: ")
    if path.exists():
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(SavedError):
            Engine().save(path)
        assert path.is_dir() or path.read_bytes() == before


def zipped(path: Path, members: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)


def run(about: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the description of the first run that has a template, or texts."""
    found: dict[str, Any] = next(one for one in about["subscriptions"] if kind in one)
    return found


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Write an engine's file again with another document, and right checksums."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    about = json.loads(members["about.json"])
    change(about)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in (members | {"about.json": json.dumps(about).encode()}).items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda about: about.update(format=99, tocsin="9.9"), r"saved by Tocsin 9\.9 in format 99"),
        (lambda about: about.update(options={"matcher": "opindex", "speed": 3}), "its options are others"),
        (lambda about: about.pop("ticks"), "KeyError"),
        (lambda about: run(about, "texts").pop("ids"), "KeyError"),
        (lambda about: run(about, "template").update(ids={"strings": ["one"]}), "do not fit"),
        (lambda about: run(about, "template").update(template="price >"), "refuses what is in it"),
        (lambda about: run(about, "template")["columns"].pop("s"), "columns of a template do not fit"),
        (lambda about: run(about, "texts").update(texts={"strings": []}), "do not fit"),
        (
            lambda about: run(about, "texts")["texts"]["strings"].__setitem__(0, "price >"),
            "`selected`: .*missing",
        ),
        (lambda about: about.update(numbers={"from": 1, "to": 9}), "numbers of subscriptions do not fit"),
        (
            lambda about: about.update(free={"cells": [0], "type": "<i8"}),
            "numbers of subscriptions do not fit",
        ),
    ],
)
def test_contents_that_do_not_fit_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    path = tmp_path / "engine"
    full_engine().save(path)
    rewritten(path, lambda _: None)
    assert len(Engine.open(path)) == len(full_engine())
    rewritten(path, change)
    with pytest.raises(SavedError, match=reason):
        Engine.open(path)


def test_a_damaged_file_is_refused_or_unharmed(tmp_path: Path) -> None:
    path = tmp_path / "engine"
    engine = Engine(clock=EventClock(0))
    engine.table("t", key="k")
    for k in range(80):
        engine.publish({"k": k, "v": f"v{k}"}, stream="t", time=1)
    engine.subscribe_many("a = :a and b = :b", {"a": list(range(100)), "b": ["x"] * 100}, id="{a}")
    engine.subscribe("c = 1", id="single")
    engine.save(path)
    whole = path.read_bytes()
    expected, rows = contents(engine), engine.stats().views.rows
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(SavedError):
            Engine.open(path)
    chosen = np.random.default_rng(5)
    refused = 0
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[int(chosen.integers(len(whole)))] ^= 1 << int(chosen.integers(8))
        path.write_bytes(damaged)
        try:
            opened = Engine.open(path)
        except SavedError:
            refused += 1
        else:  # a time, or a flag that nobody reads
            assert (contents(opened), opened.stats().views.rows) == (expected, rows)
    assert refused > 120


def test_a_save_that_fails_leaves_the_file_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "engine"
    engine = full_engine()
    engine.save(path)
    before = path.read_bytes()
    written: list[str] = []
    write = archive._write_member

    def fail(file: zipfile.ZipFile, name: str, content: Any) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(name)
        write(file, name, content)

    monkeypatch.setattr(archive, "_write_member", fail)
    engine.unsubscribe("view")
    with pytest.raises(SavedError, match="No space left on device"):
        engine.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["engine"]
    monkeypatch.undo()
    engine.save(path)
    assert "view" not in Engine.open(path)
    with pytest.raises(SavedError, match="cannot be written"):
        engine.save(tmp_path / "no folder" / "engine")
