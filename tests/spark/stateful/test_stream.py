"""Sequences and views of a stream on Spark have the engine's notifications, also where subscriptions change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.sharding.shards import Told, told
from tests.spark.stateful.workload import (
    COLUMNS,
    TABLES,
    TEXTS,
    Row,
    engine,
    events,
    frame,
    notified,
    publish,
)
from tocsin.index import SubscriptionIndex
from tocsin.spark import BatchProgress, Pipeline, grow

PAIR = "from s a next s b on b.g = a.g select b.x as x"


class Home:
    """A folder of events that a stream reads, a file a micro-batch, and an index that it follows."""

    def __init__(self, spark: SparkSession, folder: Path, **options: Any) -> None:
        self.spark, self.folder = spark, folder
        self.options = {"time": "t", "stream_column": "of", "values": True, "state_shards": 3, **options}
        self.index = SubscriptionIndex(folder / "index")
        for name, key in TABLES.items():
            self.index.table(name, key=key)
        (folder / "events").mkdir()
        self._files = 0

    def send(self, rows: list[Row]) -> None:
        """Write a file of events, which becomes a micro-batch."""
        frame(self.spark, rows, 1).write.parquet(str(self.folder / "draft"))
        (file,) = (self.folder / "draft").glob("*.parquet")
        self._files += 1
        file.rename(self.folder / "events" / f"{self._files}.parquet")
        for rest in (self.folder / "draft").iterdir():
            rest.unlink()
        (self.folder / "draft").rmdir()

    def source(self) -> DataFrame:
        reader = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / "events"))

    def run(self, checkpoint: str = "checkpoint", **more: Any) -> list[BatchProgress]:
        """Run until all events that are there have been processed."""
        progress: list[BatchProgress] = []
        pipeline = Pipeline(
            self.source(),
            self.folder / "index",
            self.folder / "notes",
            self.folder / checkpoint,
            **{**self.options, **more},
        )
        pipeline.run(available_now=True, on_progress=progress.append)
        return progress

    def notes(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "notes"))


def test_a_stream_has_the_engines_notifications_while_subscriptions_change(
    any_spark: SparkSession, tmp_path: Path
) -> None:
    home, beside = Home(any_spark, tmp_path), engine()
    rows = events(5, 240)
    wanted, texts = Told(), dict(TEXTS)
    for part in range(3):
        if part == 1:
            for id_ in ("keyed0", "view1", "filter0"):
                del texts[id_]
                beside.unsubscribe(id_)
        if part == 2:
            texts["keyed0"] = PAIR
        for id_, text in texts.items():
            if id_ not in {one.id for one in beside.subscriptions()}:
                wanted += told(beside.subscribe(text, id=id_).notifications)
        home.index.apply(texts)
        home.index.publish()
        some = rows[80 * part : 80 * part + 80]
        home.send(some)
        wanted += publish(beside, some)
        (progress,) = home.run()
        assert (progress.events, progress.generation) == (80, part + 1)
        assert progress.stateful is not None
        assert progress.stateful.state_bytes > 0
    assert notified(home.notes()) == wanted


def test_a_stream_goes_on_with_more_shards(any_spark: SparkSession, tmp_path: Path) -> None:
    home, beside = Home(any_spark, tmp_path, out_of_orderness=20), engine(out_of_orderness=20)
    # When rows are published among others of a table, events that wait make it depend on the micro-batches.
    texts = {id_: text for id_, text in TEXTS.items() if id_ not in ("view3", "view4")}
    home.index.apply(texts)
    home.index.publish()
    rows = events(6, 240)
    for part in range(2):
        home.send(rows[80 * part : 80 * part + 80])
    home.run()
    grow(any_spark, tmp_path / "checkpoint", tmp_path / "more", 6)
    home.send(rows[160:])
    (progress,) = home.run("more", state_shards=6)
    assert (progress.batch, progress.events) == (2, 80)
    wanted = Told()
    for id_, text in texts.items():
        wanted += told(beside.subscribe(text, id=id_).notifications)
    assert notified(home.notes()) == wanted + publish(beside, rows)
