"""The part of the demo that runs on Spark: the same flights and subscriptions."""

from __future__ import annotations

import time

import pyarrow as pa
from rich.console import Console

from tocsin.cli.flights import SUBSCRIPTIONS, flights_table
from tocsin.model.errors import SparkError, TocsinError


def replay_on_spark(console: Console, count: int, expected: set[tuple[str, str]]) -> None:
    """Match the first `count` flights on Spark, and compare the notifications with the engine's."""
    try:
        from tocsin.spark.session import local_session  # noqa: PLC0415 - part of an extra

        with console.status("Starting Spark"):
            spark = local_session(2)
    except SparkError as fault:
        console.print(f"The part on Spark is left out: {fault}", style="dim", markup=False)
        return
    from tocsin.spark import match  # noqa: PLC0415

    try:
        with console.status("The same flights and subscriptions on Spark"):
            table = flights_table().slice(0, count)
            names = pa.array([f"flight-{number}" for number in range(1, count + 1)])
            events = spark.createDataFrame(table.append_column("event_id", names))
            begun = time.perf_counter()
            notes = match(events, SUBSCRIPTIONS, time="time", stream="flights").collect()
            seconds = time.perf_counter() - begun
    finally:
        spark.stop()
    found = {(note["subscription"], note["event_id"]) for note in notes}
    if found != expected or len(found) != len(notes):
        missing, extra = len(expected - found), len(notes) - len(expected & found)
        raise TocsinError(f"Spark's notifications differ: {missing:,} are missing, {extra:,} are too many")
    console.print(
        f"On Spark, the same [bold]{count:,}[/] flights at {count / seconds:,.0f} events/s: both gave "
        f"[bold green]the same {len(found):,}[/] notifications."
    )
