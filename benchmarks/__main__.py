"""`python -m benchmarks`: the papers' experiments on our matchers, sequences, views and networks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.runner.report import Report
from benchmarks.runner.tables import (
    show_by_experiment,
    show_by_matcher,
    show_by_place,
    show_closing,
    show_targets,
)
from tocsin.cli.options import to_be_written
from tocsin.cli.spark.options import Master
from tocsin.cli.terminal import complain, note, show_log
from tocsin.model.errors import TocsinError

app = typer.Typer(
    help="Measure: each command prints a table and, on request, writes JSON.", no_args_is_help=True
)

JsonFile = Annotated[
    Path | None,
    typer.Option(help="Write the figures to this file.", dir_okay=False, callback=to_be_written),
]
PlotFolder = Annotated[Path | None, typer.Option(help="Draw the figures into this folder.", file_okay=False)]
OnlyMatchers = Annotated[
    list[str] | None, typer.Option(help="Only this matcher; may be given several times.")
]
OnlyExperiments = Annotated[
    list[str] | None, typer.Option(help="Only this experiment; may be given several times.")
]


@app.callback()
def _group() -> None:
    """Keep `bench` a group, however few its commands."""


@app.command()
def language(
    filters: Annotated[int, typer.Option(min=1, help="How many texts to read.")] = 20_000,
    rows: Annotated[int, typer.Option(min=1, help="How many rows to give the template.")] = 1_000_000,
    json: JsonFile = None,
) -> None:
    """Measure how many subscriptions a second are read: texts one by one, templates by the column."""
    from benchmarks.language.experiments import run  # noqa: PLC0415 - only when asked for

    console = Console(stderr=True)
    with console.status("measuring") as status:
        report = run(filters, rows, lambda name: status.update(f"measuring: {name}"))
    show(report)
    if json is not None:
        report.write(json)


class ScaleName(StrEnum):
    """How large an experiment is."""

    SMALL = "small"
    PAPER = "paper"


@app.command()
def lesubscribe(
    scale: Annotated[
        ScaleName, typer.Option(help="small: about a minute; paper: up to 6,000,000 subscriptions.")
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
    matcher: OnlyMatchers = None,
) -> None:
    """Run Le Subscribe's experiments: time per event, memory, loading, drift, churn, by matcher."""
    from benchmarks.lesubscribe import EXPERIMENTS, SCALES, run  # noqa: PLC0415 - only when asked for
    from benchmarks.lesubscribe.plots import draw  # noqa: PLC0415

    report = _measured(lambda progress: run(SCALES[scale.value], matcher or (), progress), json, plots)
    show_by_matcher(report, {name: (one.title, one.varied) for name, one in EXPERIMENTS.items()})
    show_targets(report)
    if plots is not None:
        draw(report, plots)


@app.command()
def opindex(
    scale: Annotated[
        ScaleName, typer.Option(help="small: about a minute; paper: up to 20,000,000 subscriptions.")
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
    matcher: OnlyMatchers = None,
    experiment: OnlyExperiments = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Read documents and products from this folder's news.jsonl.gz and products.jsonl.zst."
        ),
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="Read documents from this file or folder of JSON lines.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="An attribute of documents that holds text, the title first, or * for all strings; may be given several times."
        ),
    ] = None,
    catalogue: Annotated[
        Path | None, typer.Option(help="Read products from this file or folder of JSON lines.")
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="Read the words of prefixes from this file, one a line, the frequent ones first."),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(min=0, help="How many GB matchers may take, if less than is available.")
    ] = None,
) -> None:
    """Run OpIndex's experiments: many attributes, keywords, products, CNF and DNF, prefixes, by matcher."""
    from benchmarks.opindex import (  # noqa: PLC0415 - only when asked for
        EXPERIMENTS,
        GAPS,
        SCALES,
        Data,
        run,
    )
    from benchmarks.opindex.plots import draw  # noqa: PLC0415

    given = Data.of(data, documents=documents, catalogue=catalogue, words=words, text=text or ())
    report = _measured(
        lambda progress: run(
            SCALES[scale.value],
            matcher or (),
            given,
            experiments=experiment or (),
            memory_gb=float("inf") if memory is None else memory,
            progress=progress,
        ),
        json,
        plots,
    )
    show_by_place(report, {name: (one.title, one.varied) for name, one in EXPERIMENTS.items()}, GAPS)
    if (absent := report.parameters["not_there"]) != "none":
        note(f"not registered, and so not compared: {absent}")
    show_targets(report)
    if plots is not None:
        draw(report, plots)


@app.command()
def amkh(
    scale: Annotated[
        ScaleName, typer.Option(help="small: about two minutes; paper: up to 1,000,000 subscriptions.")
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
    matcher: OnlyMatchers = None,
    experiment: OnlyExperiments = None,
) -> None:
    """Run AMKH's experiments: figure 1, how many attributes and classes are hashed best, and the time an event takes."""
    from benchmarks.amkh import SCALES, run, titles  # noqa: PLC0415 - only when asked for
    from benchmarks.amkh.plots import draw  # noqa: PLC0415

    report = _measured(
        lambda progress: run(
            SCALES[scale.value], matcher or (), experiments=experiment or (), progress=progress
        ),
        json,
        plots,
    )
    show_by_place(report, titles(report), ())
    if plots is not None:
        draw(report, plots)


@app.command()
def cayuga(
    scale: Annotated[
        ScaleName, typer.Option(help="small: about a minute; paper: up to 400,000 subscriptions.")
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
    matcher: Annotated[
        str, typer.Option(help="Which matcher holds the static parts of sequences.")
    ] = "dynamic",
    experiment: OnlyExperiments = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Read articles and prices from this folder's news.jsonl.gz and stocks.jsonl.zst."),
    ] = None,
) -> None:
    """Run Cayuga's experiments: events a second of sequences, with parts switched off, over feeds, beside SQL."""
    from benchmarks.cayuga import EXPERIMENTS, SCALES, Data, run  # noqa: PLC0415 - only when asked for
    from benchmarks.cayuga.plots import draw  # noqa: PLC0415

    given = Data.of(data)
    report = _measured(
        lambda progress: run(
            SCALES[scale.value], matcher, given, experiments=experiment or (), progress=progress
        ),
        json,
        plots,
    )
    show_by_place(report, {name: (one.title, one.varied) for name, one in EXPERIMENTS.items()}, (), "of")
    show_targets(report)
    if plots is not None:
        draw(report, plots)


@app.command()
def views(
    scale: Annotated[
        ScaleName, typer.Option(help="small: about a minute; paper: up to 1,000,000 subscriptions.")
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
    matcher: OnlyMatchers = None,
    experiment: OnlyExperiments = None,
    data: Annotated[
        Path | None, typer.Option(help="Read quotes from this folder's stock_quotes.jsonl.gz.")
    ] = None,
) -> None:
    """Run the database/network paper's experiments on the server's side: updates of tables to changed answers."""
    from benchmarks.dbnet.views import EXPERIMENTS, SCALES, Data, run  # noqa: PLC0415 - only when asked for
    from benchmarks.dbnet.views.plots import draw  # noqa: PLC0415

    given = Data.of(data)
    report = _measured(
        lambda progress: run(
            SCALES[scale.value], matcher or (), given, experiments=experiment or (), progress=progress
        ),
        json,
        plots,
    )
    show_by_place(report, {name: (one.title, one.varied) for name, one in EXPERIMENTS.items()}, (), "of")
    show_targets(report)
    if plots is not None:
        draw(report, plots)


@app.command()
def network(
    scale: Annotated[
        ScaleName,
        typer.Option(help="small: about a minute; paper: 1,000 nodes, up to 1,000,000 subscriptions."),
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
    strategy: Annotated[
        list[str] | None, typer.Option(help="Only this strategy; may be given several times.")
    ] = None,
    experiment: OnlyExperiments = None,
    data: Annotated[
        Path | None, typer.Option(help="Read quotes from this folder's stock_quotes.jsonl.gz.")
    ] = None,
    on_spark: Annotated[
        bool, typer.Option("--spark", help="Spread the simulations over Spark instead of one after another.")
    ] = False,
    master: Master = None,
) -> None:
    """Run the database/network paper's experiments on the network's side: six strategies, simulated link by link.

    Ends with 1 if a simulation failed; the others are told all the same.
    """
    from benchmarks.dbnet.network import EXPERIMENTS, SCALES, Data, printed, run  # noqa: PLC0415 - only when asked for
    from benchmarks.dbnet.network.plots import draw  # noqa: PLC0415
    from benchmarks.dbnet.network.spreading import one_by_one, over_spark  # noqa: PLC0415
    from benchmarks.dbnet.network.tasks import Done  # noqa: PLC0415

    if master is not None and not on_spark:
        raise TocsinError("--master says where Spark runs, and goes with --spark")
    given = Data.of(data)
    doing = over_spark(master) if on_spark else one_by_one
    failed: list[Done] = []
    report = _measured(
        lambda progress: run(
            SCALES[scale.value],
            strategy or (),
            given,
            experiments=experiment or (),
            doing=doing,
            progress=progress,
            complain=failed.append,
        ),
        json,
        plots,
    )
    titles = {name: (one.title, one.varied) for name, one in EXPERIMENTS.items()}
    show_by_matcher(printed(report), titles)
    show_closing(report)
    if plots is not None:
        draw(report, plots)
    for done in failed:
        complain(f"{done.task.called}: {done.trace or done.fault}")
    if failed:
        complain(f"{len(failed)} of {report.parameters['simulations']} simulations failed")
        raise typer.Exit(1)


@app.command()
def spark(
    scale: Annotated[
        ScaleName, typer.Option(help="small: about two minutes; paper: 1,000,000 subscriptions.")
    ] = ScaleName.SMALL,
    json: JsonFile = None,
    plots: PlotFolder = None,
) -> None:
    """Measure matching on Spark: against a join, against the engine, in shards, and while subscriptions change."""
    from benchmarks.spark import EXPERIMENTS, SCALES, run  # noqa: PLC0415 - only when asked for
    from benchmarks.spark.plots import draw  # noqa: PLC0415

    report = _measured(lambda progress: run(SCALES[scale.value], progress), json, plots)
    show_by_experiment(report, {name: one.title for name, one in EXPERIMENTS.items()})
    if plots is not None:
        draw(report, plots)


def _measured(
    measure: Callable[[Callable[[str], None]], Report], json: Path | None, plots: Path | None
) -> Report:
    """Return what a run measured, which tells how far it is, and write it to a file if there is one."""
    from benchmarks.runner.drawing import require_matplotlib  # noqa: PLC0415 - only when asked for

    if plots is not None:
        require_matplotlib()  # told now, not after the run
    with Console(stderr=True).status("measuring") as status:
        report = measure(status.update)
    if json is not None:
        report.write(json)
    return report


def show(report: Report) -> None:
    """Print a report as a table."""
    table = Table(title=f"{report.benchmark} on one core")
    table.add_column("what")
    for heading in ("median", "best", "target"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    for one in report.measurements:
        best = one.details.get("best", one.value)
        target = "" if one.target is None else f"≥ {one.target:,.0f}"
        table.add_row(one.name, f"{one.value:,.0f}", f"{best:,.0f}", target, one.unit)
    Console().print(table)


def main() -> None:
    """Run the command line and end the process."""
    show_log()
    try:
        app(prog_name="python -m benchmarks")
    except (TocsinError, OSError) as error:
        complain(str(error) or type(error).__name__)
        sys.exit(2)


if __name__ == "__main__":
    main()
