"""A stream's two stages without Spark: micro-batches, a state store that forgets what was not committed, and workers that die."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tests.sharding.shards import Told, normal
from tocsin.formats.notifications import encode_json
from tocsin.index import SubscriptionIndex
from tocsin.model import Event
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.match_worker import MatchJob
from tocsin.spark.stateful import shard_worker
from tocsin.spark.stateful.job import StatefulJob, StatefulOptions
from tocsin.spark.stateful.packed_rows import PackedRow, payloads
from tocsin.spark.stateful.routing import route_micro_batch
from tocsin.spark.stateful.saved_pages import SavedPages
from tocsin.spark.stateful.shard_notes import unpacked
from tocsin.spark.stateful.shard_worker import run_shard
from tocsin.spark.stateful.stage import stateful_job

SCHEMA = StructType(
    [
        StructField("subscription", StringType()),
        StructField("event_id", StringType()),
        StructField("time", LongType()),
        StructField("generation", LongType()),
        StructField("event_ids", ArrayType(StringType())),
        StructField("start", LongType()),
        StructField("old", StringType()),
        StructField("new", StringType()),
        StructField("values", StringType()),
        StructField("also", StringType()),
        StructField("reason", StringType()),
    ]
)
LAYOUT = EventLayout("event_id", "t", False, payload="body", stream_column="of", kept_until="until")


class Store:
    """The state of one shard in a state store: a value and a map, as `SavedPages` uses them."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None
        self.map: dict[bytes, bytes] = {}

    def copy(self) -> Store:
        other = Store()
        other.value, other.map = self.value, dict(self.map)
        return other

    def get(self) -> Any:
        return self.value

    def update(self, newValue: Any) -> None:  # noqa: N803 - Spark's name
        self.value = newValue

    def getValue(self, key: Any) -> Any:  # noqa: N802
        found = self.map.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self.map[key[0]] = value[0]

    def removeKey(self, key: Any) -> None:  # noqa: N802
        del self.map[key[0]]

    def saved(self) -> SavedPages:
        return SavedPages(self, self)


class Stream:
    """A stream that follows an index."""

    def __init__(
        self, index: SubscriptionIndex, shards: int, random: Random, out_of_orderness: int = 0
    ) -> None:
        self.index = index
        self.shards = shards
        self._random = random
        self._out_of_orderness = out_of_orderness
        self._stores: dict[int, Store] = defaultdict(Store)
        self.late: list[str] = []
        self.refused: list[str] = []

    def process(self, events: Sequence[Event]) -> Told:
        """Run a micro-batch with the newest generation, now and then more than once, or on other workers than before."""
        for _ in range(self._random.choice([0, 1])):
            self._attempt(events, {key: store.copy() for key, store in self._stores.items()})
        if self._random.random() < 0.3:
            shard_worker._held.clear()
        stores = {key: store.copy() for key, store in self._stores.items()}
        rows = self._attempt(events, stores)
        self._stores.update(stores)
        for row in rows:
            if row["reason"] is not None:
                (self.late if row["reason"].endswith(": it is late") else self.refused).append(
                    row["event_id"]
                )
        for row in rows:
            assert row["also"] == (None if row["event_id"] is None else f"also {row['event_id']}")
        return Counter(_told(row) for row in rows if row["reason"] is None)

    def job(self, generation: int) -> StatefulJob:
        match = MatchJob(
            self.index.generations.storage.uri,
            generation,
            True,
            LAYOUT,
            keep=("also",),
            values=True,
            faults=True,
            time_type=pa.int64(),
            threads=1,
        )
        options = StatefulOptions(self.shards, self._out_of_orderness, late=True)
        return stateful_job(match, SCHEMA, shards=self.shards, options=options, is_stream=True)

    def _attempt(self, events: Sequence[Event], stores: dict[int, Store]) -> list[dict[str, Any]]:
        job = self.job(self.index.generation)
        middle = self._random.randint(0, len(events))
        batches = [record_batch(some) for some in (events[:middle], events[middle:])]
        sent: dict[int, list[PackedRow]] = defaultdict(list)
        for batch in route_micro_batch(job, batches):
            for row in batch.to_pylist():
                sent[row["key"]].append(PackedRow.read(row))
        found: list[bytes] = []
        for key, rows in sent.items():
            self._random.shuffle(rows)
            saved = stores.setdefault(key, Store()).saved()
            found += run_shard(job, job.keys.index(key), rows, saved)
        told = pa.RecordBatch.from_pydict({"payload": found}, schema=pa.schema([("payload", pa.binary())]))
        return [row for payload in payloads([told]) for row in unpacked(payload).to_pylist()]


def record_batch(events: Sequence[Event]) -> Any:
    """Return events as Spark hands them over."""
    columns: dict[str, Any] = {
        "event_id": pa.array([event.id for event in events], pa.string()),
        "t": pa.array([event.end for event in events], pa.int64()),
        "of": pa.array([event.stream for event in events], pa.string()),
        "body": pa.array([encode_json(dict(event.attributes)).decode() for event in events], pa.string()),
        "until": pa.array([event.valid_until for event in events], pa.int64()),
        "also": pa.array([f"also {event.id}" for event in events], pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def plain(event: Event, until: int | None = None) -> Event:
    """Return an event as its JSON tells it, without a duration."""
    attributes = json.loads(encode_json(dict(event.attributes)))
    return Event(event.id, attributes, event.stream, event.end, event.end, until)


def _told(row: Mapping[str, Any]) -> tuple[Any, ...]:
    texts = (None if row[name] is None else normal(row[name]) for name in ("values", "old", "new"))
    end = row["time"] if row["event_ids"] else None
    return (row["subscription"], tuple(row["event_ids"]), row["start"], end, *texts)
