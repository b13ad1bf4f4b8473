"""`tocsin spark …`: in this process and its session where that will do, and once through `spark-submit`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import tocsin
from tocsin.cli.app import app
from tocsin.errors import TocsinError
from tocsin.index import SubscriptionIndex
from tocsin.matching.statistics import Statistics

Run = Callable[..., Result]


class _Lent:
    """A session that a command may use but not stop."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Leave the session to the tests that follow."""


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("tocsin.spark.session.session", lambda *_, **__: _Lent(spark))

    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["spark", *map(str, arguments)])

    return invoke


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    rows = [{"id": f"e{n}", "a": n % 10, "at": f"2026-01-0{n % 3 + 1}T00:00:00Z"} for n in range(30)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "{oops\n")
    return file


def pairs(lines: str) -> set[tuple[str, str]]:
    found = [json.loads(line) for line in lines.splitlines()]
    return {(one["subscription"], one["event_id"]) for one in found}


def expected(*texts: str) -> set[tuple[str, str]]:
    """Return the engine's matches of the events."""
    engine = tocsin.Engine()
    for number, text in enumerate(texts, 1):
        engine.subscribe(text, id=f"s{number}")
    return {
        (note.subscription, f"e{n}")
        for n in range(30)
        for note in engine.publish({"id": f"e{n}", "a": n % 10})
    }


def test_match_joins_a_table(run: Run, tmp_path: Path) -> None:
    rows = {"id": [f"e{n}" for n in range(30)], "a": [n % 10 for n in range(30)]}
    pq.write_table(pa.table(rows), tmp_path / "events.parquet")
    asked = [
        "match",
        tmp_path / "events.parquet",
        "-s",
        "a = 1",
        "-s",
        "a + 1 = 3",
        "--id-field",
        "id",
        "--quiet",
    ]
    done = run(*asked, "--plan", "join")
    assert done.exit_code == 0, done.output
    assert pairs(done.stdout) == {("s1", f"e{n}") for n in (1, 11, 21)} | {
        ("s2", f"e{n}") for n in (2, 12, 22)
    }


def test_match_says_why_it_cannot_join_lines_of_json(run: Run, events: Path) -> None:
    done = run("match", events, "-s", "a = 1", "--id-field", "id", "--plan", "join")
    assert done.exit_code != 0
    assert "is JSON: read it with from_json first" in f"{done.output}{done.exception}"


def test_match_prints_the_engines_notifications_and_reports_skipped_rows(run: Run, events: Path) -> None:
    done = run("match", events, "-s", "a > 7", "-s", "a = 1", "-s", "a =", "--id-field", "id")
    assert done.exit_code == 1
    assert pairs(done.stdout) == expected("a > 7", "a = 1")
    assert "subscription `s3`: line 1, column 4" in done.stderr
    assert "event None: not JSON: object keys must be strings (byte 1): {oops" in done.stderr


def test_match_writes_parquet_and_reads_tables(run: Run, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("name,a\nx,1\ny,2\n")
    done = run(
        "match",
        tmp_path / "events.csv",
        "-s",
        "name = 'y' and a > 1",
        "--keep",
        "name",
        "-o",
        tmp_path / "out",
    )
    assert done.exit_code == 0, done.stderr
    (row,) = pq.read_table(tmp_path / "out").to_pylist()
    assert (row["subscription"], row["name"]) == ("s1", "y")
    again = run("match", tmp_path / "events.csv", "-s", "a > 1", "-o", tmp_path / "out")
    assert again.exit_code != 0  # what is there is not written over
    assert isinstance(again.exception, TocsinError)
    assert "cannot be written" in str(again.exception)


def test_whatever_is_kept_is_printed(run: Run, tmp_path: Path, spark: SparkSession) -> None:
    rows = spark.sql(
        "select 1 as id, named_struct('b', 2) as s, timestamp'2026-01-01 00:00:00' as at, date'2026-01-01' as `d.e` "
        "union all select 2, null, timestamp_micros(9223372036854775807), null"
    )
    rows.write.parquet(str(tmp_path / "events"))
    keep = [word for name in ("s", "at", "d.e") for word in ("--keep", name)]
    done = run("match", tmp_path / "events", "-s", "true", "--id-field", "id", "--time-field", "at", *keep)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "subscription": "s1",
            "event_id": 1,
            "time": "2026-01-01T00:00:00Z",
            "generation": 1,
            "s": {"b": 2},
            "at": "2026-01-01T00:00:00Z",
            "d.e": "2026-01-01",
        }
    ]
    assert "event 2: a cell cannot be read" in done.stderr


def test_blank_lines_are_passed_over_and_ids_may_have_dots(run: Run, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"k": {"id": "e1"}, "a": 1}\n\n  \n{"k.id": "e2", "a": 1}\n')
    done = run("match", tmp_path / "events.jsonl", "-s", "a = 1", "--id-field", "k.id", "--threads", "2")
    assert done.exit_code == 0, done.stderr
    assert pairs(done.stdout) == {("s1", "e1"), ("s1", "e2")}


def test_times_are_printed_with_their_zone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("at,a\n2026-01-01T10:00:00Z,1\n2026-01-01T10:00:00.05Z,2\n")
    timed = run("match", tmp_path / "times.csv", "-s", "a > 0", "--time-field", "at")
    times = [json.loads(line)["time"] for line in timed.stdout.splitlines()]
    assert times == ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.05Z"]


def test_subscriptions_come_from_files_templates_and_an_index(run: Run, events: Path, tmp_path: Path) -> None:
    (tmp_path / "subs.txt").write_text("s1: a > 7\n")
    (tmp_path / "rows.csv").write_text("p,n\n7,s1\n")
    index = tmp_path / "index"
    assert run("publish", index, "-f", tmp_path / "subs.txt", "--shards", "2").exit_code == 0
    assert SubscriptionIndex(index).shards == 2
    ways = [
        ("-f", tmp_path / "subs.txt"),
        ("--template", "a > :p", "--parameters", tmp_path / "rows.csv", "--id", "n"),
        ("--index", index),
    ]
    for way in ways:
        assert pairs(run("match", events, "--id-field", "id", *way).stdout) == expected("a > 7")
    done = run("publish", index, "-f", tmp_path / "subs.txt")
    assert "1 subscription, unchanged" in done.stderr
    assert "now generation 2" in run("publish", index, "-s", "a > 8").stderr


def test_backtest_shows_the_days(run: Run, events: Path, tmp_path: Path) -> None:
    done = run("backtest", events, "-s", "a > 7", "--time-field", "at", "--json", tmp_path / "days.json")
    assert done.exit_code == 1  # a line was left out
    assert "2026-01-01" in done.stdout
    assert "6 notifications of 30 events on 3 days: 2.0 a day" in done.stdout
    counts = json.loads((tmp_path / "days.json").read_text())
    assert [day["events"] for day in counts["days"]] == [10, 10, 10]
    assert counts["total"] == 6
    assert (counts["command"], counts["subscriptions"], counts["rows_left_out"]) == (
        "spark backtest",
        {"s1": 6},
        1,
    )
    assert not counts["errors"] + counts["warnings"] + counts["faults"]


def test_run_matches_a_stream_and_goes_on_from_where_it_was(run: Run, tmp_path: Path, events: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    events.rename(folder / "1.jsonl")
    options = [
        "--id-field",
        "id",
        "--once",
        "--checkpoint",
        tmp_path / "checkpoint",
        "--sink",
        tmp_path / "notes",
    ]
    done = run("run", folder, "-s", "a > 7", *options, "--dead-letters", tmp_path / "letters")
    assert done.exit_code == 0, done.stderr
    assert "batch 0: 31 events" in done.stderr
    (folder / "2.jsonl").write_text('{"id": "new", "a": 9}\n')
    assert run("run", folder, "-s", "a > 7", *options, "--dead-letters", tmp_path / "letters").exit_code == 0
    rows = pq.read_table(tmp_path / "notes", columns=["subscription", "event_id"]).to_pylist()
    assert {(row["subscription"], row["event_id"]) for row in rows} == {*expected("a > 7"), ("s1", "new")}
    assert len(rows) == len(expected("a > 7")) + 1
    (letter,) = pq.read_table(tmp_path / "letters").to_pylist()
    assert letter["value"] == "{oops"


RISE = "from stock a next stock b where b.a > a.a"


def test_an_index_takes_all_kinds(tmp_path: Path) -> None:
    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["spark", *map(str, arguments)])

    index, best = tmp_path / "index", "select max(a) from table stock where a > 3"
    done = invoke("publish", index, "-s", "a > 7", "-s", RISE, "-s", best, "--table", "stock=id,a")
    assert done.exit_code == 0, done.output
    assert "3 subscriptions, now generation 1" in done.stderr
    done = invoke("publish", index, "-s", RISE, "--tick", "stock=1 second")
    assert done.exit_code != 0
    assert "before they are subscribed" in str(done.exception)
    done = invoke("publish", tmp_path / "other", "-s", best)
    assert "`--table stock=KEY`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "EVENTS"], "nothing is subscribed"),
        (["match", "EVENTS", "-s", "a = 1", "--index", "x"], "cannot go together"),
        (["match", "EVENTS", "--template", "a = :a"], "--template and --parameters go together"),
        (["match", "nowhere.jsonl", "-s", "a = 1"], "nowhere.jsonl cannot be read as jsonl"),
        (["match", "x.arrow", "-s", "a = 1"], "write them as Parquet"),
        (["match", "nats://127.0.0.1:1", "-s", "a = 1"], "nats://host:4222/STREAM"),
        (["match", "kafka://127.0.0.1:1/topic", "-s", "a = 1"], "connector to Kafka is not there"),
        (["match", "EVENTS", "-s", "a = 1", "--option", "x"], "--option takes key=value"),
        (["backtest", "EVENTS", "-s", "a = 1"], "--time-field"),
        (["run", "EVENTS", "-s", "a = 1", "--checkpoint", "c"], "--sink-format console"),
        (["run", "EVENTS", "-s", "a = 1", "--checkpoint", "c", "--sink", "n"], "--id-field"),
        (
            ["run", "EVENTS", "-s", "a = 1", "--checkpoint", "c", "--sink", "kafka://h:1"],
            "kafka://host:9092/topic",
        ),
        (["publish", "EVENTS", "-s", "a = 1"], "EVENTS"),
        (["publish", "INDEX", "-s", "a ="], "left as it was"),
        (["backtest", "EVENTS", "-f", "TWICE", "--time-field", "at"], "TWICE:2: another subscription"),
    ],
)
def test_invalid_arguments_are_refused(run: Run, events: Path, arguments: list[str], message: str) -> None:
    places = {"EVENTS": events, "INDEX": events.with_name("index"), "TWICE": events.with_name("TWICE")}
    places["TWICE"].write_text("x: a = 1\nx: a = 2\n")
    done = run(*(places.get(argument, argument) for argument in arguments))
    assert done.exit_code != 0
    assert isinstance(done.exception, (TocsinError, OSError, click.ClickException))
    assert (str(events) if message == "EVENTS" else message) in str(done.exception)


def test_spark_submit_runs_the_same_commands(events: Path) -> None:
    script = Path(tocsin.__file__).with_name("__main__.py")
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]", str(script)]
    done = subprocess.run(
        [*command, "spark", "match", str(events), "-s", "a > 7", "--id-field", "id"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **os.environ,
            "JAVA_HOME": _java(),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
    )
    assert done.returncode == 1, done.stderr  # a line was left out
    # spark-submit sends what a script writes to standard error to standard output.
    printed = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert pairs("\n".join(printed)) == expected("a > 7")


def _java() -> str:
    from tocsin.spark.java import find_java  # noqa: PLC0415 - the tests above need none

    return str(find_java())


def test_the_demo_on_spark_has_the_same_notifications(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.spark.session.local_session", lambda *_: _Lent(spark))
    done = CliRunner().invoke(app, ["demo", "--flights", "12000", "--alerts", "3000"])
    assert done.exit_code == 0, done.exception
    assert "On Spark, the same 12,000 flights" in done.stdout
    told = re.search(
        r"both gave the same \d+ notifications, (\d+) of them of the sequence and (\d+) of the view",
        " ".join(done.stdout.split()),
    )
    assert told is not None
    assert (int(told[1]), int(told[2])) == (10, 23)


def test_stats_are_saved_and_used(run: Run, events: Path, tmp_path: Path) -> None:
    file = tmp_path / "stats.json"
    done = run("stats", events, "-o", file, "-s", "a = 1 and at = 'x'", "--group", "a,id")
    assert done.exit_code == 1, done.exception  # a line was left out
    assert "30" in done.stdout
    found = Statistics.load(file)
    assert (found.events, found.refused) == (30, 1)
    assert found.presence("a") == 1.0
    matched = run(
        "match", events, "-s", "a > 7", "--id-field", "id", "--statistics", file, "--matcher", "static"
    )
    assert pairs(matched.stdout) == expected("a > 7")
    assert run("match", events, "-s", "a > 7", "--statistics", events).exit_code != 0
    engine = tocsin.Engine(matcher="static", statistics=found)
    engine.subscribe("a > 7", id="x")
    assert len(engine.publish({"a": 8})) == 1


def test_names_that_the_events_lack_are_said_before_spark_starts(
    tmp_path: Path, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_started(*_: object, **__: object) -> Any:
        raise TocsinError("nowhere")

    monkeypatch.setattr("tocsin.spark.session.session", not_started)
    rows = tmp_path / "flights.csv"
    rows.write_text("time,delay\n2026-01-01,5\n")

    def warnings(source: Path, text: str, *options: str, command: str = "match") -> list[str]:
        lines = (
            CliRunner().invoke(app, ["spark", command, str(source), "-s", text, *options]).stderr.splitlines()
        )
        return [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")]

    text = "select delya from flight where airport = 'JFK'"
    stream = "no event was of stream `flight`; did you mean `flights`?"
    attribute = "no event has the attribute `delya`; did you mean `delay`?"
    other = "no event has the attribute `airport`"
    assert warnings(rows, text) == [stream, attribute, other]
    assert warnings(rows, text, "--time-field", "time", command="backtest") == [stream, attribute, other]
    assert warnings(rows, text, "--stream", "flight") == [attribute, other]
    assert warnings(rows, text, "--stream-field", "time") == [attribute, other]
    assert warnings(rows, "from flights where delay > 3") == []
    assert warnings(rows, text, "--quiet") == []
    # a later record of JSON lines may have the attribute
    assert warnings(events, "tat > 3 or other > 3") == [
        "no event has the attribute `tat`; did you mean `at`?"
    ]


def test_columns_of_tocsins_own_are_not_named(run: Run, tmp_path: Path) -> None:
    rows = tmp_path / "flights.csv"
    rows.write_text("time,delay\n2026-01-01,5\n")
    done = run("backtest", rows, "-s", "delay > 3", "--time-field", "tiem")
    assert str(done.exception).endswith("did you mean `time`? there are: time, delay")
