"""`tocsin demo`: a year of flights, replayed against a dozen filters, a sequence and a view."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tocsin.cli.flights import COUNT, SEQUENCES, SUBSCRIPTIONS, TABLE, VIEWS, flights, flights_table
from tocsin.cli.terminal import notification_text, shortened
from tocsin.engine import Engine, EventClock
from tocsin.language.printer import value_text
from tocsin.model import Event, Notification, Value
from tocsin.model.errors import SparkError, TocsinError

_QUERIES = SUBSCRIPTIONS | SEQUENCES | VIEWS
_NEWEST = 8
_BAR = 16
_FRAMES = 8  # a second


class _Replay:
    """The progress of the replay, as a live display."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.begun = time.perf_counter()
        self.seen = 0
        self.day = ""
        self.counts: Counter[str] = Counter()
        self.newest: deque[Notification] = deque(maxlen=_NEWEST)

    @property
    def rate(self) -> float:
        return self.seen / max(time.perf_counter() - self.begun, 1e-9)

    def watch(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            self.seen += 1
            self.day = str(event.attributes["time"])[:10]
            yield event

    def take(self, note: Notification) -> None:
        self.counts[note.subscription] += 1
        self.newest.append(note)

    def __rich__(self) -> Group:
        head = Table.grid(padding=(0, 2))
        head.add_row(
            Text(self.day, style="bold cyan"),
            ProgressBar(total=self.total, completed=self.seen, width=40),
            f"{self.seen:,} of {self.total:,} flights",
            f"[bold]{self.rate:,.0f}[/] events/s",
            f"[bold green]{self.counts.total():,}[/] notifications",
        )
        lines = Group(*(_line(note) for note in reversed(self.newest)))
        return Group(head, Panel(lines, title="newest", height=_NEWEST + 2), counts_table(self.counts))


def demo(
    flights_to_replay: Annotated[
        int, typer.Option("--flights", min=1, help="The number of flights to replay.")
    ] = COUNT,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Match the same flights on Spark, too, and compare.")
    ] = True,
) -> None:
    """Replay a year of flights out of New York against a dozen filters, a sequence of two flights and a view.

    A live display shows the rate, the newest notifications and the count per subscription. Then the same flights
    are matched against the same filters on Spark, and the notifications are compared.
    """
    console = Console(highlight=False)
    engine = Engine(clock=EventClock())
    engine.table("flights", key=TABLE)
    for name, text in _QUERIES.items():
        engine.subscribe(text, id=name)
    total = min(flights_to_replay, COUNT)
    replay = _Replay(total)
    incoming = replay.watch(event for event, _ in zip(flights(), range(total), strict=False))
    with Live(replay, console=console, refresh_per_second=_FRAMES, transient=True) as live:
        live.auto_refresh = console.is_terminal
        notified = set()
        for note in engine.publish_stream(incoming, batch_size=256):
            replay.take(note)
            if note.witness is None and not note.view:
                notified.add((note.subscription, note.event_ids[0]))
    console.print(counts_table(replay.counts))
    console.print(
        f"[bold]{replay.seen:,}[/] flights of 2013 against [bold]{len(engine)}[/] subscriptions: "
        f"[bold green]{replay.counts.total():,}[/] notifications at {replay.rate:,.0f} events/s."
    )
    if spark:
        replay_on_spark(console, total, notified)
    console.print(
        'Try your own subscription:  echo \'{"symbol": "IBM", "price": 101.5}\' | tocsin match -s "symbol = \'IBM\' and price > 100"',
        style="dim",
        markup=False,
        soft_wrap=True,
    )


def counts_table(counts: Counter[str]) -> Table:
    """Return the notifications per subscription, as bars."""
    table = Table(box=None, pad_edge=False, expand=True)
    table.add_column("subscription", style="green", width=max(map(len, _QUERIES)))
    table.add_column("fired", justify="right", width=6)
    table.add_column("", width=_BAR)
    table.add_column("query", style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    most = max(counts.values(), default=1)
    for name, text in _QUERIES.items():
        bar = "▇" * max(1 if counts[name] else 0, round(_BAR * counts[name] / most))
        table.add_row(name, f"{counts[name]:,}", Text(bar, style="cyan"), text)
    return table


def _line(note: Notification) -> Text:
    """Return one line for a notification: the subscription and its values."""
    if note.view:
        values = notification_text(note)
    else:
        shown_values = note.values if note.values is not None else _interesting(note.events[0])
        values = ", ".join(
            f"{name} {'-' if value is None else value_text(value)}" for name, value in shown_values.items()
        )
    return Text.assemble(
        (f"{note.subscription:<28} ", "green"), shortened(values, 110), no_wrap=True, overflow="ellipsis"
    )


def _interesting(event: Event) -> dict[str, Value | None]:
    names = ("carrier", "flight", "origin", "dest", "dep_delay", "arr_delay")
    return {name: event.attributes.get(name) for name in names}


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
