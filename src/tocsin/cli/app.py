"""The commands and their exit codes.

As with `grep` and `diff`: 0 for yes or success, 1 for no or skipped input, 2 for an error; 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tocsin import __version__
from tocsin.cli import INTERRUPTED, bench, spark
from tocsin.cli.apply import apply
from tocsin.cli.backtest import backtest
from tocsin.cli.check import check
from tocsin.cli.compile import compile_
from tocsin.cli.demo import demo
from tocsin.cli.dry_run import dry_run
from tocsin.cli.explain import explain
from tocsin.cli.match import match
from tocsin.cli.parse import parse
from tocsin.cli.plan import plan
from tocsin.cli.sample import sample
from tocsin.cli.simulate import simulate
from tocsin.cli.terminal import REPORTED, complain, error_text, show_log

app = typer.Typer(
    name="tocsin",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (match, check, explain, plan):
    app.command()(command)
app.command("test")(dry_run)
app.command()(backtest)
app.command("compile")(compile_)
for command in (apply, parse, sample, demo, simulate):
    app.command()(command)
app.add_typer(spark.app, name="spark")
app.add_typer(bench.app, name="bench")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"tocsin {__version__}")


def _print_version(requested: bool) -> None:
    if requested:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Match every event against stored subscriptions: filters, sequences of events, and queries over tables."""
    show_log()


def main() -> None:
    """Run the command line and end the process."""
    try:
        app()
    except REPORTED as error:
        complain(error_text(error))
        sys.exit(2)
    except KeyboardInterrupt:  # while no command ran yet, or none any more
        sys.exit(INTERRUPTED)
