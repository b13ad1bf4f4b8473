"""`tocsin bench`: measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tocsin.bench import Report

__all__ = ["app"]

app = typer.Typer(
    help="Measure: each command prints a table and, on request, writes JSON.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Keep `bench` a group, however few its commands."""


@app.command()
def language(
    filters: Annotated[int, typer.Option(min=1, help="How many texts to read.")] = 20_000,
    rows: Annotated[int, typer.Option(min=1, help="How many rows to give the template.")] = 1_000_000,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file.", dir_okay=False)] = None,
) -> None:
    """Measure how many subscriptions a second are read: texts one by one, templates by the column."""
    from tocsin.bench.language import run  # noqa: PLC0415 - only when asked for

    console = Console(stderr=True)
    with console.status("measuring") as status:
        report = run(filters, rows, lambda name: status.update(f"measuring: {name}"))
    show(report)
    if json is not None:
        report.write(json)


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
