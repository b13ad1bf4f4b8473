"""Subscriptions and events of the workload, as the engine, an index and Spark take them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from msgspec import Struct

from benchmarks.lesubscribe.workload import Workload
from benchmarks.workloads.tabular import ID, FilledTemplate, event_table, templates
from tocsin.engine import Engine
from tocsin.index import SubscriptionIndex
from tocsin.matching.starting_matcher import INDEX

_FILES: Final = 4  # that a table is written to, for Spark to divide among its cores


class FilledIndex(Struct, frozen=True):
    """A filled and published index, and its cost."""

    folder: str
    subscribing: float  # seconds
    publishing: float
    bytes: int  # on disk


class Inputs:
    """The inputs of several experiments, each made at its first use."""

    def __init__(self, scale: Any, folder: Path) -> None:
        self._scale = scale
        self._folder = folder
        self._indexes: dict[int, FilledIndex] = {}

    @cached_property
    def subscriptions(self) -> list[FilledTemplate]:
        """Return the subscriptions, as templates."""
        return list(templates(Workload(self._scale.workload).subscriptions(0, self._scale.subscriptions)))

    @cached_property
    def events(self) -> Any:
        """Return the events, as a table."""
        return event_table(
            Workload(self._scale.workload).events(0, self._scale.events, batch=self._scale.batch),
            self._scale.workload.names,
        )

    @cached_property
    def event_files(self) -> str:
        """Return the folder of files that hold the events."""
        return write_table(self.events, self._folder / "events")

    def engine(self) -> Engine:
        """Return an engine with all subscriptions."""
        engine = Engine(matcher=INDEX)
        for one in self.subscriptions:
            engine.subscribe_many(one.text, one.with_ids(), id=ID)
        return engine

    def index(self, shards: int = 1) -> FilledIndex:
        """Return an index of all subscriptions."""
        if shards not in self._indexes:
            place = self._folder / f"index-{shards}"
            self._indexes[shards] = filled(place, self.subscriptions, shards=shards)
        return self._indexes[shards]


def filled(folder: Path, subscriptions: Iterable[FilledTemplate], *, shards: int = 1) -> FilledIndex:
    """Return a new index of these subscriptions, published."""
    begun = time.perf_counter()
    index = SubscriptionIndex(folder, shards=shards, matcher=INDEX)
    for one in subscriptions:
        index.subscribe_many(one.text, one.with_ids(), id=ID)
    waiting = time.perf_counter()
    index.publish()
    done = time.perf_counter()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return FilledIndex(str(folder), waiting - begun, done - waiting, size)


def write_table(table: Any, folder: Path) -> str:
    """Write a table as a folder of Parquet files, and return it."""
    folder.mkdir(parents=True)
    step = max(-(-table.num_rows // _FILES), 1)
    for part, begin in enumerate(range(0, table.num_rows, step)):
        pq.write_table(table.slice(begin, step), folder / f"part-{part}.parquet")
    return str(folder)
