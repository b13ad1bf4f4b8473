"""Rows as messages for Kafka: a key that is the same whenever a row is sent again, and the row as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import BinaryType

from tocsin.model.errors import SparkError

_IDENTITY: Final = ("subscription", "event_id", "event_ids")  # those of them that rows have
_JSON: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


def kafka_messages(rows: DataFrame) -> DataFrame:
    """Return notifications, or dead letters, as the columns `key` and `value` that Spark's sink for Kafka takes.

    `key` is a JSON array of what identifies a notification: its subscription, its event, and of a sequence all its events.
    It is the same when a micro-batch is written again, so a consumer that drops keys it has seen gets each once. `value` is
    the row as a JSON object; binary columns are read as texts.
    """
    parts = [_texts(name) for name in _IDENTITY if name in rows.columns]
    if not parts:
        raise SparkError(
            f"messages are made of notifications or dead letters; there are only: {', '.join(rows.columns)}"
        )
    cells = [_cell(rows, name) for name in rows.columns]
    return rows.select(
        functions.to_json(functions.concat(*parts)).alias("key"),
        functions.to_json(functions.struct(*cells), _JSON).alias("value"),
    )


def kafka_options(address: str) -> Mapping[str, str]:
    """Return the options of Spark's sink for `kafka://host:port/topic`."""
    parts = urlsplit(address)
    topic = parts.path.strip("/")
    if parts.scheme != "kafka" or not parts.netloc or not topic or "/" in topic:
        raise SparkError(f"{address}: an address names the brokers and the topic: kafka://host:9092/topic")
    return {"kafka.bootstrap.servers": parts.netloc, "topic": topic}


def _texts(name: str) -> Any:
    """Return a column as an array of strings."""
    column = functions.col(name)
    return column if name == "event_ids" else functions.array(column.cast("string"))


def _cell(rows: DataFrame, name: str) -> Any:
    column = functions.col(f"`{name.replace('`', '``')}`")
    is_binary = isinstance(rows.schema[name].dataType, BinaryType)
    return (column.cast("string") if is_binary else column).alias(name)
