"""The commands and how they end: 0 if all went well, 1 if not, 2 if the command itself was wrong."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from tocsin import __version__
from tocsin.cli import bench, parse
from tocsin.model.errors import TocsinError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tocsin",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("parse")(parse.parse)
app.add_typer(bench.app, name="bench")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"tocsin {__version__}")


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Leave standing questions behind, and hear at once and exactly what events answer them."""


def main() -> None:
    """Run the command line and end the process."""
    try:
        app()
    except TocsinError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)
