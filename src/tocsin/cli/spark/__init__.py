"""`tocsin spark`: matching streams and histories that are too large for one process."""

from __future__ import annotations

import typer

from tocsin.cli.spark.match import match
from tocsin.cli.spark.past_events import backtest, collect_statistics
from tocsin.cli.spark.streaming import grow, publish, run

app = typer.Typer(
    help="Match streams and histories of events on Spark; the notifications are the same as from `tocsin match`.",
    no_args_is_help=True,
)
for command in (match, backtest, run, grow, publish):
    app.command()(command)
app.command("stats")(collect_statistics)
