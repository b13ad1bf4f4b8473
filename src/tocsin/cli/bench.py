"""`tocsin bench replay`: measure a matcher on your own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tocsin.cli.options import Threads, matcher_options, to_be_written
from tocsin.cli.output import results, write_json
from tocsin.matching.registry import thread_options

app = typer.Typer(help="Measure a matcher on your own files.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `bench` a group although it has one command."""


@app.command()
def replay(
    subs: Annotated[
        Path, typer.Argument(help="Subscriptions, as 32-bit integers.", exists=True, dir_okay=False)
    ],
    events: Annotated[Path, typer.Argument(help="Events, as 32-bit integers.", exists=True, dir_okay=False)],
    matcher: Annotated[str, typer.Option(help="The matcher to measure.")],
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the matcher, as `capacity=10`; may be given several times.",
        ),
    ] = None,
    threads: Threads = 1,
    json: Annotated[
        Path | None,
        typer.Option(
            help="Write the figures to this file, - for standard output.",
            dir_okay=False,
            callback=to_be_written,
        ),
    ] = None,
) -> None:
    """Measure a matcher on a pair of interchange files, on which other systems can be measured too."""
    from tocsin.replay.replay import replay  # noqa: PLC0415 - only when asked for

    with Console(stderr=True).status("reading") as status:
        made_with = {**matcher_options(option or ()), **thread_options(matcher, threads)}
        measured = replay(subs, events, matcher, status.update, made_with)
    table = Table(title=f"{subs.name} and {events.name}")
    table.add_column("what")
    table.add_column("figure", justify="right")
    figures = msgspec.to_builtins(measured)
    shown = {**figures, "options": " ".join(f"{name}={v}" for name, v in measured.options.items()) or "none"}
    for name, figure in shown.items():
        table.add_row(name, f"{figure:,.3f}" if isinstance(figure, float) else str(figure))
    results(json).print(table)
    if json is not None:
        write_json(json, figures)
