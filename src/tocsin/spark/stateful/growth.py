"""More shards for a stream's state: a checkpoint is written anew, with the state spread and the events' place kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs
from pyspark.sql import DataFrame, SparkSession, functions

from tocsin.index.storage import file_system_of
from tocsin.model.errors import SavedError, SparkError
from tocsin.sharding import grown, shards_of_state
from tocsin.spark.stateful.job import MOST_SHARDS
from tocsin.spark.stateful.packed_rows import SCHEMA
from tocsin.spark.stateful.saved_pages import join_pages, read_head
from tocsin.spark.stateful.shard_keys import shard_keys
from tocsin.spark.stateful.stage import ShardProcessor, check_state_store, run_shards

_QUERY: Final = "notifications"  # the folder of a pipeline's query in its checkpoint
_CHANGES: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_STATES: Final = "shard int, shards int, generation long, state binary"
_INITIAL: Final = "key long, generation long, state binary"
_LINES_OF_HEADER: Final = 2  # of a file of offsets: a version, and Spark's settings


def grow(
    spark: SparkSession, checkpoint: str | os.PathLike[str], into: str | os.PathLike[str], shards: int
) -> None:
    """Write a checkpoint with more shards, from which the stream goes on where the other one ended.

    `checkpoint` is that of a `Pipeline`, or of a query with the notifications of `match`, which must have been stopped;
    it stays as it is, and is not to be used again. `into` is a new folder. `shards` is a multiple of the present number.
    Start the stream with the new checkpoint, `state_shards=shards`, and the same sink.
    """
    old, new = _Folder(checkpoint), _Folder(into)
    if new.names():
        raise SparkError(
            f"{new.uri}: there is something already; name a new folder for the checkpoint with more shards"
        )
    is_pipeline = _QUERY in old.names()
    query = old.inside(_QUERY) if is_pipeline else old
    number = _last_commit(query)
    check_state_store(spark)
    count = _check_shards(_states(spark, query), shards, query.uri)
    for name in old.names() if is_pipeline else ():
        if name != _QUERY:
            old.copy(name, new)
    target = new.inside(_QUERY) if is_pipeline else new
    _write_states(_states(spark, query), target, count=count, shards=shards)
    _go_on_after(number, query, target)


def _last_commit(query: _Folder) -> int:
    """Return the last micro-batch of a query, or raise `SparkError` if it has none, or was not stopped after one."""
    offsets, commits = (_numbers(query.names(name)) for name in ("offsets", "commits"))
    if not commits:
        raise SparkError(f"{query.uri}: this is no checkpoint of a stream that has processed something")
    if offsets[-1] != commits[-1]:
        raise SparkError(
            f"{query.uri}: the stream was stopped in the midst of micro-batch {offsets[-1]}; start it once more until that "
            "is done (`available_now=True` will do)"
        )
    return commits[-1]


def _numbers(names: Iterable[str]) -> list[int]:
    return sorted(int(name) for name in names if name.isdecimal())


def _states(spark: SparkSession, query: _Folder) -> DataFrame:
    """Return the state of each shard of a checkpoint, with its generation."""

    def stored(variable: str) -> DataFrame:
        reader = spark.read.format("statestore").option("path", query.uri)
        return reader.option("stateVarName", variable).load()

    heads = stored("head").select(
        "key.key", functions.lit(None).cast("binary").alias("digest"), "value.content"
    )
    pages = stored("pages").select("key.key", "user_map_key.digest", "user_map_value.content")
    return heads.union(pages).groupBy("key").applyInArrow(_joined, _STATES)


def _joined(table: Any) -> Any:
    """Return the state of a shard from its head and its pages."""
    digests, contents = (table.column(name).to_pylist() for name in ("digest", "content"))
    found = dict(zip(digests, contents, strict=True))
    head = read_head(found[None])
    state = join_pages(head, found.get)
    shard, shards = shards_of_state(state)
    row = {"shard": shard, "shards": shards, "generation": head.generation, "state": state}
    return pa.Table.from_pylist(
        [row],
        pa.schema(
            [
                ("shard", pa.int32()),
                ("shards", pa.int32()),
                ("generation", pa.int64()),
                ("state", pa.binary()),
            ]
        ),
    )


def _check_shards(states: DataFrame, shards: int, uri: str) -> int:
    """Return how many shards a checkpoint has, or raise an error if they cannot become so many."""
    found = states.select("shard", "shards").collect()
    counts = {row["shards"] for row in found}
    if len(counts) != 1 or {row["shard"] for row in found} != set(range(next(iter(counts)))):
        raise SavedError(f"{uri}: the state of some shard is missing")
    count = int(counts.pop())
    if type(shards) is not int or shards % count or not count < shards <= MOST_SHARDS:
        raise SparkError(
            f"{uri}: {count:,} shards can grow to a multiple of their number up to {MOST_SHARDS:,}, not to {shards!r}; to have "
            "fewer, begin anew"
        )
    return count


def _write_states(states: DataFrame, target: _Folder, *, count: int, shards: int) -> None:
    """Write a checkpoint of one micro-batch without events, after which each of the shards has its state."""
    keys = shard_keys(shards)

    def spread(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for row in batch.to_pylist():
                for shard in range(row["shard"], shards, count):
                    state = grown(row["state"], shard, shards)
                    yield pa.RecordBatch.from_pylist(
                        [{"key": keys[shard], "generation": row["generation"], "state": state}]
                    )

    spark = states.sparkSession
    nothing = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().where("false")
    packed = nothing.mapInArrow(lambda _: iter(()), SCHEMA)
    initial = states.mapInArrow(spread, _INITIAL).groupBy("key")
    begun = run_shards(packed, ShardProcessor(None, keys), initial)
    writer = begun.writeStream.format("noop").option("checkpointLocation", target.uri)
    with _whole_snapshots(spark):
        writer.trigger(availableNow=True).start().awaitTermination()


@contextmanager
def _whole_snapshots(spark: SparkSession) -> Iterator[None]:
    """Let the state store write whole states, and not what has changed."""
    before = spark.conf.get(_CHANGES, None)
    spark.conf.set(_CHANGES, "false")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_CHANGES)
        else:
            spark.conf.set(_CHANGES, before)


def _go_on_after(number: int, query: _Folder, target: _Folder) -> None:
    """Let a checkpoint of one micro-batch go on after that of another one: with its number, and the same place in each source."""
    begun = target.read("offsets/0").splitlines()[:_LINES_OF_HEADER]
    ends = query.read(f"offsets/{number}").splitlines()[_LINES_OF_HEADER:]
    states = [f"state/0/{name}" for name in target.names("state/0") if name.isdecimal()]
    moved = {"state/0/_metadata/v2": "0", **dict.fromkeys(states, "1.zip")}
    for folder, name in moved.items():
        target.move(folder, name, name.replace(name[0], str(number + int(name[0]))))
    for folder in ("offsets", "commits", "sources"):
        target.remove(folder)
        if folder in query.names():
            query.copy(folder, target)
    target.write("metadata", query.read("metadata"))
    target.write(f"offsets/{number}", "\n".join([*begun, *ends]))


class _Folder:
    """A folder of this machine or of an object store."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        system, path = file_system_of(place)
        self._system = pa.fs.LocalFileSystem() if system is None else system
        self._path = str(Path(path).absolute()) if system is None else path.rstrip("/")
        self.uri = self._path if system is None else os.fspath(place).rstrip("/")

    def inside(self, name: str) -> _Folder:
        return _Folder(f"{self.uri}/{name}")

    def names(self, folder: str = "") -> list[str]:
        selector = pa.fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        return [found.base_name for found in self._system.get_file_info(selector)]

    def read(self, name: str) -> str:
        with self._system.open_input_stream(f"{self._path}/{name}") as file:
            return bytes(file.read()).decode()

    def write(self, name: str, content: str) -> None:
        """Write a file. Spark's checksum of the one before is not true any more."""
        folder, _, own = name.rpartition("/")
        if f".{own}.crc" in self.names(folder):
            self._system.delete_file(f"{self._path}/{folder}/.{own}.crc")
        with self._system.open_output_stream(f"{self._path}/{name}") as file:
            file.write(content.encode())

    def move(self, folder: str, old: str, new: str) -> None:
        """Give a file another name, and Spark's checksum of it, if there is one."""
        for pattern in ("{}", ".{}.crc"):
            if old != new and pattern.format(old) in self.names(folder):
                there = f"{self._path}/{folder}"
                self._system.move(f"{there}/{pattern.format(old)}", f"{there}/{pattern.format(new)}")

    def copy(self, name: str, to: _Folder) -> None:
        to._system.create_dir(f"{to._path}/{name}", recursive=True)
        pa.fs.copy_files(f"{self._path}/{name}", f"{to._path}/{name}", self._system, to._system)

    def remove(self, name: str) -> None:
        if name in self.names():
            self._system.delete_dir(f"{self._path}/{name}")
