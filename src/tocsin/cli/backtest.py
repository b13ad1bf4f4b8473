"""`tocsin backtest`: the notifications that subscriptions would have sent for a file of events, by day."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import typer
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from tocsin.cli import options, terminal
from tocsin.cli.coverage import observed, warn_of_unseen
from tocsin.cli.json_results import Record, reported_errors, warning_record, write_result
from tocsin.cli.output import results
from tocsin.cli.spark.options import QueryOptions
from tocsin.cli.subscription_loading import EntryError
from tocsin.engine import Engine
from tocsin.engine.backtest import EVERY, Backtest, DayCounts
from tocsin.formats.files import is_standard
from tocsin.formats.subscription_files import Entry, read_subscriptions
from tocsin.language.check import read_query
from tocsin.language.schema_inference import ObservedSchema
from tocsin.model import Filter, Query
from tocsin.model.errors import SubscriptionError, TocsinError

_COMMAND: Final = "backtest"
_BATCH: Final = 256  # of events that are read one by one


@options.with_option_groups
def backtest(
    events: options.EventsArgument = "-",
    *,
    given: QueryOptions,
    replay: options.ReplayOptions,
    faults: options.Faults = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Count the notifications that subscriptions would have sent for a history, by day, without subscribing.

    Ends with 0; with 1 if a record or a subscription had to be left out; with 2 if nothing could be done.
    """
    with reported_errors(json, _COMMAND):
        if is_standard(events):
            require_time(replay.time_field)
        options.check_standard_input(events, *(given.subscriptions or ()))
        with terminal.FaultLog(faults) as log:
            queries = read_queries(given.source(log))
            engine = replay.engine(None, log)
            names = _subscribe(engine, queries)
            source = replay.open_for(engine, events, quiet=quiet, needs_time=True)
            schema = ObservedSchema()
            counts = DayCounts(engine.ticks)
            with terminal.progress("events", quiet=quiet) as bar:
                incoming = observed(
                    terminal.watched(source.blocks(), bar, "counting", source), schema, engine
                )
                for notifications in engine.publish_batches(incoming, on_error=log, batch_size=_BATCH):
                    counts.add(notifications)
                counts.add_each(engine.flush())
        refused = source.reader.refused + engine.stats().refused
        found = counts.result(names, refused)
    show_backtest(found, json)
    unseen = warn_of_unseen(engine, schema, log.count)
    write_result(json, _COMMAND, backtest_record(found), warnings=map(warning_record, unseen), log=log)
    if log.count or found.faults:
        raise typer.Exit(1)


def _subscribe(engine: Engine, queries: Mapping[str, Query]) -> list[str]:
    """Subscribe to the queries and to every event; return the queries' ids."""
    for name, query in queries.items():
        # What a filter selects is not shown.
        counted = replace(query, select=()) if isinstance(query, Filter) else query
        for warning in engine.subscribe(counted, id=name).warnings:
            terminal.warn(f"subscription `{name}`: {warning}")
    engine.subscribe("true", id=EVERY)
    return list(queries)


def require_time(time_field: str | None) -> None:
    """Raise `TocsinError` if no field holds the times of events."""
    if time_field is None:
        raise TocsinError("days come from the events' own time: name it with --time-field")


def read_queries(given: Any) -> dict[str, Query]:
    """Return queries by subscription id; raise `TocsinError` at the first bad or repeated entry."""
    found: dict[str, Query] = {}
    for entry in read_subscriptions(given) if isinstance(given, Path) else given:
        if not isinstance(entry, Entry):
            raise entry
        if entry.id in found:
            raise SubscriptionError(f"{entry.location}: another subscription is called so already", entry.id)
        try:
            found[entry.id] = read_query(entry.query).query
        except TocsinError as error:
            raise EntryError(error, entry) from None
    return found


def backtest_record(found: Backtest) -> Record:
    """Return the counts for JSON."""
    return {
        "events": found.events,
        "total": found.total,
        "rows_left_out": found.faults,
        "subscriptions": found.counts(),
        "days": [
            {"day": day.day, "events": day.events, "notifications": dict(day.notifications)}
            for day in found.days
        ],
    }


def show_backtest(found: Backtest, json: Path | None) -> None:
    """Print the notifications by day with a bar chart, by subscription, and in all."""
    console = results(json)
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
            text = f"{name}: {terminal.counted(count, 'notification')}"
            console.print(text, markup=False, soft_wrap=True)
    busiest = f", at most {found.busiest.total:,} on {found.busiest.day}" if found.busiest else ""
    per_day = found.total / max(len(found.days), 1)
    console.print(
        f"{terminal.counted(found.total, 'notification')} of {terminal.counted(found.events, 'event')} "
        f"on {terminal.counted(len(found.days), 'day')}: {per_day:,.1f} a day{busiest}",
        style="bold",
        soft_wrap=True,
    )
    if found.faults:
        terminal.note(f"{terminal.counted(found.faults, 'row')} left out: no events")
