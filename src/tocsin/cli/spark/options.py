"""Option groups that the commands of `tocsin spark` share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from urllib.parse import urlsplit

import typer

from tocsin.cli import options as common
from tocsin.cli.subscription_loading import parameter_rows, template_text
from tocsin.cli.terminal import errors
from tocsin.formats import Format
from tocsin.formats.files import is_readable, is_standard, stem_of, unreadable_reason
from tocsin.formats.subscription_files import Entry, read_subscriptions
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import SubscriptionError, TocsinError

if TYPE_CHECKING:
    from tocsin.cli.terminal import FaultLog
    from tocsin.spark.event_sources import EventSource
    from tocsin.spark.subscription_sources import SubscriptionSource

_CLUSTER = "Spark"
_SMALL = 1_000_000  # bytes of a file of subscriptions that is read for a check alone

TimeField: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--time-field",
        help="The attribute with the time at which an event ended; without it, events end at the time of the query, and there "
        "can be no sequences.",
        rich_help_panel="Event fields",
    ),
]
StateShards: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=4096,
        help="The number of shards of sequences and views.",
        show_default="8 for a stream, else Spark's shuffle partitions",
    ),
]
Explain: TypeAlias = Annotated[
    bool, typer.Option("--explain", help="Print the stages, the shards and what travels, and end.")
]

Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="EVENTS",
        help="A file or folder of events (JSON lines, JSON, CSV, Parquet), nats://HOST:PORT/STREAM or kafka://HOST:PORT/TOPIC.",
    ),
]

Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs: local[N], a cluster's address, or sc://HOST:PORT.",
        show_default="local[*], or what spark-submit says",
        rich_help_panel=_CLUSTER,
    ),
]


@dataclass(frozen=True)
class SessionOptions(common.OptionGroup):
    """The options for Spark itself, its reader and the output."""

    option: Annotated[
        list[str] | None,
        typer.Option(
            help="An option for Spark's reader, as key=value; may be given several times.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    master: Master = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            help="A setting of Spark, as key=value; may be given several times.", rich_help_panel=_CLUSTER
        ),
    ] = None
    quiet: common.Quiet = False

    @property
    def is_local(self) -> bool:
        """Tell whether Spark runs in this process, so that its workers read this machine's files."""
        return (self.master or "local").startswith("local") and "PYSPARK_GATEWAY_PORT" not in os.environ

    @contextmanager
    def session(self) -> Iterator[Any]:
        """Start a session, yield it, and stop it."""
        from tocsin.spark.java_start import quiet_interrupts, raise_interrupts  # noqa: PLC0415 - imports Spark
        from tocsin.spark.session import session  # noqa: PLC0415

        settings: dict[str, Any] = {"spark.ui.showConsoleProgress": errors.is_terminal and not self.quiet}
        with nullcontext() if self.quiet else errors.status("starting Spark"):
            spark = session(self.master, **{**settings, **pairs(self.conf, "--conf")})
        raise_interrupts()
        with quiet_interrupts():
            try:
                yield spark
            finally:
                spark.stop()

    @contextmanager
    def open(
        self,
        source: str,
        *,
        input_format: Format | None = None,
        id_field: str | None = None,
        time_field: str | None = None,
        stream_field: str | None = None,
        is_stream: bool = False,
    ) -> Iterator[tuple[Any, EventSource]]:
        """Start a session, yield it with the events, and stop it."""
        with self.session() as spark:
            from tocsin.spark.event_sources import read_events  # noqa: PLC0415 - imports Spark

            events = read_events(
                spark,
                source,
                format=input_format,
                options=pairs(self.option, "--option"),
                id_field=id_field,
                time_field=time_field,
                stream_field=stream_field,
                is_stream=is_stream,
            )
            yield spark, events


@dataclass(frozen=True)
class MatchOptions(common.OptionGroup):
    """The options to read events, and the columns written with each notification."""

    keep: Annotated[
        list[str] | None, typer.Option(help="A column of the events to write with each notification.")
    ] = None
    values: Annotated[bool, typer.Option("--values", help="Write the values that are selected.")] = False
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="The threads that a worker matches with.", show_default="the cores of its task"
        ),
    ] = None
    input_format: common.InputFormat = None
    stream: common.Stream = None
    time_field: TimeField = None
    id_field: common.IdField = None
    stream_field: common.StreamField = None
    valid_until_field: common.ValidUntilField = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `SessionOptions.open`."""
        return {
            "input_format": self.input_format,
            "id_field": self.id_field,
            "time_field": self.time_field,
            "stream_field": self.stream_field,
        }

    def settings(self, source: str) -> dict[str, Any]:
        """Return the arguments of `match` and `Pipeline`; `source` are the events."""
        stream = self.stream if self.stream_field is not None else stream_of(source, self.stream)
        return {
            "stream": stream,
            "valid_until": self.valid_until_field,
            "keep": self.keep or [],
            "values": self.values,
            "threads": self.threads,
        }


@dataclass(frozen=True)
class StateOptions(common.OptionGroup):
    """How sequences and views are run."""

    state_shards: StateShards = None
    out_of_orderness: common.OutOfOrderness = "0"

    def settings(self) -> dict[str, Any]:
        """Return the arguments of `match` and `Pipeline`."""
        delay = self.out_of_orderness.strip()
        return {
            "state_shards": self.state_shards,
            "out_of_orderness": int(delay) if delay.isdecimal() else delay,
        }


@dataclass(frozen=True)
class QueryOptions(common.OptionGroup):
    """Subscriptions as texts and files."""

    subscribe: common.Subscribe = None
    subscriptions: common.SubscriptionFiles = None

    def source(self, log: FaultLog) -> SubscriptionSource:
        """Return the subscriptions; a single file stays a file, so that a stream can follow it."""
        if not self.subscribe and not self.subscriptions:
            raise TocsinError(
                "nothing is subscribed: give -s TEXT, -f FILE, --index FOLDER, or --template and --parameters"
            )
        for file in self.subscriptions or []:  # before Spark starts
            if not is_readable(file):
                raise SubscriptionError(unreadable_reason(file))
        files = self.subscriptions or []
        if len(files) == 1 and not self.subscribe and not is_standard(files[0]):
            return files[0]
        return list(self._entries(log))

    def _entries(self, log: FaultLog) -> Iterator[Entry]:
        """Yield the subscriptions of texts and files; faulty ones are logged."""
        for number, text in enumerate(self.subscribe or [], 1):
            yield Entry("-s", number, 0, f"s{number}", text)
        for file in self.subscriptions or []:
            for entry in read_subscriptions(file):
                if isinstance(entry, SubscriptionError):
                    log(entry)
                else:
                    yield entry


@dataclass(frozen=True)
class TemplateOptions(QueryOptions):
    """Subscriptions as texts, as files, or as a template with its rows."""

    template: common.TemplateText = None
    parameters: common.TemplateParameters = None
    id_rule: common.TemplateIds = None

    def source(self, log: FaultLog) -> SubscriptionSource:
        """Return the subscriptions; raise `TocsinError` unless they come from one place."""
        from tocsin.spark.subscription_sources import FromTemplate  # noqa: PLC0415 - imports Spark

        self._check_one_place()
        if self.template is None or self.parameters is None:
            return super().source(log)
        return FromTemplate(
            template_text(self.template), list(parameter_rows(self.parameters, log).values()), self.id_rule
        )

    def _check_one_place(self) -> None:
        given = [name for name in ("index", "template") if getattr(self, name, None) is not None]
        given += ["-s or -f"] if self.subscribe or self.subscriptions else []
        if len(given) > 1:
            raise TocsinError(f"subscriptions come from one place: {' and '.join(given)} cannot go together")
        if given and (self.template is None) is not (self.parameters is None):
            raise TocsinError("--template and --parameters go together: a text, and the rows with its values")


@dataclass(frozen=True)
class SparkSubscriptionOptions(TemplateOptions):
    """Subscriptions as texts, as files, as a template with its rows, or as an index."""

    index: Annotated[
        str | None, typer.Option(help="The folder of an index of subscriptions.", metavar="FOLDER")
    ] = None

    def source(self, log: FaultLog) -> SubscriptionSource:
        """Return the subscriptions; raise `TocsinError` unless they come from one place."""
        self._check_one_place()
        return super().source(log) if self.index is None else self.index


@dataclass(frozen=True)
class IndexOptions(common.OptionGroup):
    """The options to build an index of subscriptions."""

    shards: Annotated[int | None, typer.Option(min=1, help="The number of shards of the index.")] = None
    matcher: Annotated[
        str | None, typer.Option(help="The matcher of the index.", show_default="adaptive")
    ] = None
    statistics: Annotated[
        Path | None,
        typer.Option(
            help="A file of `tocsin spark stats`, for a matcher that chooses by cost.", dir_okay=False
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the arguments of `SubscriptionIndex`: shards, the matcher's name and its statistics."""
        if self.statistics is None:
            return {"shards": self.shards, "matcher": self.matcher}
        options = {"statistics": Statistics.load(self.statistics)}
        return {"shards": self.shards, "matcher": self.matcher or "static", "options": options}


@dataclass(frozen=True)
class DeclarationOptions(common.OptionGroup):
    """The tables that views read, and the ticks of streams."""

    tick: common.StreamTick = None
    table: common.Tables = None

    def settings(self) -> dict[str, Any]:
        """Return the arguments `tables` and `ticks` of the functions that take subscriptions."""
        return {
            "tables": common.table_keys(self.table or ()),
            "ticks": common.stream_ticks(self.tick or ()),
        }


def require_times(index: str, time_field: str | None) -> None:
    """Raise `TocsinError` if an index has sequences, and no field holds the times of events."""
    from tocsin.index import IndexReader  # noqa: PLC0415 - only when asked for
    from tocsin.sharding import ShardPlan  # noqa: PLC0415

    if time_field is not None:
        return
    reader = IndexReader(index)
    stateful = reader.stateful(reader.current())
    if stateful is not None and ShardPlan.of(stateful, 1).reads:
        raise TocsinError(
            "sequences depend on when events happened: name the field with its end with --time-field"
        )


def check_before_spark(
    source: SubscriptionSource, time_field: str | None, settings: dict[str, Any], log: FaultLog
) -> None:
    """Raise what a stream would raise after Spark has started: no subscription that can be read, sequences without times."""
    from tocsin.spark.subscription_sources import ensure_index, is_index  # noqa: PLC0415 - imports Spark

    is_small = isinstance(source, list) or (isinstance(source, Path) and source.stat().st_size < _SMALL)
    if is_index(source):
        require_times(str(source), time_field)
    elif is_small:
        faults: list[TocsinError] = []
        try:
            require_times(ensure_index(source, **settings, on_error=faults.append), time_field)
        except TocsinError:
            for fault in faults:
                log(fault)
            raise


def stream_of(source: str, given: str | None) -> str | None:
    """Return the stream of a source's events that have none of their own: as given, or what the source is called.

    >>> stream_of("data/quotes.jsonl.gz", None), stream_of("kafka://host:9092/trades", None), stream_of("data/", "ticks")
    ('quotes', 'trades', 'ticks')
    """
    if given is not None:
        return given
    address = urlsplit(source)
    return address.path.strip("/") if address.scheme in ("kafka", "nats") else stem_of(Path(source))


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Return options that were given as key=value."""
    found = {}
    for one in given or []:
        key, sign, value = one.partition("=")
        if not sign or not key:
            raise TocsinError(f"{option} takes key=value, not {one!r}")
        found[key] = value
    return found
