"""The demo's second act: the same flights and subscriptions on Spark."""

from __future__ import annotations

import time

import pyarrow as pa
from rich.console import Console

from tocsin.cli.flights import SUBSCRIPTIONS, flights_table
from tocsin.model.errors import SparkError, TocsinError


def play(console: Console, count: int, told: set[tuple[str, str]]) -> None:
    """Match the first `count` flights on Spark, and say whether the notifications are those that the engine told."""
    try:
        from tocsin.spark.session import local_session  # noqa: PLC0415 - part of an extra

        with console.status("The second act: starting Spark"):
            spark = local_session(2)
    except SparkError as fault:
        console.print(f"No second act: {fault}", style="dim", markup=False)
        return
    from tocsin.spark import match  # noqa: PLC0415

    try:
        with console.status("The second act: the same flights and subscriptions on Spark"):
            table = flights_table().slice(0, count)
            names = pa.array([f"flight-{number}" for number in range(1, count + 1)])
            events = spark.createDataFrame(table.append_column("event_id", names))
            begun = time.perf_counter()
            notes = match(events, SUBSCRIPTIONS, time="time", stream="flights").collect()
            seconds = time.perf_counter() - begun
    finally:
        spark.stop()
    found = {(note["subscription"], note["event_id"]) for note in notes}
    if found != told or len(found) != len(notes):
        missing, more = len(told - found), len(notes) - len(told & found)
        raise TocsinError(
            f"Spark tells otherwise: {missing:,} notifications are missing, {more:,} are too many"
        )
    console.print(
        f"On Spark, the same [bold]{count:,}[/] flights at {count / seconds:,.0f} events/s: both gave "
        f"[bold green]the same {len(found):,}[/] notifications."
    )
