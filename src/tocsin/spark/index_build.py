"""Building an index on Spark, each shard by its own task: for more subscriptions than a driver can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import LongType, StructField, StructType

from tocsin.index import SubscriptionIndex
from tocsin.index.additions import WaitingFilters, sample_conjunctions
from tocsin.index.contents import IndexPart, PartBuilder
from tocsin.index.generations import ShardEntry
from tocsin.index.placement import Placement, Routes
from tocsin.index.router import routes_from_json, routes_to_json
from tocsin.index.stateful_contents import GivenText
from tocsin.index.storage import storage_of
from tocsin.language import Template
from tocsin.language.check import QuerySource, read_query
from tocsin.model import Filter
from tocsin.model.errors import SparkError, SubscriptionError
from tocsin.model.options import SubscriptionOptions, Validity
from tocsin.spark.subscription_sources import (
    COLUMNS,
    FromTemplate,
    Report,
    Tables,
    Ticks,
    check_rows,
    declare,
    entries_of,
    fill_index,
    log_error,
)
from tocsin.spark.worker_python import ensure_worker_python
from tocsin.subscriptions.filters import CompiledFilter, FilterCompiler
from tocsin.subscriptions.runs import options_of_plain, plain_options
from tocsin.subscriptions.sources import CompiledSubscription, compile_checked, compile_set
from tocsin.subscriptions.template_batch import TemplateBatch

_SHARD: Final = "__tocsin_shard"
_SAMPLE: Final = 50_000  # subscriptions sampled to choose the placement of all
_RESULT: Final = "kind string, id string, text string"
_KINDS: Final = ("error", "subscription", "part")  # what a worker returns: the last is a shard that is built
_ERROR, _GIVEN, _PART = _KINDS


def build_index(
    subscriptions: DataFrame | FromTemplate,
    folder: str | os.PathLike[str],
    *,
    shards: int,
    matcher: str | None = None,
    options: Mapping[str, Any] | None = None,
    tables: Tables | None = None,
    ticks: Ticks | None = None,
    on_error: Report | None = None,
) -> int:
    """Build a generation of an index with just these subscriptions on Spark's workers, and return its number.

    `subscriptions` are rows with `id` and `text` (and `valid_from`, `valid_until`, `owner`, `weight`, `witness`), or a
    template with a DataFrame of rows, whose `id` names a column. `folder` is a place that all workers can write to. Invalid
    rows, and rows that share an id, go to `on_error`, or are logged, and are left out. Each shard must fit into a worker's
    memory. Sequences and views, with their `tables` and `ticks` as in `SubscriptionIndex`, are gathered on the driver.
    """
    report = on_error or log_error
    frame, reader = _readable(subscriptions)
    ensure_worker_python(frame.sparkSession)
    index = SubscriptionIndex(folder, shards=shards, matcher=matcher, options=options)
    if isinstance(reader, _TemplateRows) and not isinstance(reader.template.query, Filter):
        fill_index(index, subscriptions, report, tables=tables, ticks=ticks)
        return index.publish()
    declare(index, tables, ticks)
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
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for row in by_shard.mapInArrow(lambda batches: _build(reader, task, batches), _RESULT).collect():
        found[row["kind"]].append(row)
    for row in found[_ERROR]:
        report(SubscriptionError(row["text"], row["id"]))
    index.apply_stateful(list(map(_read_given, found[_GIVEN])), on_error=report)
    linked = _filters_on(index.published, unique) if index.published else []
    return index.adopt([_read_part(row["text"]) for row in found[_PART]], placement, linked)


class _Task(Struct, frozen=True):
    """The instructions to build a shard, for a worker."""

    folder: str
    placement: Placement
    matcher: str | None
    options: dict[str, Any]


class _Read(Struct, frozen=True):
    """Some rows: the filters made from them, the sequences and views, and the errors of faulty ones, by id."""

    additions: list[WaitingFilters]
    errors: Sequence[tuple[str | None, str]]
    others: Sequence[GivenText] = ()


class _Texts(Struct, frozen=True):
    """Reads rows that hold a text each."""

    id: str = "id"

    def read(self, batch: Any) -> _Read:
        """Return the subscriptions of a record batch; sequences and views are read, and compiled on the driver."""
        compiled, errors = self._compile(batch)
        filters = {id_: one for id_, one in compiled.items() if one.is_filter}
        others = [GivenText.of(id_, one) for id_, one in compiled.items() if not one.is_filter]
        return _Read(list(WaitingFilters.of(filters)), [(error.id, error.reason) for error in errors], others)

    def filters_on(self, streams: Set[str], batch: Any) -> list[GivenText]:
        """Return the filters of a record batch that name one of these streams."""
        compiled = self._compile(batch)[0].items()
        return [
            GivenText.of(id_, one)
            for id_, one in compiled
            if isinstance(one.read, Filter) and one.read.stream in streams
        ]

    def _compile(self, batch: Any) -> tuple[dict[str, CompiledSubscription[Any]], list[SubscriptionError]]:
        def compile_one(
            id_: str, source: QuerySource, options: SubscriptionOptions
        ) -> CompiledSubscription[Any]:
            checked = read_query(source)
            if isinstance(checked.query, Filter):
                return compile_checked(id_, source, checked, options)
            return CompiledSubscription(checked.query, None, options, str(source))

        return compile_set(entries_of(batch), None, compile_one, own_owners=True)


class _TemplateRows(Struct, frozen=True):
    """Reads rows that fill a template."""

    id: str
    template: Template

    def read(self, batch: Any) -> _Read:
        """Return the subscriptions of a record batch."""
        made = self._made(batch)
        names = batch.column(self.id)
        errors = [(str(names[error.row or 0].as_py()), str(error)) for error in made.errors]
        return _Read([WaitingFilters.of_rows(made, Validity())] if made.ids else [], errors)

    def _made(self, batch: Any) -> TemplateBatch[CompiledFilter]:
        rows = pa.Table.from_batches([batch])
        return TemplateBatch.of(self.template, rows, self.id, FilterCompiler().compile_rows)


def _readable(subscriptions: DataFrame | FromTemplate) -> tuple[DataFrame, _Texts | _TemplateRows]:
    """Return the rows to read and their reader; raise `SparkError` if they are in no DataFrame or have no id."""
    if isinstance(subscriptions, DataFrame):
        check_rows(subscriptions)
        return subscriptions.select(*(name for name in COLUMNS if name in subscriptions.columns)), _Texts()
    if not isinstance(subscriptions.rows, DataFrame):
        raise SparkError("an index is built on Spark from a DataFrame of subscriptions or template rows")
    if subscriptions.id is None or subscriptions.id not in subscriptions.rows.columns:
        raise SparkError("the rows of a template are known by an id of their own: name its column with `id`")
    text = subscriptions.text
    template = text if isinstance(text, Template) else Template(text)
    return subscriptions.rows, _TemplateRows(subscriptions.id, template)


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
                yield _results([(_ERROR, id_, reason) for id_, reason in read.errors])
            if read.others:
                yield _results([_written_given(one) for one in read.others])
    for builder in builders.values():
        yield _results([(_PART, None, _write_part(builder.save(storage_of(task.folder))))])


def _filters_on(streams: Set[str], frame: DataFrame) -> list[GivenText]:
    """Return the filters of texts on these streams: a pass of its own, since sequences say their names in the one before.

    Where sequences are, the rows are texts: those of a template are filters only, and publish nothing.
    """

    def find(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            if found := _Texts().filters_on(streams, batch):
                yield _results([_written_given(one) for one in found])

    return [_read_given(row) for row in frame.mapInArrow(find, _RESULT).collect()]


def _results(rows: list[tuple[str, str | None, str]]) -> Any:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=["kind", "id", "text"])


def _written_given(one: GivenText) -> tuple[str, str, str]:
    return _GIVEN, one.id, json.dumps([one.text, plain_options(one.options)])


def _read_given(row: Any) -> GivenText:
    text, options = json.loads(row["text"])
    return GivenText(row["id"], text, options_of_plain(options))


def _write_part(part: IndexPart) -> str:
    entry, routes = msgspec.to_builtins(part.entry), routes_to_json(part.routes)
    return json.dumps([part.shard, entry, routes, part.attributes])


def _read_part(text: str) -> IndexPart:
    shard, entry, routes, attributes = json.loads(text)
    read = msgspec.convert(entry, ShardEntry)
    return IndexPart(shard, read, tuple(routes_from_json(routes)), tuple(attributes))
