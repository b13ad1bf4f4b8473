"""`tocsin spark backtest` and `tocsin spark stats`: commands over a history of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tocsin.cli import options as common
from tocsin.cli.backtest import backtest_record, read_queries, require_time, show_backtest
from tocsin.cli.json_results import reported_errors, warning_record, write_result
from tocsin.cli.spark import options
from tocsin.cli.spark.unknown_names import warn_of_unknown_names
from tocsin.cli.terminal import FaultLog, counted, note
from tocsin.language.check import read_query
from tocsin.matching import ConjunctionBatch
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
    stream_field: common.StreamField = None,
    declared: options.DeclarationOptions,
    state_shards: options.StateShards = None,
    explain: options.Explain = False,
    json: common.Json = None,
    session: options.SessionOptions,
) -> None:
    """Count the notifications that subscriptions would have sent for a history, by day.

    Sequences and views are processed in the order in which events ended.
    """
    from tocsin.spark.backtest import backtest as run_backtest  # noqa: PLC0415 - imports Spark

    with reported_errors(json, "spark backtest"):
        require_time(time_field)
        with FaultLog() as log:
            queries = read_queries(given.source(log))
            of_all = None if stream_field is not None else options.stream_of(events, stream)
            warnings = warn_of_unknown_names(events, input_format, of_all, queries, quiet=session.quiet)
            reading: dict[str, Any] = {
                "input_format": input_format,
                "time_field": time_field,
                "stream_field": stream_field,
            }
            with session.open(events, **reading) as (_, source):
                found = run_backtest(
                    queries,
                    source.frame,
                    stream=of_all,
                    state_shards=state_shards,
                    explain=explain,
                    **declared.settings(),
                    **source.layout,
                )
    show_backtest(found, json)
    write_result(
        json, "spark backtest", backtest_record(found), warnings=map(warning_record, warnings), log=log
    )
    if log.count or found.faults:
        raise typer.Exit(1)


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
            callback=common.binary_to_be_written,
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
    forms = [
        disjunctive_form(require_filter(read_query(query).query, name), name)
        for name, query in read_queries(given).items()
    ]
    return [conjunction for _, conjunction in ConjunctionBatch.of(enumerate(forms)).in_conjunctions()]
