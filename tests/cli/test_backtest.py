"""`tocsin backtest`: by day, for filters, sequences and views, with the counts of an engine that runs event by event."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import tocsin
from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.engine.backtest import EVERY, DayCounts
from tocsin.formats import EventFields, EventReader, open_events
from tocsin.model.ticks import StreamTicks

QUERIES = {
    "high": "price > 80",
    "select": "select symbol from trades where price > 60",
    "rise": (
        "from trades a next trades b on b.symbol = a.symbol where b.price > 1.5 * a.price within 2 days "
        "select b.price as price publish as rises"
    ),
    "published": "from rises where price > 10",
    "best": "select max(price) from table trades where price < 90",
}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return [
        {
            "symbol": "ABC"[i % 3],
            "price": (i * 37) % 101,
            "at": (BEGIN + timedelta(hours=7 * i)).isoformat().replace("+00:00", "Z"),
        }
        for i in range(60)
    ]


def expected(path: Path) -> dict[str, Counter[str]]:
    """Return the notifications by subscription and day, as an engine sends them event by event."""
    engine = Engine(matcher="oracle", clock=EventClock())
    engine.table("trades", key="symbol")
    for name, text in QUERIES.items():
        engine.subscribe(text, id=name)
    reader = EventReader(EventFields(time="at"), stream="trades", ticks=engine.ticks)
    found = {name: Counter[str]() for name in QUERIES}
    notes = [note for event in open_events(path, reader) for note in engine.publish_many([event])]
    for note in [*notes, *engine.flush()]:
        day = BEGIN.fromtimestamp((note.end or 0) / 1e6, UTC).date().isoformat()
        found[note.subscription][day] += 1
    return found


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        path.write_text(
            "symbol,price,at\n" + "".join(f"{r['symbol']},{r['price']},{r['at']}\n" for r in rows)
        )
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_all_kinds_of_queries_are_counted_by_day(
    suffix: str, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = write(tmp_path / f"trades{suffix}", rows)
    file = tmp_path / "subscriptions.txt"
    file.write_text("".join(f"{name}: {text}\n" for name, text in QUERIES.items()))
    counts = tmp_path / "days.json"
    done = tocsin(
        "backtest", path, "-f", file, "--stream", "trades", "--table", "trades=symbol", "--time-field", "at",
        "--json", counts,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(counts.read_text())
    wanted = expected(path)
    assert {name: sum(days.values()) for name, days in wanted.items()} == found["subscriptions"]
    assert min(found["subscriptions"].values()) > 0
    for name, days in wanted.items():
        by_day = {
            day["day"]: day["notifications"][name] for day in found["days"] if name in day["notifications"]
        }
        assert by_day == dict(days)
    assert (found["events"], sum(day["events"] for day in found["days"])) == (60, 60)
    assert f"{found['total']} notifications of 60 events on {len(found['days'])} days" in done.stdout


def test_a_chart_is_printed_by_day(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = write(tmp_path / "trades.jsonl", rows[:8])
    done = tocsin("backtest", path, "-s", "price > 30", "--time-field", "at")
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        "day         events  notifications",
        "2026-01-01       4              2  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇",
        "2026-01-02       3              2  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇",
        "2026-01-03       1              1  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇",
        "5 notifications of 8 events on 3 days: 1.7 a day, at most 2 on 2026-01-01",
    ]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"a":1,"at":"2026-01-01T00:00:00Z"}\nbroken\n{"a":1}\n{"a":1,"at":1e40}\n')
    done = tocsin("backtest", path, "-s", "a = 1", "--time-field", "at")
    assert done.returncode == 1
    assert "1 notification of 1 event on 1 day" in done.stdout
    assert f"{path}:2: not JSON" in done.stderr
    assert f"{path}:3: the record has no `at`" in done.stderr
    assert "3 rows left out: no events" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--time-field", "at"), "nothing is subscribed"),
        (("-s", "a =", "--time-field", "at"), "-s:1:4: subscription `s1`: a value is missing"),
        (("-f", "twice.txt", "--time-field", "at"), "twice.txt:2: another subscription is called so already"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    arguments: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").write_text('{"a":1,"at":"2026-01-01T00:00:00Z"}\n')
    Path("twice.txt").write_text("x: a = 1\nx: a = 2\n")
    done = tocsin("backtest", "events.jsonl", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


def test_days_need_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("timeless.jsonl").write_text('{"a":1,"from":"2026-01-01","to":"2026-01-02"}\n')
    done = tocsin("backtest", "timeless.jsonl", "-s", "a = 1")
    assert done.returncode == 2
    assert "no attribute of timeless.jsonl is their time beyond doubt" in done.stderr
    assert "--time-field (`from`, `to`?)" in done.stderr
    piped = tocsin("backtest", "-", "-s", "a = 1", stdin="{}")
    assert piped.returncode == 2
    assert "name it with --time-field" in piped.stderr
    Path("timed.jsonl").write_text('{"a":1,"at":"2026-01-01"}\n')
    found = tocsin("backtest", "timed.jsonl", "-s", "a = 1")
    assert found.returncode == 0
    assert "2026-01-01" in found.stdout


@pytest.mark.parametrize("length", [1, 1_000_000, 7_000_000, 86_400_000_000])
def test_days_are_counted_in_the_ticks_of_each_stream(length: int) -> None:
    engine = Engine(clock=EventClock(), time_unit="microseconds")
    if length > 1:
        engine.stream("s", tick=length)
    engine.subscribe("true", id=EVERY)
    engine.subscribe("from s where true", id="s")
    day = 86_400_000_000
    counts, alone = DayCounts(engine.ticks), DayCounts(engine.ticks)
    for days in (-1, 0, 3, 20_000):
        for stream, tick in (("s", length), (None, 1)):
            time = -(-(days * day) // tick)
            notes = engine.publish_many([{"a": 1}] * 20, stream=stream)[:0]
            assert notes == []
            found = engine.publish_many([{"a": 1, "t": time}] * 20, stream=stream, time="t")
            counts.add(found)
            alone.add_each(list(found))
    result = counts.result(["s"], 0)
    assert result == alone.result(["s"], 0)
    assert [(one.day.isoformat(), one.events, one.notifications) for one in result.days] == [
        ("1969-12-31", 40, {"s": 20}), ("1970-01-01", 40, {"s": 20}), ("1970-01-04", 40, {"s": 20}), ("2024-10-04", 40, {"s": 20})
    ]  # fmt: skip


def test_times_outside_the_calendar_are_faults() -> None:
    engine = Engine(clock=EventClock(), time_unit="microseconds")
    engine.subscribe("true", id=EVERY)
    counts = DayCounts(StreamTicks())
    counts.add(engine.publish_many([{"a": 1, "t": time} for time in (-(2**62), 0, 2**62)], time="t"))
    found = counts.result([], 4)
    assert (found.events, found.faults, len(found.days)) == (1, 6, 1)
