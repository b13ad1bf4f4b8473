"""`tocsin spark backtest` and `tocsin spark stats`: commands over a history of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin.cli import options as common
from tocsin.cli.output import no_standard_output
from tocsin.cli.spark import options
from tocsin.cli.terminal import FaultLog, counted, note
from tocsin.formats.subscription_files import Entry, read_subscriptions
from tocsin.language.check import read_query
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.subscriptions.filters import disjunctive_form, require_filter


@common.with_option_groups
def backtest(
    events: options.Source,
    *,
    given: options.QueryOptions,
    input_format: common.InputFormat = None,
    stream: common.Stream = None,
    time_field: Annotated[
        str | None, typer.Option("--time-field", help="The attribute with the time at which an event ended.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the counts to this file.", dir_okay=False)] = None,
    session: options.SessionOptions,
) -> None:
    """Count the notifications that subscriptions would have sent for a history, by day."""
    from tocsin.spark.backtest import backtest as run_backtest  # noqa: PLC0415 - imports Spark

    if time_field is None:
        raise TocsinError("days come from the events' own time: name it with --time-field")
    with FaultLog() as log:
        queries = _queries(given.source(log))
        with session.open(events, input_format=input_format, time_field=time_field) as (_, source):
            layout = {name: value for name, value in source.layout.items() if name != "event_id"}
            layout["event_id"] = source.layout["event_id"]
            found = run_backtest(queries, source.frame, stream=stream, **layout)
    _show_backtest(found)
    if json is not None:
        days = [
            {"day": day.day, "events": day.events, "notifications": dict(day.notifications)}
            for day in found.days
        ]
        counts = {"total": found.total, "faults": found.faults, "by subscription": found.counts()}
        totals = {"events": found.events, **counts}
        json.write_bytes(msgspec.json.format(msgspec.json.encode({**totals, "days": days}), indent=2) + b"\n")
    if log.count or found.faults:
        raise typer.Exit(1)


def _queries(given: Any) -> dict[str, Any]:
    """Return queries by subscription id; raise `SubscriptionError` at the first bad or repeated entry."""
    found = {}
    for entry in read_subscriptions(given) if isinstance(given, Path) else given:
        if not isinstance(entry, Entry):
            raise entry
        if entry.id in found:
            raise SubscriptionError(f"{entry.location}: another subscription is called so already", entry.id)
        found[entry.id] = entry.query
    return found


def _show_backtest(found: Any) -> None:
    """Print the notifications by day with a bar chart, by subscription, and in all."""
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


@common.with_option_groups
def collect_statistics(
    events: options.Source,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write the statistics to this file.",
            dir_okay=False,
            callback=no_standard_output,
        ),
    ],
    given: options.QueryOptions,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Attributes to count together, as a,b; may be given several times.", metavar="A,B"),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="The number of frequent values to keep per attribute.")
    ] = 256,
    bins: Annotated[int, typer.Option(min=1, help="The number of bins for the other values.")] = 32,
    max_groups: Annotated[
        int, typer.Option(min=0, help="The number of groups to derive from the subscriptions.")
    ] = 64,
    input_format: common.InputFormat = None,
    stream: common.Stream = None,
    id_field: common.IdField = None,
    session: options.SessionOptions,
) -> None:
    """Count a history's attributes, values and combinations of values, for matchers that choose by cost.

    Subscriptions, if they are given, say which attributes are worth counting together.
    """
    from tocsin.spark.statistics import statistics  # noqa: PLC0415 - imports Spark

    with FaultLog() as log:
        conjunctions = _conjunctions(given.source(log) if given.subscribe or given.subscriptions else ())
        with session.open(events, input_format=input_format, id_field=id_field) as (_, source):
            layout = {name: value for name, value in source.layout.items() if name in ("payload", "event_id")}
            found = statistics(
                source.frame,
                groups=[one.split(",") for one in group or []],
                subscriptions=conjunctions,
                max_groups=max_groups,
                stream=stream,
                top=top,
                bins=bins,
                **layout,
            )
    found.save(output)
    Console(highlight=False, soft_wrap=True).print(found.summary(), markup=False)
    if found.refused:
        note(f"{counted(found.refused, 'row')} left out: no events")
    if log.count or found.refused:
        raise typer.Exit(1)


def _conjunctions(given: Any) -> list[Any]:
    return [
        conjunction
        for name, query in _queries(given).items()
        for conjunction in disjunctive_form(require_filter(read_query(query).query, name), name).conjunctions
    ]
