"""Building an index on Spark, each shard by its own task: for more subscriptions than a driver can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import LongType, StructField, StructType

from tocsin.index import SubscriptionIndex
from tocsin.index.additions import Addition, sample_conjunctions
from tocsin.index.contents import IndexPart, PartBuilder
from tocsin.index.generations import ShardEntry
from tocsin.index.placement import Placement, Routes
from tocsin.index.router import routes_from_json, routes_to_json
from tocsin.index.storage import storage_of
from tocsin.language import Template
from tocsin.model.errors import SparkError, SubscriptionError
from tocsin.model.options import Validity
from tocsin.spark.subscription_sources import COLUMNS, FromTemplate, Report, check_rows, entries_of, log_error
from tocsin.spark.worker_python import ensure_worker_python
from tocsin.subscriptions.filters import FilterCompiler
from tocsin.subscriptions.sources import compile_filter, compile_set
from tocsin.subscriptions.template_batch import TemplateBatch

_SHARD: Final = "__tocsin_shard"
_SAMPLE: Final = 50_000  # subscriptions sampled to choose the placement of all
_RESULT: Final = "error boolean, id string, text string"


def build_index(
    subscriptions: DataFrame | FromTemplate,
    folder: str | os.PathLike[str],
    *,
    shards: int,
    matcher: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_error: Report | None = None,
) -> int:
    """Build a generation of an index with just these subscriptions on Spark's workers, and return its number.

    `subscriptions` are rows with `id` and `text` (and `valid_from`, `valid_until`), or a template with a DataFrame of
    rows, whose `id` names a column. `folder` is a place that all workers can write to. Invalid rows, and rows
    that share an id, go to `on_error`, or are logged, and are left out. Each shard must fit into a worker's memory.
    """
    report = on_error or log_error
    frame, reader = _readable(subscriptions)
    ensure_worker_python(frame.sparkSession)
    index = SubscriptionIndex(folder, shards=shards, matcher=matcher, options=options)
    repeated = frame.groupBy(reader.id).count().where("count > 1").select(reader.id)
    for row in repeated.collect():
        if row[0] is not None:
            report(SubscriptionError("several rows have this id, and none of them is taken", str(row[0])))
    unique = frame.join(repeated.where(functions.col(reader.id).isNotNull()), reader.id, "left_anti")
    placement = _placement(unique, reader, shards)
    placed = StructType([*unique.schema.fields, StructField(_SHARD, LongType())])
    spread = unique.mapInArrow(lambda batches: _place(reader, placement, batches), placed)
    by_shard = spread.repartitionById(shards, functions.col(_SHARD).cast("int"))
    task = _Task(index.generations.storage.uri, placement, matcher, dict(options or {}))
    parts = []
    for row in by_shard.mapInArrow(lambda batches: _build(reader, task, batches), _RESULT).collect():
        if row["error"]:
            report(SubscriptionError(row["text"], row["id"]))
        else:
            parts.append(_read_part(row["text"]))
    return index.adopt(parts, placement)


class _Task(Struct, frozen=True):
    """The instructions to build a shard, for a worker."""

    folder: str
    placement: Placement
    matcher: str | None
    options: dict[str, Any]


class _Read(Struct, frozen=True):
    """Some rows: the subscriptions made from them, and the errors of faulty ones, by id."""

    additions: list[Addition]
    errors: Sequence[tuple[str | None, str]]


class _Texts(Struct, frozen=True):
    """Reads rows that hold a text each."""

    id: str = "id"

    def read(self, batch: Any) -> _Read:
        """Return the subscriptions of a record batch."""
        compiled, errors = compile_set(entries_of(batch), "index", compile_filter)
        return _Read(list(Addition.of(compiled)), [(error.id, error.reason) for error in errors])


class _TemplateRows(Struct, frozen=True):
    """Reads rows that fill a template."""

    id: str
    text: str | Template

    def read(self, batch: Any) -> _Read:
        """Return the subscriptions of a record batch."""
        rows = pa.Table.from_batches([batch])
        made = TemplateBatch.of(self.text, rows, self.id, FilterCompiler().compile_rows)
        names = batch.column(self.id)
        errors = [(str(names[error.row or 0].as_py()), str(error)) for error in made.errors]
        return _Read([Addition.of_rows(made, Validity())] if made.ids else [], errors)


def _readable(subscriptions: DataFrame | FromTemplate) -> tuple[DataFrame, _Texts | _TemplateRows]:
    """Return the rows to read and their reader; raise `SparkError` if they are in no DataFrame or have no id."""
    if isinstance(subscriptions, DataFrame):
        check_rows(subscriptions)
        return subscriptions.select(*(name for name in COLUMNS if name in subscriptions.columns)), _Texts()
    if not isinstance(subscriptions.rows, DataFrame):
        raise SparkError("an index is built on Spark from a DataFrame of subscriptions or template rows")
    if subscriptions.id is None or subscriptions.id not in subscriptions.rows.columns:
        raise SparkError("the rows of a template are known by an id of their own: name its column with `id`")
    return subscriptions.rows, _TemplateRows(subscriptions.id, subscriptions.text)


def _placement(frame: DataFrame, reader: _Texts | _TemplateRows, shards: int) -> Placement:
    """Return the placement of all subscriptions, chosen by a sample."""
    count = frame.count()
    few = frame if count <= _SAMPLE else frame.sample(fraction=min(1.0, 1.1 * _SAMPLE / count), seed=1)
    tried = few.toArrow().to_batches()
    batches = [addition.batch for batch in tried for addition in reader.read(batch).additions]
    return Placement.of(sample_conjunctions(batches), shards)


def _place(reader: _Texts | _TemplateRows, placement: Placement, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows with their shards; an invalid row goes to shard 0 and is reported there."""
    for batch in batches:
        places: dict[str, int] = {}
        for addition in reader.read(batch).additions:
            shards = Routes().place(addition.batch, addition.ids, placement)
            places.update(zip(addition.ids, shards.tolist(), strict=True))
        ids = batch.column(reader.id).to_pylist()
        column = np.array([places.get(str(id_), 0) for id_ in ids], dtype=np.int64)
        columns, names = [*batch.columns, pa.array(column)], [*batch.schema.names, _SHARD]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def _build(reader: _Texts | _TemplateRows, task: _Task, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the errors of rows, and at the end the shards that were built."""
    builders: dict[int, PartBuilder] = {}
    for batch in batches:
        shards = batch.column(_SHARD).to_numpy()
        rows = batch.drop_columns([_SHARD])
        for shard in np.unique(shards).tolist():
            read = reader.read(rows.take(pa.array(np.flatnonzero(shards == shard))))
            if shard not in builders:
                builders[shard] = PartBuilder(shard, task.placement, task.matcher, task.options)
            for addition in read.additions:
                builders[shard].contents.add(addition)
            if read.errors:
                yield _results([(True, id_, reason) for id_, reason in read.errors])
    for builder in builders.values():
        yield _results([(False, None, _write_part(builder.save(storage_of(task.folder))))])


def _results(rows: list[tuple[bool, str | None, str]]) -> Any:
    kinds = (pa.bool_(), pa.string(), pa.string())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=["error", "id", "text"])


def _write_part(part: IndexPart) -> str:
    entry, routes = msgspec.to_builtins(part.entry), routes_to_json(part.routes)
    return json.dumps([part.shard, entry, routes, part.attributes])


def _read_part(text: str) -> IndexPart:
    shard, entry, routes, attributes = json.loads(text)
    read = msgspec.convert(entry, ShardEntry)
    return IndexPart(shard, read, tuple(routes_from_json(routes)), tuple(attributes))
