"""The equi-join of events' candidate coordinates with subscriptions' points (AMKH), and the subscriptions it leaves out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, LongType, StringType, StructType

from tocsin.formats.column_blocks import ROW_SPECIFIC
from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.index.additions import WaitingFilters
from tocsin.index.contents import PartBuilder
from tocsin.index.placement import Placement
from tocsin.index.shard import ShardDraft
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import SparkError
from tocsin.model.event import STREAM
from tocsin.model.options import FOREVER
from tocsin.model.values import Kind
from tocsin.spark.event_columns import CLOCK, prune_columns, time_type_of, with_positional_names
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.join.checks import (
    CheckedAttributes,
    Checker,
    JoinCheck,
    NeverError,
    UndecidedError,
    ValueFamily,
    Values,
    is_first,
    passes,
)
from tocsin.spark.join.leaf_columns import Leaf, any_of, fault_of, fields_of, leaves_of, ticks_of
from tocsin.spark.join.points import PointTable, SqlSubscription, points_of
from tocsin.spark.join.schemas import Schema

_MAX_CONJUNCTIONS: Final = 16  # each carries the earlier ones

_BROADCAST: Final = 64 << 20  # bytes of points that are broadcast at most
_ARRAYS: Final = {"lows": "double", "highs": "double", "texts": "string", "wholes": "bigint"}


class JoinResult(Struct, frozen=True):
    """The notifications of the join, and the subscriptions that remain for an index."""

    notifications: DataFrame
    remaining: list[WaitingFilters]


def join_notifications(
    events: DataFrame,
    reader: IndexReader,
    generation: int,
    layout: EventLayout,
    *,
    keep: Sequence[str] = (),
    values: bool = False,
    faults: bool = False,
) -> JoinResult:
    """Return the notifications of a generation's subscriptions, as far as Spark SQL decides them exactly.

    With `values`, subscriptions that select values remain, too.
    """
    if not events.isStreaming:
        layout = prune_columns(events, layout, reader.generation(generation).attributes)
    source = _Source(events, layout)
    attributes = CheckedAttributes({path: leaf.kind for path, leaf in source.leaves.items()})
    parts = split(reader, generation, Checker(attributes), may_select=not values)
    points = points_of(parts.by_sql)
    has_validity = any(one.validity.is_limited for one in parts.by_sql)
    candidates = _candidates(source, attributes, points.schemas, keep)
    subscriptions = _point_frame(events, points)
    found = candidates.join(subscriptions, "coordinate").where(_condition(points, has_validity=has_validity))
    return JoinResult(_notifications(found, generation, keep, values=values, faults=faults), parts.remaining)


class _Source:
    """Events with positional column names, and their leaf columns by path."""

    def __init__(self, events: DataFrame, layout: EventLayout) -> None:
        if layout.payload is not None:
            raise SparkError(
                f"the plan `join` reads columns or a struct, and `{layout.payload}` is JSON: read it with from_json first, "
                "or leave `plan` out"
            )
        self.events = events
        self.layout = layout
        self.columns = self._columns()
        telling = sorted(ROW_SPECIFIC.intersection(name for name, _, _ in self.columns))
        if telling:
            raise SparkError(
                f"the events have a column `{telling[0]}`, which says what a row is, and the plan `join` does not read it: "
                "drop the rows that are no events and the column, or leave `plan` out"
            )
        self.leaves = leaves_of(self.columns)
        if layout.stream is not None:
            self.leaves[STREAM] = Leaf(STREAM, Kind.STRING, functions.lit(layout.stream), StringType())
        elif layout.stream_column is not None:
            column = self.named(layout.stream_column)
            self.leaves[STREAM] = Leaf(STREAM, Kind.STRING, column, StringType())

    def named(self, name: str) -> Column:
        """Return the column that has this name in the events."""
        return functions.col(f"c{self.events.columns.index(name)}")

    def type_of(self, name: str) -> DataType:
        """Return the type of a column."""
        return self.events.schema[name].dataType

    @property
    def ticks(self) -> Column:
        """Return when an event ended, in ticks."""
        if self.layout.time == CLOCK:
            return functions.unix_micros(functions.current_timestamp())
        return ticks_of(self.named(self.layout.time), self.type_of(self.layout.time))

    @property
    def time(self) -> Column:
        """Return when an event ended, as a notification has it."""
        if self.layout.time == CLOCK:
            return functions.current_timestamp()
        if isinstance(time_type_of(self.events, self.layout), LongType):
            return self.ticks
        return functions.timestamp_micros(self.ticks)

    @property
    def is_event(self) -> Column:
        """Return whether a row is an event."""
        layout = self.layout
        wrong: list[Column | None] = [self.named(layout.event_id).isNull()]
        if layout.time != CLOCK:
            wrong.append(self.ticks.isNull())
        if layout.struct is not None:
            wrong.append(self.named(layout.struct).isNull())
        cells = [(column, type_) for _, column, type_ in self.columns]
        if layout.stream_column is not None:
            cells.append((self.named(layout.stream_column), StringType()))
        wrong.append(any_of(fault_of(column, type_) for column, type_ in cells))
        right = functions.lit(True)
        for fault in wrong:
            if fault is not None:
                right = right & ~fault
        return right

    def _columns(self) -> list[tuple[str, Column, DataType]]:
        struct = self.layout.struct
        if struct is None:
            return [(name, self.named(name), self.type_of(name)) for name in self.layout.columns or ()]
        type_ = self.type_of(struct)
        return fields_of(self.named(struct), type_) if isinstance(type_, StructType) else []


def _candidates(
    source: _Source, attributes: CheckedAttributes, schemas: Sequence[Schema], keep: Sequence[str]
) -> DataFrame:
    """Return a row for each candidate coordinate of each event, with the values to verify and to return."""
    leaves = {one.number: source.leaves[path] for path, one in attributes.used.items()}
    hashed = sorted({number for schema in schemas for number in schema})
    columns = [
        source.named(source.layout.event_id).alias("event_id"),
        source.time.alias("time"),
        source.ticks.alias("ticks"),
        *(source.named(name).alias(f"k{place}") for place, name in enumerate(keep)),
        *_value_arrays(source, attributes),
        *(
            functions.when(leaves[number].key.isNotNull(), _hash(number, leaves[number].key)).alias(
                f"h{number}"
            )
            for number in hashed
        ),
    ]
    rows = with_positional_names(source.events).where(source.is_event).select(*columns)
    coordinates = functions.array(*(_coordinate(number, schema) for number, schema in enumerate(schemas)))
    kept = [name for name in rows.columns if not (name[0] == "h" and name[1:].isdigit())]
    return rows.select(*kept, functions.explode(coordinates).alias("coordinate"))


def _value_arrays(source: _Source, attributes: CheckedAttributes) -> list[Column]:
    """Return the values that checks may read, an array for each family."""
    found: dict[str, list[Column]] = {name: [] for name in _ARRAYS}
    for path, attribute in attributes.used.items():
        leaf = source.leaves[path]
        if attribute.family is ValueFamily.NUMBER:
            low, high = leaf.bounds
            found["lows"].append(low)
            found["highs"].append(high)
        else:
            found["texts" if attribute.family is ValueFamily.TEXT else "wholes"].append(leaf.value)
    if all(leaf.is_exact for leaf in map(source.leaves.__getitem__, attributes.used)):
        found["highs"] = []  # equal to the lows
    arrays = {name: functions.array(*columns) for name, columns in found.items()}
    return [column.cast(f"array<{_ARRAYS[name]}>").alias(name) for name, column in arrays.items()]


def _hash(number: int, key: Column) -> Column:
    return functions.xxhash64(functions.lit(number), key)


def _coordinate(number: int, schema: Schema) -> Column:
    """Return an event's coordinate by a schema; null if some attribute has no value."""
    hashes = [functions.col(f"h{number}") for number in schema]
    coordinate = _coordinate_of(functions.lit(number), functions.array(*hashes).cast("array<bigint>"))
    for hash_ in hashes:
        coordinate = functions.when(hash_.isNotNull(), coordinate)
    return coordinate


def _coordinate_of(schema: Column, hashes: Column) -> Column:
    return functions.xxhash64(schema, hashes)


def _point_frame(events: DataFrame, points: PointTable) -> DataFrame:
    """Return the points with their coordinates."""
    frame = events.sparkSession.createDataFrame(points.table)

    def hash_of(key: Column) -> Column:
        """Return the hash of a key's attribute and its value."""
        attribute = key.getField("attribute")
        number, text, whole = (key.getField(name) for name in ("number", "text", "whole"))
        return (
            functions.when(number.isNotNull(), functions.xxhash64(attribute, number))
            .when(text.isNotNull(), functions.xxhash64(attribute, text))
            .otherwise(functions.xxhash64(attribute, whole))
        )

    hashes = functions.transform("keys", hash_of)
    coordinate = _coordinate_of(functions.col("schema"), hashes)
    held = frame.withColumn("coordinate", coordinate).drop("schema", "keys")
    return functions.broadcast(held) if points.table.nbytes <= _BROADCAST else held


def _condition(points: PointTable, *, has_validity: bool) -> Column:
    """Return whether a pair of an event and a point is a match, by the first conjunction that holds."""
    lows, highs, texts, wholes = (functions.col(name) for name in _ARRAYS)
    values = Values(lows, functions.when(functions.size(highs) > 0, highs).otherwise(lows), texts, wholes)
    condition = passes(values, functions.col("checks"))
    if points.has_earlier:
        condition = condition & is_first(values, functions.col("earlier"))
    if has_validity:
        begin, end, ticks = (functions.col(name) for name in ("valid_from", "valid_until", "ticks"))
        condition = condition & (begin <= ticks) & ((end == FOREVER) | (ticks < end))
    return condition


def _notifications(
    found: DataFrame, generation: int, keep: Sequence[str], *, values: bool, faults: bool
) -> DataFrame:
    """Return matches with the columns of notifications."""
    nothing: Any = functions.lit(None).cast("string")
    columns = [
        functions.col("subscription"),
        functions.col("event_id"),
        functions.col("time"),
        functions.lit(generation).cast("bigint").alias("generation"),
    ]
    if values:
        columns.append(nothing.alias("values"))
    columns += [functions.col(f"k{place}").alias(name) for place, name in enumerate(keep)]
    if faults:
        columns.append(nothing.alias("reason"))
    return found.select(*columns)


class Split(Struct, frozen=True):
    """Subscriptions by their matcher; one that no event satisfies is in neither list."""

    by_sql: list[SqlSubscription]
    remaining: list[WaitingFilters]


def split(reader: IndexReader, generation: int, checker: Checker, *, may_select: bool) -> Split:
    """Split the subscriptions of a generation; without `may_select`, SQL decides none that selects values."""
    found = Split([], [])
    storage = reader.generations.storage
    for entry in reader.generation(generation).shards:
        draft = ShardDraft.of(storage.folder(entry.folder))
        conjunctions = draft.conjunctions()
        for validity, records in draft.registry.records().items():
            left, of_left = [], []
            for record in records:
                held = conjunctions[draft.registry.subscriptions.number(record.id)]
                checks = _checks(held, checker) if may_select or record.select is None else None
                if checks is None:
                    left.append(record)
                    of_left.append(held)
                elif checks:
                    found.by_sql.append(SqlSubscription(record.id, validity, checks))
            if left:
                found.remaining.append(WaitingFilters.of_records(left, validity, of_left))
    return found


def index_remaining(
    remaining: Sequence[WaitingFilters],
    place: str | os.PathLike[str],
    matcher: str | None,
    options: Mapping[str, Any] | None,
) -> tuple[str, int]:
    """Build an index of just these subscriptions; return its address and its generation."""
    index = SubscriptionIndex(place, matcher=matcher, options=options)
    storage = index.generations.storage
    placement = Placement(index.shards)
    builder = PartBuilder(0, placement, matcher, options)
    for addition in remaining:
        builder.contents.add(addition)
    return storage.uri, index.adopt([builder.save(storage)], placement)


def _checks(held: Sequence[Conjunction], checker: Checker) -> list[tuple[JoinCheck, ...]] | None:
    """Return the checks of the satisfiable conjunctions, or None if SQL cannot decide them."""
    found = []
    for conjunction in held:
        try:
            found.append(checker.checks(conjunction))
        except NeverError:
            continue
        except UndecidedError:
            return None
    return found if len(found) <= _MAX_CONJUNCTIONS else None
