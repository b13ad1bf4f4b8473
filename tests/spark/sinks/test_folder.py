"""A folder shows what was committed, once, whole, and to whom it belongs."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tocsin.model.errors import SparkError
from tocsin.spark.sinks.folder import (
    Commit,
    PartFile,
    SinkFolder,
    committed_batches,
    read_committed,
    vacuum,
)

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
COLUMNS = {"type": "struct", "fields": [{"name": "id", "type": "long"}, {"name": "at", "type": "timestamp"}]}
AT_ONCE = timedelta(seconds=-5)


def write(sink: SinkFolder, *ids: int) -> tuple[str, ...]:
    with PartFile(sink, SCHEMA) as part:
        part.write(pa.RecordBatch.from_pydict({"id": ids, "at": [0] * len(ids)}, schema=SCHEMA))
    assert part.rows == len(ids)
    return part.files


def commit(sink: SinkFolder, batch: int, *ids: int, **more: Any) -> bool:
    sink.claim("q", COLUMNS, SCHEMA)
    return sink.publish(Commit(batch=batch, files=write(sink, *ids), rows=len(ids), **more))


def seen(folder: Path) -> dict[int, list[int]]:
    return {batch: table["id"].to_pylist() for batch, table in committed_batches(folder)}


@pytest.fixture
def sink(tmp_path: Path) -> SinkFolder:
    return SinkFolder(tmp_path / "sink")


def test_only_committed_rows_are_visible(sink: SinkFolder) -> None:
    assert commit(sink, 10, 3)
    assert commit(sink, 9, 1, 2)
    write(sink, 4)
    assert seen(sink.root) == {9: [1, 2], 10: [3]}
    assert list(seen(sink.root)) == [9, 10]
    assert read_committed(sink.root).schema == SCHEMA


def test_a_batch_commits_once(sink: SinkFolder) -> None:
    assert commit(sink, 0, 1)
    assert not commit(sink, 0, 2)
    assert seen(sink.root) == {0: [1]}
    assert not list(sink.root.rglob("*.new"))


def test_a_file_system_without_links(sink: SinkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    assert commit(sink, 0, 1)
    assert not commit(sink, 0, 2)
    assert seen(sink.root) == {0: [1]}


def test_an_empty_batch_has_no_file_but_columns(sink: SinkFolder) -> None:
    commit(sink, 0)
    assert not sink.parts.exists()
    assert [table.schema for _, table in committed_batches(sink.root)] == [SCHEMA]
    assert read_committed(str(sink.root)).num_rows == 0


def test_a_task_that_fails_leaves_nothing(sink: SinkFolder) -> None:
    def fail() -> None:
        with PartFile(sink, SCHEMA) as part:
            part.write(pa.RecordBatch.from_pydict({"id": [1], "at": [0]}, schema=SCHEMA))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not list(sink.parts.iterdir())


def test_rows_are_brought_to_the_columns_of_the_folder(sink: SinkFolder) -> None:
    sink.claim("q", COLUMNS, SCHEMA)
    rome = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "Europe/Rome"))])
    with PartFile(sink, SCHEMA, "zstd") as part:
        part.write(pa.RecordBatch.from_pydict({"id": [1], "at": [7]}, schema=rome))
    sink.publish(Commit(batch=0, files=part.files, rows=1))
    assert read_committed(sink.root).schema == SCHEMA


def test_another_query_is_refused(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    sink.claim("q", COLUMNS, SCHEMA)
    with pytest.raises(SparkError, match=r"what streaming query q wrote, and streaming query r cannot add"):
        sink.claim("r", COLUMNS, SCHEMA)
    with pytest.raises(SparkError, match=r"a batch job cannot add to it: .* Write to a new folder"):
        sink.check(None, COLUMNS)


def test_other_columns_are_refused(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    other = {"type": "struct", "fields": [{"name": "tags", "type": {"type": "map"}}]}
    with pytest.raises(
        SparkError, match="holds the columns id long, at timestamp, not tags map: write to a new"
    ):
        sink.check("q", other)


def test_a_replacing_commit_hides_earlier_rows(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    commit(sink, 1, 2, replaces=True)
    commit(sink, 2, 3)
    assert seen(sink.root) == {1: [2], 2: [3]}


def test_batch_jobs_take_the_next_number(sink: SinkFolder) -> None:
    sink.claim(None, COLUMNS, SCHEMA)
    assert sink.append(write(sink, 1), 1, replaces=False).batch == 0
    assert sink.append(write(sink, 2), 1, replaces=False).batch == 1
    assert sink.append(write(sink, 3), 1, replaces=True).batch == 2
    assert read_committed(sink.root)["id"].to_pylist() == [3]


def test_vacuum_removes_invisible_files(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    orphans = write(sink, 2)
    half = sink.parts / "half.new"
    half.touch()
    assert vacuum(sink.root) == []
    assert sorted(vacuum(sink.root, AT_ONCE)) == sorted([*orphans, "half.new"])
    assert seen(sink.root) == {0: [1]}


def test_vacuum_spares_recently_replaced_files(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    commit(sink, 1, 2, replaces=True)
    assert vacuum(sink.root) == []
    past = time.time() - 3 * 86400
    for path in (*sink.parts.iterdir(), *sink.commits_folder.iterdir()):
        os.utime(path, (past, past))
    assert len(vacuum(sink.root)) == 2
    assert seen(sink.root) == {1: [2]}
    assert len(list(sink.parts.iterdir())) == 1


def test_a_folder_that_is_no_sink(tmp_path: Path) -> None:
    for use in (read_committed, vacuum, lambda folder: list(committed_batches(folder))):
        with pytest.raises(SparkError, match="nothing has been committed here, or it is no folder of"):
            use(tmp_path)


def test_damage_is_named(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    (part,) = sink.parts.iterdir()
    part.write_bytes(part.read_bytes()[:40])
    with pytest.raises(SparkError, match=rf"{part.name}: a committed file is gone or damaged"):
        read_committed(sink.root)
    part.unlink()
    with pytest.raises(SparkError, match=rf"{part.name}: a committed file is gone or damaged"):
        read_committed(sink.root)
    sink.commit_path(0).write_text("{}")
    with pytest.raises(SparkError, match=r"0\.json: not written by this sink"):
        read_committed(sink.root)


def test_a_newer_format_is_refused(sink: SinkFolder) -> None:
    commit(sink, 0, 1)
    heading = sink.root / "sink.json"
    heading.write_text(heading.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(SparkError, match=r"written by a newer Tocsin \(format 2, this one reads 1\)"):
        read_committed(sink.root)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_local_folders_in_every_form(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "a folder"
    assert SinkFolder(form.format(folder)).root == folder


@pytest.mark.parametrize("folder", ["s3a://bucket/out", "hdfs:/out", "file://other/out"])
def test_a_folder_elsewhere_is_refused(folder: str) -> None:
    with pytest.raises(SparkError, match="every machine has mounted"):
        SinkFolder(folder)
