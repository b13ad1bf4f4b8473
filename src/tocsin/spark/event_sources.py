"""Sources of events as DataFrames: files, a JetStream stream, a Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, functions

from tocsin.formats.files import Format, known_format
from tocsin.model.errors import SparkError
from tocsin.spark.data_sources import register

_ROW_ID: Final = "__tocsin_event"
_ID: Final = "event_id"
_STREAM: Final = "__tocsin_stream"
_READERS: Final = {Format.PARQUET: "parquet", Format.CSV: "csv", Format.JSON: "json"}
_OPTIONS: Final[Mapping[Format, Mapping[str, str]]] = {
    Format.CSV: {"header": "true", "inferSchema": "true"},
    Format.JSON: {"multiLine": "true"},
}


class _Request(Struct, frozen=True):
    """How to read events."""

    spark: SparkSession
    options: Mapping[str, str]
    id_field: str | None
    time_field: str | None
    stream_field: str | None
    is_stream: bool

    def load(
        self, kind: str, options: Mapping[str, str], path: str | None = None, schema: Any = None
    ) -> DataFrame:
        reader: Any = self.spark.readStream if self.is_stream else self.spark.read
        reader = reader.format(kind).options(**options)
        frame: DataFrame = (reader if schema is None else reader.schema(schema)).load(path)
        _ = frame.schema  # here Spark Connect finds the faults that a classic session has found already
        return frame


class EventSource(Struct, frozen=True):
    """Events in a DataFrame, and the keywords of `match` that say where they stand in it."""

    frame: DataFrame
    layout: Mapping[str, str]


def read_events(
    spark: SparkSession,
    source: str,
    *,
    format: Format | None = None,
    options: Mapping[str, str] | None = None,
    id_field: str | None = None,
    time_field: str | None = None,
    stream_field: str | None = None,
    is_stream: bool = False,
) -> EventSource:
    """Return the events at a path, or at an address such as `nats://host:4222/STREAM` or `kafka://host:9092/topic`.

    Files are JSON lines unless their name, or that of the first in a folder, says otherwise; JSON lines are read as
    payloads without blank lines, tables as columns. `id_field`, `time_field` and `stream_field` are attributes of the events. Without `id_field`, the
    id of a message is its position in its stream, and that of a row of a file a number, which a stream does not have.
    `options` go to Spark's reader.
    """
    request = _Request(spark, dict(options or {}), id_field, time_field, stream_field, is_stream)
    scheme = urlsplit(source).scheme
    if scheme == "nats":
        return _from_nats(request, source)
    if scheme == "kafka":
        return _from_kafka(request, source)
    if is_stream and id_field is None:
        raise SparkError(
            "rows of files have no id of their own that a restarted stream would give them again: name the attribute "
            "that identifies an event, with --id-field"
        )
    kind = format or _format_of(source)
    if kind is Format.ARROW:
        raise SparkError(f"{source}: Spark does not read Arrow files; write them as Parquet")
    try:
        if kind is Format.JSONL:
            lines = request.load("text", request.options, source, "value string")
            return _payloads(request, lines.where(functions.col("value").rlike(r"\S")), "value", None)
        given = {**_OPTIONS.get(kind, {}), **request.options}
        schema = spark.read.format(_READERS[kind]).options(**given).load(source).schema if is_stream else None
        return _columns(request, request.load(_READERS[kind], given, source, schema))
    except AnalysisException as fault:
        reason = str(fault).splitlines()[0]
        raise SparkError(f"{source} cannot be read as {kind.value}: {reason}") from None


def _columns(request: _Request, frame: DataFrame) -> EventSource:
    layout = {} if request.time_field is None else {"time": request.time_field}
    if request.stream_field is not None:
        layout["stream_column"] = request.stream_field
    if request.id_field is not None:
        return EventSource(frame, {"event_id": request.id_field, **layout})
    numbered = frame.withColumn(_ROW_ID, functions.monotonically_increasing_id())
    return EventSource(numbered, {"event_id": _ROW_ID, **layout})


def _payloads(request: _Request, frame: DataFrame, payload: str, time: str | None) -> EventSource:
    """Return events in a column of JSON, with an id from the payload or the column `event_id`."""
    layout = {"payload": payload, "event_id": _ID}
    if request.time_field is not None or time is not None:
        layout["time"] = request.time_field or str(time)
    if request.stream_field is not None:
        frame = frame.withColumn(_STREAM, _inside(payload, request.stream_field))
        layout["stream_column"] = _STREAM
    if request.id_field is not None:
        frame = frame.withColumn(_ID, _inside(payload, request.id_field))
    elif _ID not in frame.columns:
        frame = frame.withColumn(_ID, functions.monotonically_increasing_id())
    return EventSource(frame, layout)


def _inside(payload: str, field: str) -> Column:
    """Return an attribute of a column of JSON as a string; a dot is part of its name, or leads into an object."""
    nested = "".join(f"['{part}']" for part in field.split("."))
    text = functions.col(payload).cast("string")
    return functions.coalesce(
        *(functions.get_json_object(text, f"${path}") for path in (f"['{field}']", nested))
    )


def _from_nats(request: _Request, source: str) -> EventSource:
    """Return the events of a JetStream stream, nats://host:port/STREAM."""
    address = urlsplit(source)
    name = address.path.strip("/")
    if not name or "/" in name:
        raise SparkError(f"{source}: an address names the server and the stream: nats://host:4222/STREAM")
    register(request.spark)
    given = {"servers": f"nats://{address.netloc}", "stream": name, **request.options}
    frame = request.load("nats", given).withColumnRenamed("time", "received")
    return _payloads(request, frame.withColumn(_ID, functions.col("sequence")), "payload", "received")


def _from_kafka(request: _Request, source: str) -> EventSource:
    """Return the events of a Kafka topic, kafka://host:port/topic."""
    address = urlsplit(source)
    topic = address.path.strip("/")
    if not topic or "/" in topic:
        raise SparkError(f"{source}: an address names the brokers and the topic: kafka://host:9092/topic")
    given = {"kafka.bootstrap.servers": address.netloc, "subscribe": topic, **request.options}
    try:
        frame = request.load("kafka", given)
    except AnalysisException as fault:
        raise SparkError(
            f"{source}: Spark's connector to Kafka is not there ({str(fault).splitlines()[0]}); "
            "docs/reference/spark-sources.md says how to bring it along"
        ) from None
    location = functions.concat_ws("-", "topic", "partition", "offset")
    frame = frame.withColumn(_ID, location).withColumnRenamed("timestamp", "received")
    return _payloads(request, frame, "value", "received")


def _format_of(source: str) -> Format:
    """Return the format by a file's name; of a folder, by its first file."""
    path = Path(source)
    if path.is_dir():
        found = (file for file in path.rglob("*") if file.is_file())
        files = sorted(file for file in found if not file.name.startswith(("_", ".")))
        return known_format(files[0]) or Format.JSONL if files else Format.JSONL
    return known_format(path) or Format.JSONL
