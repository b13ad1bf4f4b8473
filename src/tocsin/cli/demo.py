"""`tocsin demo`: a year of flights, replayed against a dozen filters, a sequence and a view."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tocsin.cli import demo_spark
from tocsin.cli.flights import COUNT, SEQUENCES, SUBSCRIPTIONS, TABLE, VIEWS, flights
from tocsin.cli.terminal import shown, told
from tocsin.engine import Engine, EventClock
from tocsin.language.printer import value_text
from tocsin.model import Event, Notification, Value

_ASKED = SUBSCRIPTIONS | SEQUENCES | VIEWS
_NEWEST = 8
_BAR = 16
_FRAMES = 8  # a second


class _Replay:
    """What has been replayed so far, and how it looks."""

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
        int, typer.Option("--flights", min=1, help="How many flights to replay.")
    ] = COUNT,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Whether to match them on Spark too, as a second act.")
    ] = True,
) -> None:
    """Replay a year of flights out of New York against a dozen filters, a sequence of two flights and a view.

    A live view shows the rate, the newest notifications and the count per subscription; a summary ends it. The
    second act matches the same flights with the same filters on Spark, and compares the notifications.
    """
    console = Console(highlight=False)
    engine = Engine(clock=EventClock())
    engine.table("flights", key=TABLE)
    for name, text in _ASKED.items():
        engine.subscribe(text, id=name)
    total = min(flights_to_replay, COUNT)
    replay = _Replay(total)
    incoming = replay.watch(event for event, _ in zip(flights(), range(total), strict=False))
    with Live(replay, console=console, refresh_per_second=_FRAMES, transient=True) as live:
        live.auto_refresh = console.is_terminal
        heard = set()
        for note in engine.publish_many(incoming, batch_size=256):
            replay.take(note)
            if note.witness is None and not note.view:
                heard.add((note.subscription, note.event_ids[0]))
    console.print(counts_table(replay.counts))
    console.print(
        f"[bold]{replay.seen:,}[/] flights of 2013 against [bold]{len(engine)}[/] subscriptions: "
        f"[bold green]{replay.counts.total():,}[/] notifications at {replay.rate:,.0f} events/s."
    )
    if spark:
        demo_spark.play(console, total, heard)
    console.print(
        'Ask your own question:  echo \'{"symbol": "IBM", "price": 101.5}\' | tocsin match -s "symbol = \'IBM\' and price > 100"',
        style="dim",
        markup=False,
        soft_wrap=True,
    )


def counts_table(counts: Counter[str]) -> Table:
    """Return how often each subscription fired, as bars."""
    table = Table(box=None, pad_edge=False, expand=True)
    table.add_column("subscription", style="green", width=max(map(len, _ASKED)))
    table.add_column("fired", justify="right", width=6)
    table.add_column("", width=_BAR)
    table.add_column("what it asks", style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    most = max(counts.values(), default=1)
    for name, text in _ASKED.items():
        bar = "▇" * max(1 if counts[name] else 0, round(_BAR * counts[name] / most))
        table.add_row(name, f"{counts[name]:,}", Text(bar, style="cyan"), text)
    return table


def _line(note: Notification) -> Text:
    if note.view:
        values = told(note)
    else:
        shown_values = note.values if note.values is not None else _interesting(note.events[0])
        values = ", ".join(
            f"{name} {'-' if value is None else value_text(value)}" for name, value in shown_values.items()
        )
    return Text.assemble(
        (f"{note.subscription:<28} ", "green"), shown(values, 110), no_wrap=True, overflow="ellipsis"
    )


def _interesting(event: Event) -> dict[str, Value | None]:
    names = ("carrier", "flight", "origin", "dest", "dep_delay", "arr_delay")
    return {name: event.attributes.get(name) for name in names}
