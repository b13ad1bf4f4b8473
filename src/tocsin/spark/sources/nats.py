"""The data source `nats`: a JetStream stream as rows, by sequence numbers, so that every batch can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec import Struct
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tocsin.model.errors import SparkError
from tocsin.spark.data_sources import check_options
from tocsin.spark.sources import jetstream

_Result = TypeVar("_Result")
_COLUMNS: Final = "sequence long, subject string, time timestamp, headers map<string,string>, payload binary"
_HEADERS: Final = pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string()))
_SCHEMA: Final = pa.schema(
    [
        ("sequence", pa.int64()),
        ("subject", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("headers", _HEADERS),
        ("payload", pa.binary()),
    ]
)
_OPTIONS: Final = (
    *("servers", "stream", "subject", "user", "password", "token", "credentials", "tls", "tlsCa", "timeout"),
    *("startingSequence", "maxMessagesPerBatch", "partitions", "failOnDataLoss"),
)
_SERVER: Final = "nats://127.0.0.1:4222"
_SMALLEST: Final = 1_000  # sequence numbers; a smaller partition costs more than it saves
_STRIDE: Final = 10_000  # numbers without a message on our subjects, after which an empty batch records them


class NatsSource(DataSource):
    """Reads a JetStream stream, as a stream or as a batch; docs/reference/spark-sources.md lists the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "nats"

    def schema(self) -> str:
        """Return the columns: a message's number, subject, time, headers and payload."""
        return _COLUMNS

    def streamReader(self, schema: StructType) -> _StreamReader:  # noqa: ARG002, N802 - Spark's names
        """Return a reader of the messages as they come."""
        return _StreamReader(_Settings.of(self.options))

    def reader(self, schema: StructType) -> _BatchReader:  # noqa: ARG002
        """Return a reader of the messages that are there when it is planned."""
        return _BatchReader(_Settings.of(self.options))


class _Settings(Struct, frozen=True):
    """The parsed options."""

    access: jetstream.ConnectionSettings
    starting: int | str  # a number, or `earliest` or `latest`
    most: int | None  # messages in a batch
    partitions: int
    strict: bool  # fail if messages were lost

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Settings:
        """Return the settings of options; raise `SparkError` for an unknown option or a bad value."""
        check_options("nats", options, _OPTIONS)
        given = {name.lower(): text.strip() for name, text in options.items()}
        if not given.get("stream"):
            raise SparkError("nats: the option `stream` must name a JetStream stream")
        named = given.get("startingsequence", "earliest").lower()
        return cls(
            access=_access(given),
            starting=named
            if named in {"earliest", "latest"}
            else _number(given, "startingSequence", "`earliest`, `latest` or a number from 1 on"),
            most=_number(given, "maxMessagesPerBatch") if "maxmessagesperbatch" in given else None,
            partitions=_number({"partitions": "2", **given}, "partitions"),
            strict=_truth(given, "failOnDataLoss", default=True),
        )

    def first(self, span: jetstream.SequenceRange) -> int:
        """Return the number to start from, in a stream that holds `span`."""
        if isinstance(self.starting, int):
            return max(self.starting, span.first)
        return span.first if self.starting == "earliest" else span.end

    def split(self, first: int, end: int) -> list[InputPartition]:
        """Return a range of numbers as partitions of nearly the same size."""
        count = max(1, min(self.partitions, (end - first) // _SMALLEST))
        bounds = [first + (end - first) * i // count for i in range(count + 1)]
        return [_Range(a, b) for a, b in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a partition."""
        if isinstance(partition, _Range):
            with jetstream.StreamConnection(self.access) as connection:
                for messages in connection.read(partition.first, partition.end, strict=self.strict):
                    yield _rows(messages)


@dataclass
class _Range(InputPartition):
    """The messages numbered from `first` up to, but not with, `end`."""

    first: int
    end: int


class _BatchReader(DataSourceReader):
    def __init__(self, settings: _Settings) -> None:
        self._settings = settings

    def partitions(self) -> list[InputPartition]:
        """Return the ranges of the stream's present messages."""
        with jetstream.StreamConnection(self._settings.access) as connection:
            span = connection.span()
        return self._settings.split(self._settings.first(span), span.end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a partition."""
        return self._settings.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of a stream.

    An offset says which numbers its batch covers, `from` and `to`, so that a batch replayed is the same batch,
    even the first one, whose start Spark does not keep.
    """

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        self._connection = _DriverConnection(settings.access)
        self._target: int | None = None
        self._clear = 0  # no unread message on our subjects before this number

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where a new query starts."""
        first = self._settings.first(self._connection.call(jetstream.StreamConnection.span))
        return {"from": first, "to": first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return what `maxMessagesPerBatch` says."""
        most = self._settings.most
        return super().getDefaultReadLimit() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the stream's present end as the query's."""
        self._target = self._connection.call(jetstream.StreamConnection.span).end

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the stream's present end."""
        end = self._connection.call(jetstream.StreamConnection.span).end
        return {"from": end, "to": end}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the batch that follows `start`, or `start` if there is no new message."""
        span = self._connection.call(jetstream.StreamConnection.span)
        first = self._next(start["to"], span)
        end = span.end if self._target is None else min(span.end, self._target)
        if first >= end:
            return start
        if self._settings.access.subjects:
            following = self._connection.call(lambda connection: connection.following(first))
            if following is None or following >= end:
                self._clear = end
                # An empty batch is not free, but numbers that are never recorded look like lost ones later.
                return start if end - start["to"] < _STRIDE else {"from": first, "to": end}
            first = following
        if isinstance(limit, ReadMaxRows):
            end = self._limited(first, end, limit.max_rows)
        return {"from": first, "to": end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return the ranges that make up a batch."""
        return [] if start == end else self._settings.split(end["from"], end["to"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a partition."""
        return self._settings.read(partition)

    def stop(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _next(self, wanted: int, span: jetstream.SequenceRange) -> int:
        """Return the number to go on from; raise `SparkError` if messages were lost, unless that is allowed."""
        if wanted > span.end:
            if self._settings.strict:
                raise SparkError(
                    f"{self._settings.access} ends before message {wanted}, where the checkpoint stands: it was "
                    "recreated. Start from a new checkpoint; to continue with the messages it has, set `failOnDataLoss` to false"
                )
            return span.first
        known = max(wanted, self._clear)
        if known < span.first and self._settings.strict:
            raise SparkError(jetstream.loss_message(self._settings.access, known, span.first))
        return max(known, span.first)

    def _limited(self, first: int, end: int, most: int) -> int:
        """Return the end of a batch with `most` messages or somewhat fewer; `end` if there are no more."""
        if end - first <= most:
            return end
        if not self._settings.access.subjects:
            return first + most
        pending = self._pending(first)
        if pending <= most:
            return end
        # The count of messages before a number grows with it: bisect.
        low, high = first + most, end
        while high - low > 1:
            middle = (low + high) // 2
            before = pending - self._pending(middle)
            if before > most:
                high = middle
            else:
                low = middle
                if before * 10 >= most * 9:
                    break
        return low

    def _pending(self, sequence: int) -> int:
        return self._connection.call(lambda connection: connection.count_from(sequence))


class _DriverConnection:
    """The driver's connection, opened at first use, and again after it was lost."""

    def __init__(self, access: jetstream.ConnectionSettings) -> None:
        self._access = access
        self._connection: jetstream.StreamConnection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_access": self._access, "_connection": None}

    def call(self, function: Callable[[jetstream.StreamConnection], _Result]) -> _Result:
        """Call a function with the connection, and return its result."""
        if self._connection is not None:
            try:
                return function(self._connection)
            except SparkError:
                if not self._connection.is_closed:
                    raise
                self.close()
        self._connection = jetstream.StreamConnection(self._access)
        return function(self._connection)

    def close(self) -> None:
        """Close the connection if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _rows(messages: list[jetstream.Message]) -> pa.RecordBatch:
    sequences, times, subjects, headers, payloads = zip(*messages, strict=True) if messages else ((),) * 5
    pairs = [None if one is None else list(one.items()) for one in headers]
    columns = (sequences, subjects, times, pairs, payloads)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )


def _access(given: Mapping[str, str]) -> jetstream.ConnectionSettings:
    """Return the connection settings of these options, or raise `SparkError`."""
    servers = _listed(given.get("servers", _SERVER))
    try:
        access = jetstream.ConnectionSettings(
            servers=servers,
            stream=given["stream"],
            subjects=_listed(given.get("subject", "")),
            **{name: given.get(name) for name in ("user", "password", "token", "credentials")},
            tls=_truth(given, "tls", default=False),
            tls_ca=given.get("tlsca"),
            timeout=float(given.get("timeout", "10")),
        )
        str(access)  # a server's address that cannot be read fails here
    except ValueError:
        raise SparkError(
            "nats: `servers` are addresses like nats://host:4222, separated by commas, and `timeout` is in seconds"
        ) from None
    return access


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (one.strip() for one in text.split(","))))


def _number(given: Mapping[str, str], name: str, kind: str = "a number from 1 on") -> int:
    text = given[name.lower()]
    if not (text.isascii() and text.isdigit() and int(text)):
        raise SparkError(f"nats: `{name}` is {kind}, not `{text}`")
    return int(text)


def _truth(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in {"true", "false"}:
        raise SparkError(f"nats: `{name}` is true or false, not `{text}`")
    return text == "true"
