"""`tocsin spark match`: which subscription does each event of a history satisfy?"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from tocsin.cli import options as common
from tocsin.cli.spark import options
from tocsin.cli.spark.options import Asked, Options, matcher_options, opened, subscriptions_of
from tocsin.cli.terminal import FaultLog, counted, errors, note, shortened


class Plan(StrEnum):
    """How events and subscriptions are brought together."""

    INDEX = "index"
    JOIN = "join"


def match(
    events: options.Source,
    subscribe: common.Subscribe = None,
    subscriptions: common.SubscriptionFiles = None,
    index: options.Index = None,
    template: common.TemplateText = None,
    parameters: common.TemplateParameters = None,
    id_rule: common.TemplateIds = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column of the events to print with each notification.")
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="Print what subscriptions select.")] = False,
    shards: options.Shards = None,
    matcher: options.MatcherName = None,
    statistics: options.StatisticsFile = None,
    plan: Annotated[
        Plan,
        typer.Option(help="By an index that workers open, or by an equi-join in Spark SQL."),
    ] = Plan.INDEX,
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
    from tocsin.spark import matching  # noqa: PLC0415 - it brings Spark

    asked = Asked(subscribe, subscriptions, index, template, parameters, id_rule)
    how = Options(master, conf, option, input_format, id_field, time_field, quiet)
    with FaultLog(faults) as log:
        given = subscriptions_of(asked, log)
        with opened(events, how) as (_, source):
            notes = matching.match(
                source.frame,
                given,
                **source.layout,  # type: ignore[arg-type]
                stream=stream,
                keep=keep or [],
                values=values,
                faults=True,
                shards=shards,
                **matcher_options(matcher, statistics),
                plan=plan.value,
                on_error=log,
            )
            count = _write(notes, output, log) if output is not None else _print(notes, log)
        if not quiet and errors.is_terminal:
            note(counted(count, "notification"))
    if log.count:
        raise typer.Exit(1)


def _print(notes: Any, log: FaultLog) -> int:
    """Print notifications as they come: a table at a terminal, JSON lines otherwise."""
    from tocsin.spark.writing import printable  # noqa: PLC0415 - it brings Spark

    names = [name for name in notes.columns if name != "reason"]
    console = Console(highlight=False) if sys.stdout.isatty() else None
    encode = msgspec.json.Encoder(enc_hook=str).encode
    count = 0
    for row in printable(notes).toLocalIterator(prefetchPartitions=True):
        if row["reason"] is not None:
            log(f"event {row['event_id']}: {row['reason']}")
            continue
        count += 1
        if console is None:
            told = row.asDict(recursive=True)
            sys.stdout.buffer.write(encode({name: told[name] for name in names}) + b"\n")
            continue
        if count == 1:
            console.print(f"{'SUBSCRIPTION':<20} {'EVENT':<20} {'TIME':<26} …", style="bold", soft_wrap=True)
        line = Text(f"{shortened(row['subscription'], 40):<20} ", style="green")
        line.append(f"{shortened(str(row['event_id']), 40):<20} {row['time']!s:<26} ", style="dim")
        line.append(" ".join(f"{name}={row[name]}" for name in names[4:]), style="default")
        console.print(line, soft_wrap=True)
    sys.stdout.flush()
    return count


def _write(notes: Any, output: str, log: FaultLog) -> int:
    """Write notifications to Parquet files, and tell of what was left out."""
    from tocsin.spark.writing import write_parquet  # noqa: PLC0415 - it brings Spark

    held = notes.persist()
    try:
        right = held.where("reason is null").drop("reason")
        write_parquet(right, output)
        for row in held.where("reason is not null").toLocalIterator():
            log(f"event {row['event_id']}: {row['reason']}")
        return int(right.count())
    finally:
        held.unpersist()
