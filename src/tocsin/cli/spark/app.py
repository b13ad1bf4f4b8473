"""The commands of `tocsin spark`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tocsin.cli import options as common
from tocsin.cli.spark import options
from tocsin.cli.spark.options import Asked, Options, opened, pairs, subscriptions_of
from tocsin.cli.terminal import FaultLog, counted, errors, note, shown
from tocsin.model.errors import TocsinError

__all__ = ["app"]

app = typer.Typer(
    help="Match streams and histories of events on Spark; the answers are those of `tocsin match`.",
    no_args_is_help=True,
)


class SinkFormat(StrEnum):
    """How a stream's notifications are written."""

    PARQUET = "parquet"
    ARROW = "tocsin-arrow"
    CONSOLE = "console"


@app.command("match")
def match_(
    events: options.Source,
    subscribe: options.Subscribe = None,
    subscriptions: options.Files = None,
    index: options.Index = None,
    template: options.TemplateText = None,
    parameters: options.Parameters = None,
    id_rule: options.IdRule = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column of the events to print with each notification.")
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="Print what subscriptions select.")] = False,
    shards: options.Shards = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write Parquet files to this folder.", metavar="FOLDER"),
    ] = None,
    input_format: common.InputFormat = None,
    stream: common.Stream = None,
    time_field: common.TimeField = None,
    id_field: common.IdField = None,
    option: options.ReaderOptions = None,
    master: options.Master = None,
    conf: options.Settings = None,
    faults: common.Faults = None,
    quiet: common.Quiet = False,
) -> None:
    """Match a history of events against subscriptions.

    Ends with 0; with 1 if a record or a subscription had to be left out; with 2 if nothing could be done.
    """
    from tocsin.spark.matching import match  # noqa: PLC0415 - it brings Spark

    asked = Asked(subscribe, subscriptions, index, template, parameters, id_rule)
    how = Options(master, conf, option, input_format, id_field, time_field, quiet)
    with FaultLog(faults) as log, opened(events, how) as (_, source):
        notes = match(
            source.frame,
            subscriptions_of(asked, log),
            **source.layout,  # type: ignore[arg-type]
            stream=stream,
            keep=keep or [],
            values=values,
            faults=True,
            shards=shards,
            on_error=log,
        )
        count = _write(notes, output, log) if output is not None else _print(notes, log)
        if not quiet and errors.is_terminal:
            note(counted(count, "notification"))
    if log.count:
        raise typer.Exit(1)


def _print(notes: Any, log: FaultLog) -> int:
    """Print notifications as they come: a table at a terminal, JSON lines otherwise."""
    names = [name for name in notes.columns if name != "reason"]
    console = Console(highlight=False) if sys.stdout.isatty() else None
    encode = msgspec.json.Encoder().encode
    count = 0
    for row in notes.toLocalIterator(prefetchPartitions=True):
        if row["reason"] is not None:
            log(f"event {row['event_id']}: {row['reason']}")
            continue
        count += 1
        if console is None:
            sys.stdout.buffer.write(encode({name: row[name] for name in names}) + b"\n")
            continue
        if count == 1:
            console.print(f"{'SUBSCRIPTION':<20} {'EVENT':<20} {'TIME':<26} …", style="bold", soft_wrap=True)
        line = Text(f"{shown(row['subscription'], 40):<20} ", style="green")
        line.append(f"{shown(str(row['event_id']), 40):<20} {row['time']!s:<26} ", style="dim")
        line.append(" ".join(f"{name}={row[name]}" for name in names[4:]), style="default")
        console.print(line, soft_wrap=True)
    sys.stdout.flush()
    return count


def _write(notes: Any, output: str, log: FaultLog) -> int:
    """Write notifications to Parquet files, and tell of what was left out."""
    held = notes.persist()
    try:
        right = held.where("reason is null").drop("reason")
        right.write.mode("errorifexists").parquet(output)
        for row in held.where("reason is not null").toLocalIterator():
            log(f"event {row['event_id']}: {row['reason']}")
        return int(right.count())
    finally:
        held.unpersist()


@app.command("backtest")
def backtest_(
    events: options.Source,
    subscribe: options.Subscribe = None,
    subscriptions: options.Files = None,
    input_format: common.InputFormat = None,
    stream: common.Stream = None,
    time_field: Annotated[
        str | None, typer.Option("--time-field", help="When an event ended; days are told by it.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the counts to this file.", dir_okay=False)] = None,
    option: options.ReaderOptions = None,
    master: options.Master = None,
    conf: options.Settings = None,
    quiet: common.Quiet = False,
) -> None:
    """Show what subscriptions would have sent of a history, day by day, so that you see the noise before subscribing."""
    from tocsin.spark.backtest import backtest  # noqa: PLC0415 - it brings Spark

    if time_field is None:
        raise TocsinError("days are told by the events' own time: name it with --time-field")
    how = Options(master, conf, option, input_format, None, time_field, quiet)
    with FaultLog() as log, opened(events, how) as (_, source):
        given = subscriptions_of(Asked(subscribe, subscriptions), log)
        layout = {name: value for name, value in source.layout.items() if name != "event_id"}
        found = backtest(
            _queries(given), source.frame, event_id=source.layout["event_id"], stream=stream, **layout
        )
    _show_backtest(found)
    if json is not None:
        days = [
            {"day": day.day, "events": day.events, "notifications": dict(day.notifications)}
            for day in found.days
        ]
        told = {
            "events": found.events,
            "total": found.total,
            "faults": found.faults,
            "by subscription": found.counts(),
        }
        json.write_bytes(msgspec.json.format(msgspec.json.encode({**told, "days": days}), indent=2) + b"\n")
    if log.count or found.faults:
        raise typer.Exit(1)


def _queries(given: Any) -> dict[str, Any]:
    from tocsin.formats.subscription_files import Entry, read_subscriptions  # noqa: PLC0415

    found = {}
    for entry in read_subscriptions(given) if isinstance(given, Path) else given:
        if not isinstance(entry, Entry):
            raise entry
        found[entry.id] = entry.query
    return found


def _show_backtest(found: Any) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("day", style="cyan")
    table.add_column("events", justify="right")
    table.add_column("notifications", justify="right")
    table.add_column("")
    most = max((day.total for day in found.days), default=0) or 1
    for day in found.days:
        bar = "▇" * -(-32 * day.total // most)
        table.add_row(day.day.isoformat(), f"{day.events:,}", f"{day.total:,}", Text(bar, style="green"))
    console.print(table)
    if len(found.subscriptions) > 1:
        for name, count in found.counts().items():
            console.print(f"{name}: {counted(count, 'notification')}")
    busiest = f", at most {found.busiest.total:,} on {found.busiest.day}" if found.busiest else ""
    per_day = found.total / max(len(found.days), 1)
    console.print(
        f"{counted(found.total, 'notification')} of {counted(found.events, 'event')} on {counted(len(found.days), 'day')}: "
        f"{per_day:,.1f} a day{busiest}",
        style="bold",
    )
    if found.faults:
        note(f"{counted(found.faults, 'row')} left out: no events")


@app.command()
def run(
    events: options.Source,
    checkpoint: Annotated[
        str, typer.Option(help="Where the stream keeps how far it has come.", metavar="FOLDER")
    ],
    sink: Annotated[
        str | None, typer.Option(help="The folder that notifications are written to.", metavar="FOLDER")
    ] = None,
    sink_format: Annotated[SinkFormat, typer.Option(help="How they are written there.")] = SinkFormat.PARQUET,
    sink_option: Annotated[
        list[str] | None,
        typer.Option(help="An option for the sink, as key=value; may be given several times."),
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option(help="The folder that rows which are no events are written to.", metavar="FOLDER"),
    ] = None,
    subscribe: options.Subscribe = None,
    subscriptions: options.Files = None,
    index: options.Index = None,
    template: options.TemplateText = None,
    parameters: options.Parameters = None,
    id_rule: options.IdRule = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column of the events to write with each notification.")
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="Write what subscriptions select.")] = False,
    shards: options.Shards = None,
    trigger: Annotated[
        str | None, typer.Option(help="How often a micro-batch begins, such as '5 seconds'; else at once.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Match what there is, and end.")] = False,
    input_format: common.InputFormat = None,
    stream: common.Stream = None,
    time_field: common.TimeField = None,
    id_field: common.IdField = None,
    option: options.ReaderOptions = None,
    master: options.Master = None,
    conf: options.Settings = None,
    quiet: common.Quiet = False,
) -> None:
    """Match a stream of events for as long as it runs; Ctrl-C ends it, and the next start goes on from there.

    A file of subscriptions, or an index, may change meanwhile: what changes takes effect with the next micro-batch.
    """
    from tocsin.spark.data_sources import register  # noqa: PLC0415 - it brings Spark
    from tocsin.spark.pipeline import Pipeline  # noqa: PLC0415

    if sink is None and sink_format is not SinkFormat.CONSOLE:
        raise TocsinError(
            "name the folder that notifications go to with --sink, or print them: --sink-format console"
        )
    asked = Asked(subscribe, subscriptions, index, template, parameters, id_rule)
    how = Options(master, conf, option, input_format, id_field, time_field, quiet)
    target = {
        "format": sink_format.value,
        **({} if sink is None else {"path": sink}),
        **pairs(sink_option, "--sink-option"),
    }
    with FaultLog() as log, opened(events, how, is_stream=True) as (spark, source):
        register(spark)
        pipeline = Pipeline(
            source.frame,
            subscriptions_of(asked, log),
            target,
            checkpoint,
            keep=keep or [],
            values=values,
            shards=shards,
            dead_letters=dead_letters,
            trigger=trigger,
            on_error=log,
            stream=stream,
            **source.layout,  # type: ignore[arg-type]
        )
        _watch(pipeline, once=once, quiet=quiet)
    if log.count:
        raise typer.Exit(1)


def _watch(pipeline: Any, *, once: bool, quiet: bool) -> None:
    """Run a pipeline; at a terminal one line shows the newest micro-batch, elsewhere each has its own."""
    events = notifications = 0
    if errors.is_terminal and not quiet:
        with Live(Text("waiting for events", style="dim"), console=errors, refresh_per_second=4) as live:

            def show(progress: Any) -> None:
                nonlocal events, notifications
                events, notifications = events + progress.events, notifications + progress.notifications
                live.update(Text(f"{progress}  (in all {events:,} events, {notifications:,} notifications)"))

            pipeline.run(available_now=once, on_progress=show)
    else:
        pipeline.run(available_now=once, on_progress=None if quiet else lambda progress: note(str(progress)))


@app.command()
def publish(
    index: Annotated[
        str, typer.Argument(help="The folder of the index; it is made if it is not there.", metavar="INDEX")
    ],
    subscribe: options.Subscribe = None,
    subscriptions: options.Files = None,
    template: options.TemplateText = None,
    parameters: options.Parameters = None,
    id_rule: options.IdRule = None,
    shards: options.Shards = None,
    faults: common.Faults = None,
) -> None:
    """Make an index hold just these subscriptions; streams that match with it follow with their next micro-batch."""
    from tocsin.index import SubscriptionIndex  # noqa: PLC0415 - only when asked for
    from tocsin.spark.subscriptions import fill  # noqa: PLC0415 - it brings Spark

    with FaultLog(faults) as log:
        source = subscriptions_of(Asked(subscribe, subscriptions, None, template, parameters, id_rule), log)
        held = SubscriptionIndex(index, shards=shards)
        before = held.generation
        fill(held, source, log)
        number = held.publish()
        held.vacuum()
    state = "unchanged" if number == before else f"now generation {number}"
    note(f"{index}: {counted(len(held), 'subscription')}, {state}")
    if log.count:
        raise typer.Exit(1)
