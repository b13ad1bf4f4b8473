"""`tocsin spark match`: notifications for a history of events."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from tocsin.cli import options as common
from tocsin.cli.console import new_console
from tocsin.cli.spark import options
from tocsin.cli.spark.unknown_names import warn_of_unknown_names
from tocsin.cli.terminal import FaultLog, counted, errors, note, shortened


class Plan(StrEnum):
    """The ways to match events with subscriptions."""

    INDEX = "index"
    JOIN = "join"


@common.with_option_groups
def match(
    events: options.Source,
    *,
    given: options.SparkSubscriptionOptions,
    matching: options.MatchOptions,
    building: options.IndexOptions,
    declared: options.DeclarationOptions,
    state: options.StateOptions,
    explain: options.Explain = False,
    plan: Annotated[
        Plan, typer.Option(help="By an index that workers open, or by an equi-join in Spark SQL.")
    ] = Plan.INDEX,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write Parquet files to this folder.", metavar="FOLDER"),
    ] = None,
    session: options.SessionOptions,
    faults: common.Faults = None,
) -> None:
    """Match a history of events against subscriptions: filters, sequences and views.

    Ends with 0; with 1 if a record or a subscription had to be left out; with 2 if nothing could be done.
    """
    from tocsin.spark.matching import match as match_events  # noqa: PLC0415 - imports Spark
    from tocsin.spark.subscription_sources import ensure_index  # noqa: PLC0415

    with FaultLog(faults) as log:
        subscriptions, making = given.source(log), building.settings() | declared.settings()
        stream = matching.settings(events)["stream"]
        warn_of_unknown_names(events, matching.input_format, stream, subscriptions, quiet=session.quiet)
        if session.is_local:  # what is wrong with subscriptions is said before Spark starts
            subscriptions, making = ensure_index(subscriptions, **making, on_error=log), {}
            options.require_times(subscriptions, matching.time_field)
        with session.open(events, **matching.reading()) as (_, source):
            notes = match_events(
                source.frame,
                subscriptions,
                **source.layout,  # type: ignore[arg-type]
                **matching.settings(events),
                faults=True,
                **making,
                **state.settings(),
                plan=plan.value,
                explain=explain,
                on_error=log,
            )
            if explain:
                return
            count = _write(notes, output, log) if output is not None else _print(notes, log)
        if not session.quiet and errors.is_terminal:
            note(counted(count, "notification"))
    if log.count:
        raise typer.Exit(1)


def _print(notes: Any, log: FaultLog) -> int:
    """Print notifications as they come: a table at a terminal, JSON lines otherwise."""
    from tocsin.spark.notification_output import printable  # noqa: PLC0415 - imports Spark

    names = [name for name in notes.columns if name != "reason"]
    console = new_console() if sys.stdout.isatty() else None
    encode = msgspec.json.Encoder(enc_hook=str).encode
    count = 0
    for row in printable(notes).toLocalIterator(prefetchPartitions=True):
        if row["reason"] is not None:
            log(f"event {row['event_id']}: {row['reason']}")
            continue
        count += 1
        if console is None:
            cells = row.asDict(recursive=True)
            sys.stdout.buffer.write(encode({name: cells[name] for name in names}) + b"\n")
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
    """Write notifications to Parquet files, and log the rows that are no events."""
    from tocsin.spark.notification_output import write_parquet  # noqa: PLC0415 - imports Spark

    held = notes.persist()
    try:
        right = held.where("reason is null").drop("reason")
        write_parquet(right, output)
        for row in held.where("reason is not null").toLocalIterator():
            log(f"event {row['event_id']}: {row['reason']}")
        return int(right.count())
    finally:
        held.unpersist()
