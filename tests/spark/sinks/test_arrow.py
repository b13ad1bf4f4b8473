"""Streams and batches into the Arrow sink: each batch once, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import WriterCommitMessage

from tocsin.spark.sinks import ArrowSink, committed_batches, read_committed, vacuum
from tocsin.spark.sinks.arrow import _BatchWriter, _StreamWriter, _Written

COLUMNS = "id long, at timestamp, tags map<string,string>, legs array<struct<name:string,hours:int>>"


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    spark.dataSource.register(ArrowSink)


class Stream:
    """A stream of JSON files, one to a batch, into a sink folder."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.inbox = root / "inbox"
        self.folder = root / "sink"
        self.checkpoint = root / "checkpoint"
        self.inbox.mkdir()

    def put(self, *ids: int) -> None:
        number = len(list(self.inbox.iterdir()))
        rows = [
            {"id": i, "at": f"2026-01-0{i % 9 + 1}T00:00:00Z", "tags": {"k": str(i)}, "legs": [{"name": "a"}]}
            for i in ids
        ]
        file = self.inbox / f"{number}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (number, number))  # the order of the batches

    def source(self) -> DataFrame:
        return self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(self.inbox))

    def run(self, events: DataFrame | None = None, **options: str) -> None:
        writer = (events or self.source()).writeStream.format("tocsin-arrow").trigger(availableNow=True)
        writer.option("checkpointLocation", str(self.checkpoint)).options(**options).start(
            str(self.folder)
        ).awaitTermination()

    def forget_commit(self, batch: int) -> None:
        """Bring the checkpoint to where a crash between the sink's commit and Spark's own would have left it."""
        (self.checkpoint / "commits" / str(batch)).unlink()
        (self.checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)

    def ids(self) -> dict[int, list[int]]:
        return {batch: sorted(table["id"].to_pylist()) for batch, table in committed_batches(self.folder)}


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_a_replayed_batch_is_not_seen_twice(stream: Stream) -> None:
    stream.put(1, 2)
    stream.put(3)
    stream.run()
    assert stream.ids() == {0: [1, 2], 1: [3]}
    stream.forget_commit(1)
    stream.put(4)
    stream.run()
    assert stream.ids() == {0: [1, 2], 1: [3], 2: [4]}
    assert len(list((stream.folder / "parts").iterdir())) == 3
    assert vacuum(stream.folder) == []


def test_another_checkpoint_is_refused(stream: Stream) -> None:
    stream.put(1)
    stream.run()
    stream.checkpoint = stream.checkpoint.with_name("another")
    with pytest.raises(PySparkException, match="cannot add to it: its batches would be taken for"):
        stream.run()
    assert stream.ids() == {0: [1]}
    assert len(list((stream.folder / "parts").iterdir())) == 1


def test_empty_batches(stream: Stream) -> None:
    stream.put(1)
    stream.put(2)
    stream.run(stream.source().where("id = 2"))
    assert stream.ids() == {0: [], 1: [2]}


def test_complete_mode_shows_the_last_batch(stream: Stream) -> None:
    stream.put(1, 2)
    stream.put(3)
    counted = stream.source().groupBy().count().selectExpr("count")
    writer = counted.writeStream.format("tocsin-arrow").outputMode("complete").trigger(availableNow=True)
    writer.option("checkpointLocation", str(stream.checkpoint)).start(str(stream.folder)).awaitTermination()
    assert [(batch, table["count"].to_pylist()) for batch, table in committed_batches(stream.folder)] == [
        (1, [3])
    ]


def fail_on_three(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if 3 in batch["id"].to_pylist():
            raise ArithmeticError("three")
        yield batch


def test_a_failed_batch_leaves_nothing_and_is_done_again(stream: Stream) -> None:
    stream.put(1)
    stream.put(3)
    with pytest.raises(PySparkException, match="three"):
        stream.run(stream.source().mapInArrow(fail_on_three, COLUMNS))
    assert stream.ids() == {0: [1]}
    assert len(list((stream.folder / "parts").iterdir())) == 1
    stream.run()
    assert stream.ids() == {0: [1], 1: [3]}


def test_nested_columns_read_back(spark: SparkSession, stream: Stream) -> None:
    stream.put(1)
    stream.run(compression="zstd")
    read = spark.read.format("tocsin-arrow").load(str(stream.folder))
    assert read.schema.simpleString() == (
        "struct<id:bigint,at:timestamp,tags:map<string,string>,legs:array<struct<name:string,hours:int>>>"
    )
    (row,) = read.collect()
    assert row.tags == {"k": "1"}
    assert row.legs == [Row(name="a", hours=None)]
    (same,) = read_committed(stream.folder).to_pylist(maps_as_pydicts="strict")
    assert same == {
        "id": 1,
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "tags": {"k": "1"},
        "legs": [{"name": "a", "hours": None}],
    }


def test_another_time_zone_makes_no_difference(spark: SparkSession, stream: Stream) -> None:
    stream.put(1)
    stream.run()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        stream.put(1)
        stream.run()
        read = spark.read.format("tocsin-arrow").load(str(stream.folder))
        assert read.select("at").distinct().count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert len(set(read_committed(stream.folder)["at"].to_pylist())) == 1


def test_batch_jobs_append_and_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "sink")

    def write(mode: str, *ids: int) -> list[Any]:
        rows = spark.createDataFrame([(i,) for i in ids], "id long")
        rows.write.format("tocsin-arrow").mode(mode).save(folder)
        return sorted(row.id for row in spark.read.format("tocsin-arrow").load(folder).collect())

    assert write("append", 1, 2) == [1, 2]
    assert write("append", 3) == [1, 2, 3]
    assert write("overwrite", 4) == [4]
    assert write("append") == [4]
    assert read_committed(folder)["id"].to_pylist() == [4]


def test_a_stream_does_not_add_to_a_folder_of_batch_jobs(spark: SparkSession, stream: Stream) -> None:
    spark.createDataFrame([], COLUMNS).write.format("tocsin-arrow").mode("append").save(str(stream.folder))
    stream.put(1)
    with pytest.raises(PySparkException, match="holds what a batch job wrote"):
        stream.run()
    assert stream.ids() == {0: []}


@pytest.mark.parametrize("kind", [_BatchWriter, _StreamWriter])
def test_abort_spares_committed_files(
    spark: SparkSession, tmp_path: Path, kind: type[_BatchWriter | _StreamWriter]
) -> None:
    folder = str(tmp_path / "sink")
    rows = spark.createDataFrame([(1,)], "id long")
    rows.write.format("tocsin-arrow").mode("append").save(folder)
    (part,) = (tmp_path / "sink" / "parts").iterdir()
    orphan = part.with_name("0.arrow")
    orphan.touch()
    writer = kind(folder, rows.schema, overwrite=False, compression=None)
    messages: list[WriterCommitMessage | None] = [
        _Written(None, (part.name,), 1),
        None,
        _Written(None, (orphan.name,), 1),
    ]
    writer.abort(messages, *([] if kind is _BatchWriter else [0]))
    assert part.exists()
    assert not orphan.exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"compresion": "lz4"}, "there is no option `compresion`; did you mean `compression`?"),
        ({"compression": "gzip"}, "`compression` is one of none, lz4, zstd, not `gzip`"),
        ({"path": "s3a://bucket/out"}, "every machine has mounted"),
    ],
)
def test_options_are_checked(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], fault: str
) -> None:
    writer = spark.range(1).write.format("tocsin-arrow").mode("append")
    with pytest.raises(PySparkException) as caught:
        writer.options(**{"path": str(tmp_path / "sink"), **options}).save()
    assert fault in str(caught.value)


def test_reading_a_missing_folder(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="nothing has been committed here"):
        spark.read.format("tocsin-arrow").load(str(tmp_path)).collect()
