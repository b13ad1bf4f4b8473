"""The data source `tocsin-arrow`: Arrow files in a folder; each batch is committed once, however often it is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tocsin.model.errors import SparkError
from tocsin.spark.data_sources import check_options
from tocsin.spark.session_kinds import QUERY
from tocsin.spark.sinks.folder import Commit, PartFile, SinkFolder

_OPTIONS: Final = ("path", "compression", "checkpointLocation")
_COMPRESSIONS: Final = {"none": None, "lz4": "lz4", "zstd": "zstd"}
_READ_AT_ONCE: Final = 64 << 20  # bytes of files that one task reads


class ArrowSink(datasource.DataSource):
    """Writes streams and batches to a folder of Arrow files, and reads the committed rows.

    Options: `path`, the folder, which all machines have mounted under that name; `compression` (`none`, `lz4` or
    `zstd`).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "tocsin-arrow"

    def schema(self) -> StructType:
        """Return the columns of the rows that were committed to the folder."""
        return StructType.fromJson(SinkFolder(self._folder()).header().columns)

    def reader(self, schema: StructType) -> _Reader:
        """Return a reader of the rows that are committed when it is planned."""
        return _Reader(self._folder(), _arrow(schema))

    def writer(self, schema: StructType, overwrite: bool) -> _BatchWriter:
        """Return a writer whose rows appear atomically; if it overwrites, they replace all earlier ones."""
        return _BatchWriter(self._folder(), schema, overwrite=overwrite, compression=self._compression())

    def streamWriter(self, schema: StructType, overwrite: bool) -> _StreamWriter:  # noqa: N802 - Spark's name
        """Return a writer that commits each micro-batch once; a query in complete mode overwrites the one before."""
        return _StreamWriter(self._folder(), schema, overwrite=overwrite, compression=self._compression())

    def _folder(self) -> str:
        check_options(self.name(), self.options, _OPTIONS)
        # A worker's working directory may be another.
        return str(SinkFolder(self.options.get("path", "")).root)

    def _compression(self) -> str | None:
        given = self.options.get("compression", "none").lower()
        if given not in _COMPRESSIONS:
            known = ", ".join(_COMPRESSIONS)
            raise SparkError(f"{self.name()}: `compression` is one of {known}, not `{given}`")
        return _COMPRESSIONS[given]


@dataclass
class _Written(datasource.WriterCommitMessage):
    """The files that one task wrote, and its query."""

    query: str | None
    files: tuple[str, ...]
    rows: int


class _Writer:
    """The part of a task that the streaming and the batch writer share."""

    def __init__(self, folder: str, schema: StructType, *, overwrite: bool, compression: str | None) -> None:
        self._folder = folder
        self._columns = _nullable(schema)
        self._overwrite = overwrite
        self._compression = compression
        _arrow(self._columns)  # rejects types that Arrow lacks before anything is computed

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        """Write a task's rows to an uncommitted file."""
        sink = SinkFolder(self._folder)
        query = self._query()
        sink.check(query, self._columns.jsonValue())
        with PartFile(sink, _arrow(self._columns), self._compression) as part:
            for batch in iterator:
                part.write(batch)
        return _Written(query, part.files, part.rows)

    def _query(self) -> str | None:
        """Return the streaming query that this task works for, None for a batch job."""
        raise NotImplementedError

    def _claimed(self, query: str | None) -> SinkFolder:
        """Return the folder, made the query's own."""
        sink = SinkFolder(self._folder)
        sink.claim(query, self._columns.jsonValue(), _arrow(self._columns))
        return sink


class _StreamWriter(_Writer, datasource.DataSourceStreamArrowWriter):
    def commit(self, messages: list[datasource.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish the micro-batch; if it was published before, remove the files written again."""
        written = _present(messages)
        if not written:  # no task, no rows
            return
        sink = self._claimed(written[0].query)
        commit = Commit(batch=batchId, files=_files(written), rows=_rows(written), replaces=self._overwrite)
        if not sink.publish(commit):
            self.abort(messages, batchId)

    def abort(self, messages: list[datasource.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove the written files, except committed ones: a commit may fail after it was published."""
        sink = SinkFolder(self._folder)
        commit = sink.commit_of(batchId)
        kept = () if commit is None else commit.files
        sink.discard(name for name in _files(_present(messages)) if name not in kept)

    def _query(self) -> str:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY)
        if query is None:
            raise SparkError(f"{self._folder}: Spark does not say which streaming query is writing")
        return query


class _BatchWriter(_Writer, datasource.DataSourceArrowWriter):
    def commit(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        """Publish the rows as one batch with the next number."""
        written = _present(messages)
        self._claimed(None).append(_files(written), _rows(written), replaces=self._overwrite)

    def abort(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        """Remove the written files, except committed ones."""
        sink = SinkFolder(self._folder)
        kept = {name for commit in sink.all_commits() for name in commit.files}
        sink.discard(name for name in _files(_present(messages)) if name not in kept)

    def _query(self) -> None:
        # A function of `foreachBatch` runs inside a streaming query, but may write more than once in a batch.
        return None


@dataclass
class _Files(datasource.InputPartition):
    names: tuple[str, ...]


class _Reader(datasource.DataSourceReader):
    def __init__(self, folder: str, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = schema

    def partitions(self) -> list[datasource.InputPartition]:
        """Return the committed files in their order, neighbours together while they are small."""
        sink = SinkFolder(self._folder)
        found: list[datasource.InputPartition] = []
        names: list[str] = []
        size = 0
        for name in (name for commit in sink.commits() for name in commit.files):
            names.append(name)
            size += sink.size(name)
            if size >= _READ_AT_ONCE:
                found.append(_Files(tuple(names)))
                names, size = [], 0
        return [*found, _Files(tuple(names))]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some committed files."""
        sink = SinkFolder(self._folder)
        for name in cast("_Files", partition).names:
            yield from sink.part(name).select(self._schema.names).cast(self._schema).to_batches()


def _present(messages: Iterable[datasource.WriterCommitMessage | None]) -> list[_Written]:
    return [message for message in messages if isinstance(message, _Written)]


def _files(written: Iterable[_Written]) -> tuple[str, ...]:
    return tuple(name for message in written for name in message.files)


def _rows(written: Iterable[_Written]) -> int:
    return sum(message.rows for message in written)


def _nullable(schema: StructType) -> StructType:
    """Return a schema with all fields nullable and without metadata: both differ from plan to plan."""
    fixed = {"nullable": True, "containsNull": True, "valueContainsNull": True, "metadata": {}}

    def opened(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: fixed[key] if key in fixed else opened(value) for key, value in part.items()}
        return [opened(one) for one in part] if isinstance(part, list) else part

    return StructType.fromJson(opened(schema.jsonValue()))


def _arrow(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of a data source."""
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except Exception as fault:
        raise SparkError(f"tocsin-arrow cannot hold these columns: {fault}") from fault
