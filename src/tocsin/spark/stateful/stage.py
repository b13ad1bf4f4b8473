"""The stateful stage as a plan of Spark's: for a stream with its state, for a history sorted by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, GroupedData, Row, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tocsin.model.errors import SparkError
from tocsin.spark.match_worker import MatchJob
from tocsin.spark.stateful import packed_rows
from tocsin.spark.stateful.job import StatefulJob, StatefulOptions
from tocsin.spark.stateful.packed_rows import PackedRow
from tocsin.spark.stateful.routing import (
    END,
    PLACE,
    SHARD,
    route_history,
    route_micro_batch,
)
from tocsin.spark.stateful.saved_pages import SavedPages
from tocsin.spark.stateful.shard_events import ROLES
from tocsin.spark.stateful.shard_keys import shard_keys
from tocsin.spark.stateful.shard_notes import NoteSchema, unpacked
from tocsin.spark.stateful.shard_worker import end_task, run_history, run_shard

DEFAULT_SHARDS: Final = 8
"""The shards of a stream's state, unless it is said otherwise; they stay the same as long as its checkpoint."""

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_MOST_OF_HISTORY: Final = 64


class ShardProcessor(StatefulProcessor):
    """Runs the shards of a stream; Spark keeps their states."""

    def __init__(self, job: StatefulJob | None, keys: Sequence[int]) -> None:
        self._job = job  # None where shards only get their first states
        self._shards = {key: shard for shard, key in enumerate(keys)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state of a shard."""
        self._head = handle.getValueState("head", "content binary")
        self._pages = handle.getMapState("pages", "digest binary", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Process the rows of a micro-batch that a shard was sent."""
        if self._job is None:
            return
        read = map(PackedRow.read, rows)
        saved = SavedPages(self._head, self._pages)
        for payload in run_shard(self._job, self._shards[key[0]], read, saved):
            yield Row(payload=payload)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: ARG002, N802, N803
        """Begin with a state that was made of another checkpoint's."""
        saved = SavedPages(self._head, self._pages)
        saved.write(bytes(initialState["state"]), int(initialState["generation"]))

    def close(self) -> None:
        """End the task; runtimes stay for the next micro-batch."""
        end_task()


def stateful_job(
    match: MatchJob,
    schema: StructType,
    *,
    shards: int,
    options: StatefulOptions,
    is_stream: bool,
) -> StatefulJob:
    """Return the task of a stateful stage whose notifications have this schema."""
    notes = NoteSchema(to_arrow_schema(schema, timezone="UTC"), match.layout.event_id, match.keep)
    keys = shard_keys(shards) if is_stream else ()
    return StatefulJob(match, notes, shards, keys, options.out_of_orderness, options.late, is_stream)


def history_shards(events: DataFrame) -> int:
    """Return the shards that a history is spread over, unless it is said otherwise: the partitions of Spark's shuffles."""
    return max(1, min(int(events.sparkSession.conf.get(_PARTITIONS) or 1), _MOST_OF_HISTORY))


def run_stream(prepared: DataFrame, job: StatefulJob, schema: StructType) -> DataFrame:
    """Return the notifications of filters, sequences and views for a stream."""
    check_state_store(prepared.sparkSession)
    packed = prepared.mapInArrow(lambda batches: route_micro_batch(job, batches), packed_rows.SCHEMA)
    return run_shards(packed, ShardProcessor(job, job.keys)).mapInArrow(_unpacked, schema)


def run_shards(packed: DataFrame, processor: ShardProcessor, initial: GroupedData | None = None) -> DataFrame:
    """Return the packed output of shards; `initial` are the states that they begin with, by key."""
    return packed.groupBy("key").transformWithState(
        statefulProcessor=processor,
        outputStructType="payload binary",
        outputMode="Append",
        timeMode="None",
        initialState=initial,
    )


def run_batch(prepared: DataFrame, job: StatefulJob, generation: int, schema: StructType) -> DataFrame:
    """Return the notifications of sequences and views for a history: events are sorted by Spark, shard by shard."""
    routed_schema = StructType(
        [
            *prepared.schema.fields,
            StructField(SHARD, IntegerType()),
            StructField(ROLES, LongType()),
            StructField(END, LongType()),
            StructField(PLACE, LongType()),
        ]
    )
    routed = prepared.mapInArrow(lambda batches: route_history(job, generation, batches), routed_schema)
    sorted_ = routed.repartitionById(job.shards, functions.col(SHARD)).sortWithinPartitions(END, PLACE)
    return sorted_.mapInArrow(lambda batches: run_history(job, generation, batches), schema)


def check_state_store(spark: SparkSession) -> None:
    """Raise `SparkError` unless the session keeps state where sequences and views can have theirs."""
    if spark.conf.get(_PROVIDER, "") != _ROCKS:
        raise SparkError(
            "sequences and views keep their state in RocksDB, and this session does not: set "
            f"{_PROVIDER} to {_ROCKS} (and spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled to true), "
            "or use `tocsin.spark.local_session`"
        )


def _unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    for payload in packed_rows.payloads(batches):
        yield unpacked(payload)
