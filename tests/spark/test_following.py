"""Pipelines: started, stopped and started again, with subscriptions that come and go and are sometimes broken."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tocsin.errors import SparkError, TocsinError
from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.spark import BatchProgress, Pipeline

SCHEMA = "event_id string, a int"


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> DataFrame:
    send(spark, tmp_path, "e1")
    return spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))


def send(spark: SparkSession, folder: Path, name: str) -> None:
    frame = spark.createDataFrame([(name, 1), (None, 2)], SCHEMA).coalesce(1)
    frame.write.mode("append").parquet(str(folder / "events"))


def notified(spark: SparkSession, folder: Path) -> list[tuple[str, str, int]]:
    rows = spark.read.parquet(str(folder)).collect()
    return sorted((row["subscription"], row["event_id"], row["generation"]) for row in rows)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_pipeline_runs_again_from_where_it_ended(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    pipeline = Pipeline(
        source, index, tmp_path / "notes", tmp_path / "checkpoint", dead_letters=tmp_path / "letters"
    )
    seen: list[BatchProgress] = []
    pipeline.run(available_now=True, on_progress=seen.append)
    index.subscribe("a = 1", id="y")
    index.publish()
    send(spark, tmp_path, "e2")
    pipeline.run(available_now=True, on_progress=seen.append)
    assert notified(spark, tmp_path / "notes") == [("x", "e1", 1), ("x", "e2", 2), ("y", "e2", 2)]
    assert [(one.batch, one.events, one.notifications, one.generation) for one in seen] == [
        (0, 2, 1, 1),
        (1, 2, 2, 2),
    ]
    assert spark.read.parquet(str(tmp_path / "letters")).count() == 2
    query = pipeline.start()
    with pytest.raises(SparkError, match="runs already"):
        pipeline.start()
    pipeline.stop()
    pipeline.stop()
    assert not query.isActive


def test_an_invalid_sink_is_refused_and_nothing_runs(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    letters = {"format": "nonsense"}
    pipeline = Pipeline(
        source, {"x": "a = 1"}, tmp_path / "notes", tmp_path / "checkpoint", dead_letters=letters
    )
    with pytest.raises(SparkError, match=r"the stream of dead-letters cannot be started: .*nonsense"):
        pipeline.start()
    assert not spark.streams.active


def test_subscriptions_that_become_invalid_leave_the_earlier_ones(source: DataFrame, tmp_path: Path) -> None:
    file, errors = tmp_path / "subscriptions.txt", list[TocsinError]()
    file.write_text("x: a = 1\n")
    pipeline = Pipeline(
        source, file, tmp_path / "notes", tmp_path / "checkpoint", refresh=0.02, on_error=errors.append
    )
    reader = IndexReader(pipeline.index)
    pipeline.start()
    try:
        for broken in (b"", b"\xff\xfe\n", b"y:\n"):
            before = len(errors)
            file.write_bytes(broken)
            until(lambda: len(errors) > before)  # noqa: B023 - called at once
            assert reader.current() == 1
        file.unlink()
        file.write_text("x: a = 1\ny: a = 2\n")
        until(lambda: reader.current() == 2)
    finally:
        pipeline.stop()
    assert "no subscription could be read" in str(errors[0])


def test_a_function_that_fails_is_called_again(source: DataFrame, tmp_path: Path) -> None:
    asked, errors = [0], list[TocsinError]()

    def subscriptions() -> dict[str, str]:
        asked[0] += 1
        if asked[0] == 2:
            raise RuntimeError("the database is away")
        return {"x": "a = 1", "late": "a = 2"} if asked[0] > 2 else {"x": "a = 1"}

    pipeline = Pipeline(
        source,
        subscriptions,
        tmp_path / "notes",
        tmp_path / "checkpoint",
        refresh=0.02,
        on_error=errors.append,
    )
    pipeline.start()
    try:
        until(lambda: IndexReader(pipeline.index).current() == 2)
    finally:
        pipeline.stop()
    assert ["the database is away" in str(error) for error in errors] == [True]
