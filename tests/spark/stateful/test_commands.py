"""`tocsin spark` with sequences and views: what it prints and writes are the engine's notifications."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow.csv import read_csv
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from tests.spark.test_command_line import _Lent
from tocsin import Engine
from tocsin.cli.app import app
from tocsin.cli.sample_data import sample_files
from tocsin.engine import EventClock
from tocsin.errors import TocsinError

Run = Callable[..., Result]
RISE = (
    "from trades a next trades b on b.symbol = a.symbol where b.price > 1.01 * a.price within 10 minutes "
    "select b.symbol, a.price as first, b.price as second"
)
HIGHEST = "select max(price) from table trades where volume > 500"
BIG = "from trades where volume > 2500"
TEXTS = {"rise": RISE, "highest": HIGHEST, "big": BIG}
ON_TIME = ("--time-field", "time", "--id-field", "id", "--quiet")


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("tocsin.spark.session.session", lambda *_, **__: _Lent(spark))

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, ["spark", *map(str, arguments)])

    return invoke


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with trades, an id each, and subscriptions to them."""
    header, *lines = sample_files()["trades.csv"].splitlines()
    (tmp_path / "trades.csv").write_text(
        "\n".join([f"id,{header}", *(f"e{n},{line}" for n, line in enumerate(lines))])
    )
    (tmp_path / "rules.txt").write_text("".join(f"{id_}: {text}\n" for id_, text in TEXTS.items()))
    return tmp_path


def engines(home: Path, texts: dict[str, str], rows: slice = slice(None)) -> list[str]:
    """Return the engine's notifications of some trades."""
    engine = Engine(clock=EventClock())
    engine.table("trades", key="symbol")
    engine.apply(texts)
    found = []
    for row in read_csv(home / "trades.csv").to_pylist()[rows]:
        for note in engine.publish(row, stream="trades", time=row["time"], id=row["id"]):
            values = None if note.values is None else dict(note.values)
            answers = (note.old, note.new) if note.view else (None, None)
            found.append(repr((note.subscription, list(note.event_ids), values, *answers)))
    return sorted(found)


def sparks(lines: list[dict[str, Any]]) -> list[str]:
    """Return notifications that a command wrote as `engines` does."""
    return sorted(
        repr(
            (
                line["subscription"],
                line["event_ids"],
                *(_value(line[name]) for name in ("values", "old", "new")),
            )
        )
        for line in lines
    )


def _value(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else text


def test_match_prints_the_engines_notifications(run: Run, home: Path) -> None:
    done = run(
        "match",
        home / "trades.csv",
        "-f",
        home / "rules.txt",
        "--table",
        "trades=symbol",
        "--values",
        *ON_TIME,
    )
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["subscription"] for line in found} == TEXTS.keys()
    assert sparks(found) == engines(home, TEXTS)


def test_explain_prints_the_stages_and_ends(run: Run, home: Path) -> None:
    given = ("-f", home / "rules.txt", "--table", "trades=symbol", *ON_TIME)
    done = run("match", home / "trades.csv", *given, "--explain", "--state-shards", 3)
    assert done.exit_code == 0, done.output
    told = done.stdout
    assert "Filters: 1 subscription on one shard" in told
    assert "1 sequence is keyed by trades: symbol" in told
    assert "Spark sorts each shard's events by their end" in told
    assert '"subscription"' not in told
    assert "keyed by" not in run("match", home / "trades.csv", "-s", BIG, "--explain", *ON_TIME).stdout
    tested = run("backtest", home / "trades.csv", *given[:-3], "--quiet", "--explain")
    assert "1 sequence is keyed by trades: symbol" in tested.stdout, tested.output


def test_backtest_counts_as_the_engine_does(run: Run, home: Path) -> None:
    file = home / "found.json"
    asked = (
        "-f",
        home / "rules.txt",
        "--table",
        "trades=symbol",
        "--time-field",
        "time",
        "--quiet",
        "--json",
        file,
    )
    done = run("backtest", home / "trades.csv", *asked)
    assert done.exit_code == 0, done.output
    counted = json.loads(file.read_text())["subscriptions"]
    wanted = Counter(ast.literal_eval(line)[0] for line in engines(home, TEXTS))
    assert counted == wanted


def test_a_stream_goes_on_with_more_shards_and_tells_what_is_late(run: Run, home: Path) -> None:
    header, *lines = (home / "trades.csv").read_text().splitlines()
    (home / "trades").mkdir()

    def send(name: str, some: list[str]) -> None:
        (home / "trades" / name).write_text("\n".join([header, *some]))

    def stream(checkpoint: str, shards: int) -> None:
        texts = (
            "-f",
            home / "rules.txt",
            "--table",
            "trades=symbol",
            "--values",
            "--late",
            "--once",
            "--quiet",
        )
        where = ("--sink", home / "notes", "--checkpoint", home / checkpoint, "--index", home / "index")
        reading = ("--time-field", "time", "--id-field", "id", "--stream", "trades", "--input-format", "csv")
        shown = ("--state-shards", shards)
        done = run("run", home / "trades", *texts, *where[:4], *reading, *shown)
        assert done.exit_code == 0, done.output

    send("1.csv", lines[:900])
    stream("checkpoint", 2)
    grown = run("grow", home / "checkpoint", home / "more", "--state-shards", 4, "--quiet")
    assert grown.exit_code == 0, grown.output
    assert "a checkpoint with 4 shards; go on with --checkpoint" in grown.stderr
    send("2.csv", [*lines[900:], lines[3].replace("e3,", "late,")])
    stream("more", 4)
    found = pq.read_table(home / "notes").to_pylist()
    late = [line for line in found if line["reason"] is not None]
    assert [(line["event_id"], line["subscription"]) for line in late] == [("late", None)]
    assert "before the watermark" in late[0]["reason"]
    # Views take rows as they come, and tell their first answer, which no event causes.
    in_order = [line for line in found if line["event_id"] not in ("late", None)]
    assert sparks(in_order) == engines(home, TEXTS)


@pytest.mark.parametrize(
    ("command", "text", "told"),
    [
        ("match", RISE, "name the field with its end with --time-field"),
        ("run", RISE, "name the field with its end with --time-field"),
        ("match", "from trades a nxt trades b", "no subscription could be read"),
        ("run", "from trades a nxt trades b", "no subscription could be read"),
    ],
)
def test_what_is_wrong_with_subscriptions_is_said_before_spark_starts(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, text: str, told: str
) -> None:
    def session(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("tocsin.spark.session.session", session)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    more = ("--sink", home / "notes", "--checkpoint", home / "checkpoint") if command == "run" else ()
    given = ["spark", command, home / "trades.csv", "-s", text, *more, "--quiet"]
    done = CliRunner().invoke(app, list(map(str, given)))
    assert isinstance(done.exception, TocsinError)
    assert told in str(done.exception)
    assert ("did you mean `next`?" in done.stderr) is ("nxt" in text)
    assert not (home / "checkpoint").exists()
