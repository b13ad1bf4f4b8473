"""Pipelines and backtests: streams that follow their subscriptions, and histories that are counted by the day."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from tocsin.errors import LanguageError, SparkError, TocsinError
from tocsin.index import SubscriptionIndex
from tocsin.spark import BatchProgress, Pipeline, backtest
from tocsin.spark.data_sources import register
from tocsin.spark.sinks import read_committed


class Home:
    """A folder of JSON lines that a stream reads, one file a micro-batch, and where its notifications go."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self._files = 0
        (folder / "events").mkdir()

    def send(self, *records: object) -> None:
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        draft = self.folder / "draft"
        draft.write_text("".join(f"{line}\n" for line in lines))
        self._files += 1
        os.utime(draft, (self._files, self._files))
        draft.rename(self.folder / "events" / f"{self._files:03}.jsonl")

    def source(self) -> DataFrame:
        reader = self.spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        frame = reader.text(str(self.folder / "events"))
        return frame.withColumn("event_id", functions.get_json_object("value", "$.id"))

    def pipeline(self, subscriptions: Any, **options: Any) -> Pipeline:
        folder = self.folder
        sink = options.pop("sink", folder / "notes")
        return Pipeline(self.source(), subscriptions, sink, folder / "checkpoint", payload="value", **options)

    def notified(self) -> list[tuple[str, str, int]]:
        rows = self.spark.read.parquet(str(self.folder / "notes")).collect()
        return sorted((row["subscription"], row["event_id"], row["generation"]) for row in rows)


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


@pytest.fixture
def any_home(any_spark: SparkSession, tmp_path: Path) -> Home:
    return Home(any_spark, tmp_path)


def run(pipeline: Pipeline) -> list[BatchProgress]:
    """Match the present events, and return the progress of each micro-batch."""
    progress: list[BatchProgress] = []
    pipeline.run(available_now=True, on_progress=progress.append)
    return progress


def test_progress_dead_letters_and_a_restart_with_other_subscriptions(any_home: Home, tmp_path: Path) -> None:
    register(any_home.spark)
    letters = {"format": "tocsin-arrow", "path": str(tmp_path / "letters")}
    file = tmp_path / "subs.txt"
    file.write_text("big: a > 5\n")
    any_home.send({"id": "1", "a": 9}, {"id": "2", "a": 1}, "{oops")
    any_home.send({"id": "3", "a": 7})
    first = run(any_home.pipeline(file, dead_letters=letters))
    assert [(one.events, one.notifications, one.generation) for one in first] == [(3, 1, 1), (1, 1, 1)]
    assert all(one.seconds > 0 and one.match_seconds > 0 and one.lag is None for one in first)
    assert "generation 1" in str(first[0])
    file.write_text("big: a > 5\nall: a > 0\n")
    any_home.send({"id": "4", "a": 7})
    second = run(any_home.pipeline(file, dead_letters=letters))
    assert [(one.batch, one.notifications, one.generation) for one in second] == [(2, 2, 2)]
    assert any_home.notified() == [("all", "4", 2), ("big", "1", 1), ("big", "3", 1), ("big", "4", 2)]
    (letter,) = read_committed(str(tmp_path / "letters")).to_pylist()
    assert (letter["event_id"], letter["value"]) == (None, "{oops")
    assert letter["reason"].startswith("not JSON")


def test_a_running_pipeline_follows_its_file(any_home: Home, tmp_path: Path) -> None:
    file = tmp_path / "subs.txt"
    file.write_text("first: a > 5\n")
    any_home.send({"id": "1", "a": 9})
    errors: list[TocsinError] = []
    pipeline = any_home.pipeline(file, refresh=0.05, on_error=errors.append)
    steps: list[Callable[[], object]] = [
        lambda: file.write_text("first: a > \n"),
        file.unlink,
        lambda: file.write_text("second: a > 5\n"),
    ]
    seen: list[BatchProgress] = []

    def on_progress(progress: BatchProgress) -> None:
        """Change the file after each batch, and send another event once that has been noticed."""
        seen.append(progress)
        if len(seen) > len(steps):
            pipeline.stop()
            return
        index = SubscriptionIndex(tmp_path / "checkpoint" / "tocsin-index")
        steps[len(seen) - 1]()
        Thread(target=follow, args=(index.generation, len(seen))).start()

    def follow(before: int, number: int) -> None:
        while (number == 1 and not errors) or (
            number == 3 and SubscriptionIndex(tmp_path / "checkpoint" / "tocsin-index").generation == before
        ):
            pass
        any_home.send({"id": str(number + 1), "a": 9})

    pipeline.run(on_progress=on_progress, timeout=120)
    assert any_home.notified() == [
        ("first", "1", 1),
        ("first", "2", 1),
        ("first", "3", 1),
        ("second", "4", 2),
    ]
    assert str(errors[0]).startswith(f"{file}:1: subscription `first`")


def test_a_pipeline_calls_a_function_and_takes_any_writer(home: Home) -> None:
    wanted = {"x": "a = 1"}
    batches: list[list[tuple[str, str]]] = []

    def sink(notes: DataFrame) -> Any:
        return notes.writeStream.foreachBatch(
            lambda frame, _: batches.append(
                [(row["subscription"], row["event_id"]) for row in frame.collect()]
            )
        )

    home.send({"id": "1", "a": 1})
    pipeline = home.pipeline(lambda: wanted, sink=sink, shards=2, refresh=60)
    assert pipeline.refresh() == 1
    wanted["y"] = "a = 2"
    assert pipeline.refresh() == 2
    run(pipeline)
    assert batches == [[("x", "1")]]


def test_the_lag_is_that_of_the_newest_event(any_spark: SparkSession, tmp_path: Path) -> None:
    rows = any_spark.sql("select 'e' as event_id, 1 as a, current_timestamp() - interval 1 hour as at")
    rows.write.parquet(str(tmp_path / "events"))
    source = any_spark.readStream.schema(rows.schema).parquet(str(tmp_path / "events"))
    pipeline = Pipeline(source, {"x": "a = 1"}, tmp_path / "notes", tmp_path / "checkpoint", time="at")
    (progress,) = run(pipeline)
    assert progress.lag is not None
    assert 3600 <= progress.lag < 7200


def test_unsupported_pipelines_are_refused(any_home: Home, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="readStream"):
        Pipeline(any_home.spark.range(1), {"x": "true"}, tmp_path / "n", tmp_path / "c")
    with pytest.raises(SparkError, match="`playload` is no option"):
        Pipeline(any_home.source(), {"x": "true"}, tmp_path / "n", tmp_path / "c", playload="value")
    with pytest.raises(SparkError, match="no subscription could be read"):
        any_home.pipeline({"x": "a ="}, on_error=lambda _: None)
    with pytest.raises(SparkError, match="names its format"):
        any_home.pipeline({"x": "true"}, sink={"path": "x"}).start()
    with pytest.raises(SparkError, match="nothing to refresh"):
        any_home.pipeline(tmp_path / "checkpoint" / "tocsin-index").refresh()


def test_a_stream_that_fails_says_why(any_home: Home, tmp_path: Path) -> None:
    any_home.send({"id": "1", "a": 1})
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    index.publish()
    pipeline = any_home.pipeline(tmp_path / "index")
    for file in (tmp_path / "index" / "shards").rglob("*.arrow"):
        file.write_bytes(b"")
    with pytest.raises(SparkError, match=r"the stream failed: .*registry of subscriptions cannot be read"):
        pipeline.run(available_now=True)


def test_a_backtest_counts_by_the_day(any_spark: SparkSession) -> None:
    rows = [
        ("2026-01-01T10:00:00Z", 1.0),
        ("2026-01-01T11:00:00Z", 7.0),
        ("2026-01-03T00:00:00Z", 8.0),
        ("2026-01-03T23:59:59Z", 9.0),
        (None, float("nan")),
        (None, 9.0),
    ]
    history = any_spark.createDataFrame(rows, "at string, a double").withColumn(
        "at", functions.to_timestamp("at")
    )
    found = backtest("a > 5", history, time="at")
    assert [(day.day, day.events, day.total) for day in found.days] == [
        (date(2026, 1, 1), 2, 1),
        (date(2026, 1, 3), 2, 2),
    ]
    assert (found.events, found.total, found.faults, found.counts()) == (4, 3, 2, {"backtest": 3})
    assert found.busiest == found.days[1]
    assert (
        str(found).splitlines()[-1]
        == "3 notifications of 4 events in 2 days, 1.5 a day; 2 rows are no events"
    )
    both = backtest({"high": "a > 7", "low": "a < 5"}, history, time="at")
    assert both.counts() == {"high": 2, "low": 1}
    form = backtest({"=": [{"attribute": ["a"]}, 7]}, history, time="at")
    assert form.total == 1


def test_a_backtest_of_payloads_takes_ticks_for_microseconds(spark: SparkSession) -> None:
    day = 86_400_000_000
    rows = [(json.dumps({"a": 1, "t": day}),), (json.dumps({"a": 2, "t": 2 * day}),), ("{",)]
    found = backtest("a = 2", spark.createDataFrame(rows, "body string"), time="t", payload="body")
    assert [(one.day, one.events, one.total) for one in found.days] == [
        (date(1970, 1, 2), 1, 0),
        (date(1970, 1, 3), 1, 1),
    ]
    assert found.faults == 1


def test_a_backtest_outlives_times_that_no_calendar_has(spark: SparkSession) -> None:
    history = spark.sql("select 0L as at, 1 as a union all select 1700000000000000000L, 1")
    found = backtest("a = 1", history, time="at")
    assert (found.events, found.total, found.faults) == (1, 1, 1)


def test_a_backtest_refuses_invalid_arguments(spark: SparkSession, home: Home) -> None:
    history = spark.sql("select current_timestamp() as at, 1 as a")
    with pytest.raises(TocsinError, match="column 4"):
        backtest("a >", history, time="at")
    with pytest.raises(SparkError, match="batch DataFrame"):
        backtest("a > 1", home.source(), time="at")
    with pytest.raises((SparkError, LanguageError), match="no column `when`"):
        backtest("a > 1", history, time="when")
