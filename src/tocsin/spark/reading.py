"""Events by a path or an address, as a DataFrame: files, a JetStream stream, a Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions

from tocsin.formats.files import Format, known_format
from tocsin.model.errors import SparkError
from tocsin.spark.data_sources import register

_MADE: Final = "__tocsin_event"
_ID: Final = "event_id"
_READERS: Final = {Format.PARQUET: "parquet", Format.CSV: "csv", Format.JSON: "json"}
_OPTIONS: Final[Mapping[Format, Mapping[str, str]]] = {
    Format.CSV: {"header": "true", "inferSchema": "true"},
    Format.JSON: {"multiLine": "true"},
}


class _Asked(Struct, frozen=True):
    """How events are to be read."""

    spark: SparkSession
    options: Mapping[str, str]
    id_field: str | None
    time_field: str | None
    is_stream: bool

    def load(
        self, kind: str, options: Mapping[str, str], path: str | None = None, schema: Any = None
    ) -> DataFrame:
        reader: Any = self.spark.readStream if self.is_stream else self.spark.read
        reader = reader.format(kind).options(**options)
        frame: DataFrame = (reader if schema is None else reader.schema(schema)).load(path)
        return frame


class EventSource(Struct, frozen=True):
    """Events in a DataFrame, and where they stand in it, with the names that `match` has for that."""

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
    is_stream: bool = False,
) -> EventSource:
    """Return the events at a path, or at an address such as `nats://host:4222/STREAM` or `kafka://host:9092/topic`.

    Files are JSON lines unless their name, or that of the first in a folder, says otherwise; JSON lines are read as
    payloads, blank ones passed over, tables as columns. `id_field` and `time_field` are attributes of the events. Without `id_field`, a
    message is called by its place in its stream, and a row of a file by a number, which a stream does not have.
    `options` go to Spark's reader.
    """
    asked = _Asked(spark, dict(options or {}), id_field, time_field, is_stream)
    scheme = urlsplit(source).scheme
    if scheme == "nats":
        return _from_nats(asked, source)
    if scheme == "kafka":
        return _from_kafka(asked, source)
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
            lines = asked.load("text", asked.options, source, "value string")
            return _payloads(asked, lines.where(functions.col("value").rlike(r"\S")), "value", None)
        given = {**_OPTIONS.get(kind, {}), **asked.options}
        schema = spark.read.format(_READERS[kind]).options(**given).load(source).schema if is_stream else None
        return _columns(asked, asked.load(_READERS[kind], given, source, schema))
    except AnalysisException as fault:
        reason = str(fault).splitlines()[0]
        raise SparkError(f"{source} cannot be read as {kind.value}: {reason}") from None


def _columns(asked: _Asked, frame: DataFrame) -> EventSource:
    layout = {} if asked.time_field is None else {"time": asked.time_field}
    if asked.id_field is not None:
        return EventSource(frame, {"event_id": asked.id_field, **layout})
    made = frame.withColumn(_MADE, functions.monotonically_increasing_id())
    return EventSource(made, {"event_id": _MADE, **layout})


def _payloads(asked: _Asked, frame: DataFrame, payload: str, time: str | None) -> EventSource:
    """Return events in a column of JSON, with an id from inside it, or the one they have."""
    layout = {"payload": payload, "event_id": _ID}
    if asked.time_field is not None or time is not None:
        layout["time"] = asked.time_field or str(time)
    if asked.id_field is not None:
        nested = "".join(f"['{part}']" for part in asked.id_field.split("."))
        text = functions.col(payload).cast("string")
        found = [functions.get_json_object(text, f"${path}") for path in (f"['{asked.id_field}']", nested)]
        frame = frame.withColumn(_ID, functions.coalesce(*found))
    elif _ID not in frame.columns:
        frame = frame.withColumn(_ID, functions.monotonically_increasing_id())
    return EventSource(frame, layout)


def _from_nats(asked: _Asked, source: str) -> EventSource:
    address = urlsplit(source)
    name = address.path.strip("/")
    if not name or "/" in name:
        raise SparkError(f"{source}: an address names the server and the stream: nats://host:4222/STREAM")
    register(asked.spark)
    given = {"servers": f"nats://{address.netloc}", "stream": name, **asked.options}
    frame = asked.load("nats", given).withColumnRenamed("time", "received")
    return _payloads(asked, frame.withColumn(_ID, functions.col("sequence")), "payload", "received")


def _from_kafka(asked: _Asked, source: str) -> EventSource:
    address = urlsplit(source)
    topic = address.path.strip("/")
    if not topic or "/" in topic:
        raise SparkError(f"{source}: an address names the brokers and the topic: kafka://host:9092/topic")
    given = {"kafka.bootstrap.servers": address.netloc, "subscribe": topic, **asked.options}
    try:
        frame = asked.load("kafka", given)
    except AnalysisException as fault:
        raise SparkError(
            f"{source}: Spark's connector to Kafka is not there ({str(fault).splitlines()[0]}); "
            "docs/reference/spark-sources.md says how to bring it along"
        ) from None
    place = functions.concat_ws("-", "topic", "partition", "offset")
    frame = frame.withColumn(_ID, place).withColumnRenamed("timestamp", "received")
    return _payloads(asked, frame, "value", "received")


def _format_of(source: str) -> Format:
    """Return the format that a name says; of a folder, that of the first file in it."""
    path = Path(source)
    if path.is_dir():
        files = sorted(
            file for file in path.rglob("*") if file.is_file() and not file.name.startswith(("_", "."))
        )
        return known_format(files[0]) or Format.JSONL if files else Format.JSONL
    return known_format(path) or Format.JSONL
