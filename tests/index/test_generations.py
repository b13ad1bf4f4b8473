"""Generations: which one a micro-batch is matched with, and when one may be removed."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.fs
import pytest

from tests.index.reading import found_by
from tocsin.errors import SavedIndexError
from tocsin.index import Generations, IndexReader, SubscriptionIndex
from tocsin.index.storage import LocalStorage, RemoteStorage, Storage, storage_of


def remote(folder: Path) -> RemoteStorage:
    """A store behind Arrow's interface of object stores."""
    folder.mkdir(exist_ok=True)
    return RemoteStorage(
        f"store://{folder}", pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem()), "index"
    )


def test_a_batch_keeps_the_generation_it_was_first_matched_with(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    index.subscribe("a = 1", id="x")
    index.publish()
    generations = Generations(storage_of(tmp_path))
    assert generations.of_batch("q", 0) == 1
    index.subscribe("a = 2", id="y")
    index.publish()
    assert generations.of_batch("q", 0) == 1
    assert generations.of_batch("q", 1) == 2
    assert generations.of_batch("another", 0) == 2


def test_many_concurrent_callers_get_the_same_generation(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    recorded: list[tuple[int, int | None]] = []

    def record_batches() -> None:
        generations = Generations(storage_of(tmp_path))
        recorded.extend((batch, generations.of_batch("q", batch)) for batch in range(40))

    index.subscribe("a = 1", id="x")
    index.publish()
    threads = [Thread(target=record_batches) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(6):
        index.subscribe("a = 2", id=f"y{number}")
        index.publish()
    for thread in threads:
        thread.join()
    assert len(set(recorded)) == 40
    assert len(recorded) == 160


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_a_name_is_taken_once(tmp_path: Path, kind: str) -> None:
    storage: Storage = LocalStorage(tmp_path / "index") if kind == "local" else remote(tmp_path)
    assert storage.read("a/b") is None
    assert storage.names("a") == []
    assert storage.create("a/b", b"one")
    assert not storage.create("a/b", b"two")
    assert storage.read("a/b") == b"one"
    assert storage.names("a") == ["b"]
    assert storage.age("a/b", time.time() + 10) >= 9
    storage.remove("a/b")
    assert storage.names("a") == []
    storage.remove("a/b")


def test_an_object_store_is_fetched_once_and_then_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_INDEX_CACHE", str(tmp_path / "cache"))
    stored = remote(tmp_path / "bucket")
    monkeypatch.setattr("tocsin.index.subscriptions.storage_of", lambda _: stored)
    monkeypatch.setattr("tocsin.index.reader.storage_of", lambda _: stored)
    index = SubscriptionIndex("store://anywhere", shards=2)
    for number in range(50):
        index.subscribe(f"a = {number}", id=f"x{number}")
    number = index.publish()
    assert found_by(IndexReader("store://anywhere"), number, [{"a": 7}]) == [{"x7"}]
    fetched = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.arrow")}
    assert fetched
    assert found_by(IndexReader("store://anywhere"), number, [{"a": 9}]) == [{"x9"}]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.arrow")} == fetched
    generations = IndexReader("store://anywhere").generations
    assert generations.of_batch("q", 0, may_decide=False) is None
    assert generations.of_batch("q", 0) == 1
    assert generations.of_batch("q", 0, may_decide=False) == 1


def test_generations_that_a_stream_may_replay_are_kept(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    generations = Generations(storage_of(tmp_path))
    for number in range(5):
        index.subscribe(f"a = {number}", id=f"x{number}")
        index.publish()
        if number == 1:
            generations.of_batch("q", 0)
    assert index.vacuum() == []  # all are young
    for path in tmp_path.rglob("*"):
        os.utime(path, (time.time() - 86_400,) * 2)
    gone = index.vacuum()
    assert sorted(path for path in gone if path.startswith("generations")) == [
        f"generations/{number:012d}.json" for number in (1, 3, 4)
    ]
    assert len([path for path in gone if path.startswith("shards")]) == 3
    reader = IndexReader(tmp_path)
    assert found_by(reader, 2, [{"a": 1}]) == [{"x1"}]
    assert found_by(reader, 5, [{"a": 4}]) == [{"x4"}]
    with pytest.raises(SavedIndexError, match="no generation 3; there are: 2, 5"):
        reader.generation(3)


def test_a_stream_that_has_long_been_gone_keeps_nothing(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    for number in range(2):
        index.subscribe(f"a = {number}", id=f"x{number}")
        index.publish()
        Generations(storage_of(tmp_path)).of_batch("q", number)
    for path in tmp_path.rglob("*"):
        os.utime(path, (0, 0))
    gone = index.vacuum()
    assert "batches/q" in gone
    assert "generations/000000000001.json" in gone
    assert found_by(IndexReader(tmp_path), 2, [{"a": 1}]) == [{"x1"}]


def test_only_so_many_batches_stay_written_down(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    index.subscribe("a = 1", id="x")
    index.publish()
    generations = Generations(storage_of(tmp_path))
    for batch in range(1003):
        generations.of_batch("q", batch)
    assert generations.storage.names("batches/q")[::999] == ["000000000003", "000000001002"]


def test_files_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    index.subscribe("a = 1", id="x")
    index.publish()
    (tmp_path / ".draft-abc" / "1234").mkdir(parents=True)
    (tmp_path / "generations" / ".000000000002.json.12ab").write_text("{")
    assert index.vacuum() == []  # it may be at work still
    assert sorted(index.vacuum(older_than=-1)) == [".draft-abc", "generations/.000000000002.json.12ab"]
    assert found_by(IndexReader(tmp_path), 1, [{"a": 1}]) == [{"x"}]


def test_a_disk_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    storage = LocalStorage(tmp_path)
    assert storage.create("a/b", b"one")
    assert not storage.create("a/b", b"two")
    assert storage.read("a/b") == b"one"


def test_unused_files_leave_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_INDEX_CACHE", str(tmp_path / "cache"))
    stored = remote(tmp_path / "bucket")
    for name in ("old", "used", "new"):
        (tmp_path / "made" / name).mkdir(parents=True)
        (tmp_path / "made" / name / "file").write_text(name)
        stored.take_in(tmp_path / "made" / name, f"shards/{name}")
    old, used = stored.folder("shards/old"), stored.folder("shards/used")
    os.utime(old, (0, 0))
    os.utime(used, (0, 0))
    assert (stored.folder("shards/used") / "file").read_text() == "used"
    assert (stored.folder("shards/new") / "file").read_text() == "new"
    assert used.exists()
    assert not old.exists()
    assert (stored.folder("shards/old") / "file").read_text() == "old"  # it is fetched again
    with pytest.raises(FileNotFoundError):
        stored.folder("shards/nothing")
    assert not [path for path in used.parent.iterdir() if path.is_dir() and path.name.startswith(".")]


def test_a_folder_without_an_index_says_so(tmp_path: Path) -> None:
    with pytest.raises(SavedIndexError, match="there is no index here"):
        IndexReader(tmp_path / "nowhere").current()
    SubscriptionIndex(tmp_path / "index")
    with pytest.raises(SavedIndexError, match="nothing was published"):
        IndexReader(tmp_path / "index").current()
    with pytest.raises(SavedIndexError, match="cannot be reached"):
        storage_of("gopher://somewhere/index")


def test_a_path_may_be_a_uri(tmp_path: Path) -> None:
    SubscriptionIndex(f"file://{tmp_path}/an%20index")
    assert (tmp_path / "an index" / "index.json").exists()


def test_recently_current_generations_are_kept_for_running_matches(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path)
    for number in range(3):
        index.subscribe(f"a = {number}", id=f"x{number}")
        index.publish()
        for path in tmp_path.rglob("*"):
            os.utime(path, (number, number))
    (tmp_path / "generations" / "notes.txt").write_text("mine")
    os.utime(tmp_path / "generations" / "000000000003.json")
    gone = index.vacuum()
    assert [path for path in gone if path.startswith("generations")] == ["generations/000000000001.json"]
    assert found_by(IndexReader(tmp_path), 2, [{"a": 1}]) == [{"x1"}]


def test_an_index_that_was_removed_is_not_begun_again_by_a_batch(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    index.publish()
    reader = IndexReader(tmp_path / "index")
    reader.renew()
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(SavedIndexError, match="restore the index"):
        reader.generations.of_batch("q", 0)
    with pytest.raises(SavedIndexError, match="no index here"):
        reader.renew()
    assert not (tmp_path / "index").exists()


def test_a_recreated_index_in_the_same_folder_is_another_index(tmp_path: Path) -> None:
    reader = IndexReader(tmp_path / "index")
    for name in ("old", "new"):
        index = SubscriptionIndex(tmp_path / "index")
        index.subscribe("a = 1", id=name)
        reader.renew()
        assert found_by(reader, index.publish(), [{"a": 1}]) == [{name}]
        shutil.rmtree(tmp_path / "index")


def test_a_file_of_an_index_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[tuple[bool, bytes]]] = []

    def sync(_: int) -> None:
        synced.append([(file.name == "named", file.read_bytes()) for file in tmp_path.iterdir()])

    monkeypatch.setattr("os.fsync", sync)
    assert LocalStorage(tmp_path).create("named", b"content")
    assert synced == [[(False, b"content")]]
    assert (tmp_path / "named").read_bytes() == b"content"
