"""`tocsin match`: which subscription does each event satisfy?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from tocsin.cli import options
from tocsin.cli.subscription_loading import Loaded, load_entries, load_template, load_texts
from tocsin.cli.terminal import FaultLog, counted, errors, note, progress, shown, told, watched
from tocsin.engine import Engine
from tocsin.engine.answers import first_answer
from tocsin.formats.notifications import JsonNotifications, ParquetNotifications
from tocsin.matching import registered_matchers
from tocsin.matching.ranking import check_event_weights
from tocsin.model import Notification, View
from tocsin.model.errors import TocsinError

_BATCH = 256


class OutputFormat(StrEnum):
    """How notifications are written."""

    TABLE = "table"
    JSONL = "jsonl"
    PARQUET = "parquet"


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
            "--format", help="Table at a terminal, JSON lines otherwise, unless the output's name says."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write notifications to this file.", dir_okay=False)
    ] = None,
    matcher: Annotated[
        str | None,
        typer.Option(
            help=f"The index to match with: {', '.join(registered_matchers())}.", show_default="dynamic"
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="Tell of each event only so many: the best by their weights.", min=1),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            help="What an attribute weighs in that, as price=2.5; may be given several times.",
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
        Path | None, typer.Option(help="Write the tables to this file at the end.", dir_okay=False)
    ] = None,
    faults: options.Faults = None,
    quiet: options.Quiet = False,
    *,
    replay: options.ReplayOptions,
) -> None:
    """Match events against subscriptions and print a notification for each that is satisfied, completed or changed.

    Ends with 0; with 1 if a record or a subscription of a file had to be left out; with 2 if nothing could be done.
    """
    weights = _weights(weight or [], top)
    with ExitStack() as stack:
        log = stack.enter_context(FaultLog(faults))
        engine = replay.engine(matcher, log)
        if load_tables is not None:
            engine.load_tables(load_tables)
        source = replay.open(events, engine.ticks, valid_until_field)
        _load(engine, subscribe, subscriptions, (template, parameters, id_rule), log)
        writer = _writer(output, format, live=source.path is None)
        stack.enter_context(writer)
        bar = stack.enter_context(progress("events", quiet=quiet))
        count = 0
        for notification in _first_answers(engine) if load_tables is not None else ():
            writer.write(notification)
            count += 1
        # From a pipe events come one by one, and each is answered before the next is waited for.
        batch = 1 if source.path is None else _BATCH
        incoming = watched(source, bar, "matching", source)
        for notification in engine.publish_many(
            incoming, on_error=log, batch_size=batch, top=top, weights=weights
        ):
            writer.write(notification)
            count += 1
        for notification in engine.flush():
            writer.write(notification)
            count += 1
        if save_tables is not None:
            engine.save_tables(save_tables)
    stats = engine.stats()
    if not quiet and errors.is_terminal:
        refused = stats.refused + source.reader.refused
        late = stats.late + stats.views.late
        left_out = (f", {refused:,} refused" if refused else "") + (f", {late:,} late" if late else "")
        note(
            f"{counted(stats.published, 'event')}{left_out}, {counted(len(engine), 'subscription')}, "
            f"{counted(count, 'notification')}"
        )
        if source.reader.dropped:
            names = ", ".join(shown(name, 40) for name in list(source.reader.dropped)[:5])
            note(f"{counted(source.reader.dropped.total(), 'array')} left out ({names})")
    if log.count:
        raise typer.Exit(1)


def _first_answers(engine: Engine) -> Iterator[Notification]:
    """Return the present answers of all views."""
    for one in engine.subscriptions():
        if isinstance(one.query, View):
            yield first_answer(one.id, engine.answer(one.id), 0)


def _weights(texts: list[str], top: int | None) -> dict[str, float]:
    """Return the weights of attributes that are written as `price=2.5`."""
    if texts and top is None:
        raise TocsinError("--weight says what an attribute is worth to --top; give that, too")
    found = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise TocsinError(f"--weight is written as attribute=number, such as price=2.5, not {text!r}")
    check_event_weights(found, 1)
    return found


def _load(
    engine: Engine,
    texts: list[str] | None,
    files: list[Path] | None,
    template: tuple[str | None, Path | None, str | None],
    log: FaultLog,
) -> Loaded:
    text, parameters, id_rule = template
    if (text is None) is not (parameters is None):
        raise TocsinError("--template and --parameters go together: a text, and the rows that fill it")
    if not texts and not files and text is None:
        raise TocsinError("nothing is subscribed: give -s TEXT, -f FILE, or --template and --parameters")
    load_texts(engine, texts or [])
    loaded = Loaded(len(texts or []))
    for file in files or []:
        loaded += load_entries(engine, file, log)
    if text is not None and parameters is not None:
        loaded += load_template(engine, text, parameters, id_rule, log)
    if not loaded.good:
        raise TocsinError("no subscription could be read")
    return loaded


def _writer(
    output: Path | None, format: OutputFormat | None, *, live: bool
) -> JsonNotifications | ParquetNotifications | _Table:
    if format is None:
        if output is not None and output.suffix in (".parquet", ".pq"):
            format = OutputFormat.PARQUET
        else:
            format = (
                OutputFormat.TABLE
                if output is None and sys.stdout is not None and sys.stdout.isatty()
                else OutputFormat.JSONL
            )
    if output is None and sys.stdout is None:
        raise TocsinError("standard output is closed; name a file: --output FILE")
    if format is OutputFormat.PARQUET:
        if output is None:
            raise TocsinError("Parquet needs a file: --output FILE")
        return ParquetNotifications(output)
    if format is OutputFormat.JSONL:
        return JsonNotifications(sys.stdout.buffer if output is None else output.open("wb"), live=live)
    return _Table(output)


class _Table:
    """Writes notifications as lines of a table, each as it comes."""

    def __init__(self, output: Path | None) -> None:
        self._file = None if output is None else output.open("w", encoding="utf-8")
        self._console = Console(file=self._file, highlight=False)
        self._begun = False

    def write(self, note: Notification) -> None:
        """Write one line."""
        if not self._begun:
            self._console.print(f"{'SUBSCRIPTION':<20} {'EVENT':<20} VALUES", style="bold", soft_wrap=True)
            self._begun = True
        line = Text(f"{shown(note.subscription, 40):<20} ", style="green")
        last = note.event_ids[-1] if note.event_ids else "-"
        line.append(f"{shown(last, 40):<20} ", style="dim")
        line.append(told(note), style="default")
        self._console.print(line, soft_wrap=True)

    def __enter__(self) -> _Table:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
