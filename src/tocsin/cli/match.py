"""`tocsin match`: notifications for events from a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from tocsin.cli import options, terminal
from tocsin.cli.console import new_console
from tocsin.cli.coverage import observed, warn_of_unseen
from tocsin.cli.output import standard_output
from tocsin.cli.subscription_loading import load_given
from tocsin.engine import Engine
from tocsin.engine.notifications import Notifications, first_answer
from tocsin.formats.files import is_standard
from tocsin.formats.notifications import JsonNotifications, ParquetNotifications
from tocsin.language.schema_inference import ObservedSchema
from tocsin.matching import registered_matchers
from tocsin.matching.ranking import check_event_weights
from tocsin.model import Notification, View
from tocsin.model.errors import TocsinError
from tocsin.model.ticks import StreamTicks

_BATCH = 256
_BATCH_OF_THREAD = 1_024
_OTHER_SUFFIXES = frozenset((".csv", ".tsv", ".arrow", ".feather", ".gz", ".zst", ".xlsx", ".html"))
_WEIGHT = "attribute=number, such as price=2.5"


class OutputFormat(StrEnum):
    """The format of notifications."""

    TABLE = "table"
    JSONL = "jsonl"
    PARQUET = "parquet"


class TimeFormat(StrEnum):
    """How times are written in JSON."""

    ISO = "iso"
    TICKS = "ticks"


@options.with_option_groups
def match(
    events: options.EventsArgument = "-",
    subscribe: options.Subscribe = None,
    subscriptions: options.SubscriptionFiles = None,
    template: options.TemplateText = None,
    parameters: options.TemplateParameters = None,
    id_rule: options.TemplateIds = None,
    format: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            help="The output's format; without it by file name, else table at a terminal and JSON lines in a pipe.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write notifications to this file.",
            dir_okay=False,
            callback=options.to_be_written,
        ),
    ] = None,
    times: Annotated[
        TimeFormat,
        typer.Option(help="Times in JSON lines: texts of ISO 8601 where they count from 1970, or ticks."),
    ] = TimeFormat.ISO,
    matcher: Annotated[
        str | None,
        typer.Option(
            help=f"The matcher that indexes the filters: {', '.join(registered_matchers())}.",
            show_default="adaptive",
        ),
    ] = None,
    threads: options.Threads = 1,
    top: Annotated[
        int | None,
        typer.Option(
            help="Print at most this many notifications per event: the subscriptions with the highest scores.",
            min=1,
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            help="The weight of an attribute in the scores of --top, as price=2.5; may be given several times.",
            metavar="ATTRIBUTE=NUMBER",
        ),
    ] = None,
    valid_until_field: options.ValidUntilField = None,
    load_tables: Annotated[
        Path | None,
        typer.Option(
            help="Begin with the tables of this file, and print the answers of all views.", dir_okay=False
        ),
    ] = None,
    save_tables: Annotated[
        Path | None,
        typer.Option(
            help="Write the tables to this file at the end.",
            dir_okay=False,
            callback=options.binary_to_be_written,
        ),
    ] = None,
    faults: options.Faults = None,
    quiet: options.Quiet = False,
    *,
    replay: options.ReplayOptions,
) -> None:
    """Match events against subscriptions, and print a notification for each match, sequence or changed answer.

    Ends with 0; with 1 if a record or a subscription of a file was left out; with 2 if nothing could be done.
    """
    weights = _weights(weight or [], top)
    options.check_standard_input(events, *(subscriptions or ()), parameters)
    with ExitStack() as stack:
        log = stack.enter_context(terminal.FaultLog(faults))
        engine = replay.engine(matcher, log, threads)
        if load_tables is not None:
            engine.load_tables(load_tables)
        load_given(engine, subscribe, subscriptions, (template, parameters, id_rule), log)
        source = replay.open_for(engine, events, valid_until_field, quiet=quiet)
        schema = ObservedSchema()
        ticks = engine.ticks if times is TimeFormat.ISO else None
        writer = _writer(output, format, ticks, live=source.path is None)
        stack.enter_context(writer)
        bar = stack.enter_context(terminal.progress("events", quiet=quiet))
        # A pipe delivers events one by one, and each is matched before the next one is read.
        many = _BATCH if threads == 1 else _BATCH_OF_THREAD * threads
        batch = 1 if source.path is None else many
        incoming = observed(terminal.watched(source.blocks(), bar, "matching", source), schema, engine)
        count = _write(writer, _first_answers(engine) if load_tables is not None else ())
        for notifications in engine.publish_batches(
            incoming, on_error=log, batch_size=batch, top=top, weights=weights
        ):
            count += _write(writer, notifications)
        count += _write(writer, engine.flush())
        if save_tables is not None:
            engine.save_tables(save_tables)
    stats = engine.stats()
    if not quiet:
        warn_of_unseen(engine, schema, log.count)
    if not quiet and terminal.errors.is_terminal:
        refused = stats.refused + source.reader.refused
        late = stats.late + stats.views.late
        left_out = (f", {refused:,} refused" if refused else "") + (f", {late:,} late" if late else "")
        terminal.note(
            f"{terminal.counted(stats.published, 'event')}{left_out}, {terminal.counted(len(engine), 'subscription')}, "
            f"{terminal.counted(count, 'notification')}"
        )
        if opaque := source.reader.opaque:
            names = ", ".join(terminal.shortened(name, 40) for name in list(opaque)[:5])
            terminal.note(f"{terminal.counted(opaque.total(), 'value')} cannot be compared ({names})")
    if log.count:
        raise typer.Exit(1)


def _write(writer: _Writer, notifications: Iterable[Notification]) -> int:
    """Write notifications, those of a batch all at once, and return how many there were."""
    if isinstance(notifications, Notifications):
        if isinstance(writer, JsonNotifications):
            writer.write_lines(notifications.json_lines(writer.ticks))
            return len(notifications)
        if isinstance(writer, ParquetNotifications):
            writer.write_table(notifications.with_events())
            return len(notifications)
    count = 0
    for count, notification in enumerate(notifications, 1):  # noqa: B007 - counted
        writer.write(notification)
    return count


def _first_answers(engine: Engine) -> Iterator[Notification]:
    """Return the present answers of all views."""
    for one in engine.subscriptions():
        if isinstance(one.query, View):
            yield first_answer(one.id, engine.answer(one.id), 0)


def _weights(texts: list[str], top: int | None) -> dict[str, float]:
    """Return the weights of attributes, which are written as `price=2.5`."""
    if texts and top is None:
        raise TocsinError("--weight sets the weights for --top; give --top, too")
    found = {}
    for name, number in options.assignments("--weight", texts, _WEIGHT):
        try:
            found[name] = float(number)
        except ValueError:
            raise TocsinError(f"--weight is written as {_WEIGHT}, not '{name}={number}'") from None
    check_event_weights(found, 1)
    return found


def _writer(
    output: Path | None, format: OutputFormat | None, ticks: StreamTicks | None, *, live: bool
) -> _Writer:
    """Return the writer of notifications for a file or standard output, in a format that may follow from them."""
    if output is not None and is_standard(output):
        output = None
    if format is None:
        if output is not None and output.suffix in (".parquet", ".pq"):
            format = OutputFormat.PARQUET
        elif output is not None and output.suffix in _OTHER_SUFFIXES:
            raise TocsinError(
                f"notifications are written as JSON lines, Parquet or a table, not as `{output.suffix}` says: name a file "
                f"like {output.stem}.jsonl or {output.stem}.parquet, or the format with --format"
            )
        else:
            is_terminal = output is None and sys.stdout is not None and sys.stdout.isatty()
            format = OutputFormat.TABLE if is_terminal else OutputFormat.JSONL
    if output is None and sys.stdout is None:
        raise TocsinError("standard output is closed; name a file: --output FILE")
    if format is OutputFormat.PARQUET:
        if output is None:
            raise TocsinError("Parquet needs a file: --output FILE")
        return ParquetNotifications(output)
    if format is OutputFormat.JSONL:
        file = standard_output() if output is None else output.open("wb")
        return JsonNotifications(file, live=live, ticks=ticks)
    return _NotificationTable(output)


class _NotificationTable(AbstractContextManager["_NotificationTable"]):
    """Writes notifications as lines of a table, each at once."""

    def __init__(self, output: Path | None) -> None:
        self._file = None if output is None else output.open("w", encoding="utf-8")
        self._console = new_console(file=self._file)
        self._begun = False

    def write(self, note: Notification) -> None:
        """Write one line."""
        if not self._begun:
            self._console.print(f"{'SUBSCRIPTION':<20} {'EVENT':<20} VALUES", style="bold", soft_wrap=True)
            self._begun = True
        line = Text(f"{terminal.shortened(note.subscription, 40):<20} ", style="green")
        last = note.event_ids[-1] if note.event_ids else "-"
        line.append(f"{terminal.shortened(last, 40):<20} ", style="dim")
        line.append(terminal.notification_text(note), style="default")
        self._console.print(line, soft_wrap=True)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


_Writer: TypeAlias = JsonNotifications | ParquetNotifications | _NotificationTable
