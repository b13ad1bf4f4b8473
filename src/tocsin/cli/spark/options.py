"""Options that the commands of `tocsin spark` share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from msgspec import Struct

from tocsin.cli.subscription_loading import parameter_rows, template_text
from tocsin.cli.terminal import errors
from tocsin.formats import Format
from tocsin.formats.files import is_readable
from tocsin.formats.records import UnreadableRecord
from tocsin.formats.subscription_files import Entry, read_subscriptions
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import SubscriptionError, TocsinError

if TYPE_CHECKING:
    from tocsin.cli.terminal import FaultLog
    from tocsin.spark.reading import EventSource
    from tocsin.spark.subscriptions import SubscriptionSource

_CLUSTER = "Spark"

Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="EVENTS",
        help="A file or folder of events (JSON lines, JSON, CSV, Parquet), nats://HOST:PORT/STREAM or kafka://HOST:PORT/TOPIC.",
    ),
]
Index: TypeAlias = Annotated[
    str | None, typer.Option("--index", help="The folder of an index of subscriptions.", metavar="FOLDER")
]
Shards: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Spread the subscriptions over so many shards.")
]
MatcherName: TypeAlias = Annotated[
    str | None, typer.Option("--matcher", help="The index to match with.", show_default="dynamic")
]
StatisticsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--statistics", help="What `stats` wrote, for a matcher that chooses by cost.", dir_okay=False
    ),
]
ReaderOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="An option for Spark's reader, as key=value; may be given several times.",
        rich_help_panel=_CLUSTER,
    ),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs: local[N], or a cluster's address.",
        show_default="local[*], or what spark-submit says",
        rich_help_panel=_CLUSTER,
    ),
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        help="A setting of Spark, as key=value; may be given several times.",
        rich_help_panel=_CLUSTER,
    ),
]


class Asked(Struct, frozen=True):
    """The subscriptions that a command was given."""

    texts: list[str] | None = None
    files: list[Path] | None = None
    index: str | None = None
    template: str | None = None
    parameters: Path | None = None
    id_rule: str | None = None


def subscriptions_of(asked: Asked, log: FaultLog) -> SubscriptionSource:
    """Return the subscriptions as Spark takes them; one file alone stays a file, so that a stream can follow it."""
    from tocsin.spark.subscriptions import FromTemplate  # noqa: PLC0415 - it brings Spark

    given = [name for name in ("index", "template") if getattr(asked, name) is not None]
    given += ["-s or -f"] if asked.texts or asked.files else []
    if len(given) > 1:
        raise TocsinError(f"subscriptions come from one place: {' and '.join(given)} cannot go together")
    if not given:
        raise TocsinError(
            "nothing is subscribed: give -s TEXT, -f FILE, --index FOLDER, or --template and --parameters"
        )
    if (asked.template is None) is not (asked.parameters is None):
        raise TocsinError("--template and --parameters go together: a text, and the rows with its values")
    for file in asked.files or []:  # told before Spark is started
        if not is_readable(file):
            raise SubscriptionError(f"there is no file {file}")
    if asked.index is not None:
        return asked.index
    if asked.template is not None and asked.parameters is not None:
        rows = list(_readable_rows(asked.parameters, log))
        return FromTemplate(template_text(asked.template), rows, asked.id_rule)
    if asked.files and len(asked.files) == 1 and not asked.texts:
        return asked.files[0]
    return list(_entries(asked, log))


def _entries(asked: Asked, log: FaultLog) -> Iterator[Entry]:
    for number, text in enumerate(asked.texts or [], 1):
        yield Entry("-s", number, 0, f"s{number}", text)
    for file in asked.files or []:
        for entry in read_subscriptions(file):
            if isinstance(entry, SubscriptionError):
                log(entry)
            else:
                yield entry


def _readable_rows(path: Path, log: FaultLog) -> Iterator[object]:
    for line, record in parameter_rows(path):
        if isinstance(record, UnreadableRecord):
            log(f"{path}:{line}: {record.reason}")
        else:
            yield record


def matcher_options(matcher: str | None, statistics: Path | None) -> dict[str, Any]:
    """Return what an index is made with: the matcher's name, and the statistics that it chooses by."""
    if statistics is None:
        return {"matcher": matcher}
    return {"matcher": matcher or "static", "options": {"statistics": Statistics.load(statistics)}}


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Return options that were given as key=value."""
    found = {}
    for one in given or []:
        key, sign, value = one.partition("=")
        if not sign or not key:
            raise TocsinError(f"{option} takes key=value, not {one!r}")
        found[key] = value
    return found


class Options(Struct, frozen=True):
    """Where Spark runs, and how events are read."""

    master: str | None = None
    conf: list[str] | None = None
    reader: list[str] | None = None
    format: Format | None = None
    id_field: str | None = None
    time_field: str | None = None
    quiet: bool = False


@contextmanager
def opened(source: str, options: Options, *, is_stream: bool = False) -> Iterator[tuple[Any, EventSource]]:
    """Return a session and the events in it; a session that was started for this is stopped."""
    from tocsin.spark.session import session  # noqa: PLC0415 - only when asked for

    settings: dict[str, Any] = {"spark.ui.showConsoleProgress": errors.is_terminal and not options.quiet}
    with errors.status("starting Spark") if not options.quiet else _nothing():
        spark = session(options.master, **{**settings, **pairs(options.conf, "--conf")})
    try:
        from tocsin.spark.reading import read_events  # noqa: PLC0415

        yield (
            spark,
            read_events(
                spark,
                source,
                format=options.format,
                options=pairs(options.reader, "--option"),
                id_field=options.id_field,
                time_field=options.time_field,
                is_stream=is_stream,
            ),
        )
    finally:
        spark.stop()


@contextmanager
def _nothing() -> Iterator[None]:
    yield
