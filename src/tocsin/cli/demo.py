"""`tocsin demo`: a year of flights, replayed against named subscriptions and a million travellers' alerts."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Final

import pyarrow as pa
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tocsin.cli.alerts import ALERTS, MILLION, travellers_alerts
from tocsin.cli.console import new_console
from tocsin.cli.demo_spark import QUERIES, STREAM, compared_columns, replay_on_spark
from tocsin.cli.flights import COUNT, TABLE, flights_table
from tocsin.cli.terminal import notification_text, shortened
from tocsin.engine import Engine, EventClock
from tocsin.engine.notifications import Notifications
from tocsin.language.printer import value_text
from tocsin.model import Event, Notification, Value

_BATCH: Final = 4_000
_NEWEST: Final = 8
_BAR: Final = 16
_FRAMES: Final = 8  # a second
_OWN_DATA: Final = (
    """  echo '{"symbol": "IBM", "price": 101.5}' | tocsin match -s "symbol = 'IBM' and price > 100\"""",
    '  tocsin match events.parquet -s "price > 100" -o notifications.jsonl     (or .csv, .jsonl; or -f FILE)',
    '  tocsin match events.jsonl --template "symbol = :s and price > :p" --parameters alerts.csv',
)


class _Replay:
    """The progress of the replay, as a live display, and what is compared of the notifications so far."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.begun = time.perf_counter()
        self.seen = 0
        self.day = ""
        self.counts: Counter[str] = Counter()
        self.newest: list[Notification] = []
        self._notifications: list[pa.Table] = []

    @property
    def rate(self) -> float:
        return self.seen / max(time.perf_counter() - self.begun, 1e-9)

    @property
    def notifications(self) -> pa.Table:
        """Return what is compared of all notifications."""
        return pa.concat_tables(self._notifications)

    def take(self, part: pa.Table, notifications: Notifications) -> None:
        """Count a part of the flights and its notifications."""
        from pyarrow import compute as pc  # noqa: PLC0415 - it takes a while to load

        found = compared_columns(notifications, self.seen)
        names = found.column("subscription")
        for one in pc.value_counts(names.filter(pc.is_in(names, pa.array(QUERIES)))).to_pylist():
            self.counts[one["values"]] += one["counts"]
        for kind in ALERTS:
            self.counts[kind.name] += pc.sum(pc.starts_with(names, f"{kind.name} ")).as_py() or 0
        self._notifications.append(found)
        self.newest = [*self.newest, *notifications[-_NEWEST:]][-_NEWEST:]
        self.seen += part.num_rows
        self.day = str(part.column("time")[-1].as_py())[:10]

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
    alerts: Annotated[
        int, typer.Option(min=0, help="The number of travellers' alerts to generate.")
    ] = MILLION,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Match the same flights on Spark, too, and compare.")
    ] = True,
) -> None:
    """Replay a year of flights out of New York against a million generated alerts and 14 named subscriptions.

    The named ones are a dozen filters, a sequence of two flights and a view. A live display shows the rate, the newest
    notifications and the count per subscription. Then the same flights are matched against the same subscriptions on
    Spark, and the notifications are compared.
    """
    console = new_console()
    flights = flights_table()
    replayed = flights.slice(0, flights_to_replay)
    engine = Engine(clock=EventClock())
    engine.table(STREAM, key=TABLE)
    subscribed = _subscribe(console, engine, flights, alerts)
    replay = _Replay(replayed.num_rows)
    with Live(replay, console=console, refresh_per_second=_FRAMES, transient=True) as live:
        live.auto_refresh = console.is_terminal
        for begin in range(0, replayed.num_rows, _BATCH):
            part = replayed.slice(begin, _BATCH)
            replay.take(part, engine.publish_many(part, stream=STREAM, time="time"))
    rate = replay.rate
    console.print(counts_table(replay.counts))
    console.print(
        f"[bold]{replay.seen:,}[/] flights of 2013 against [bold]{len(engine):,}[/] subscriptions, which were loaded in "
        f"{subscribed:.1f} s: [bold green]{replay.counts.total():,}[/] notifications at [bold]{rate:,.0f}[/] events/s.",
        soft_wrap=True,
    )
    del engine
    if spark:
        replay_on_spark(console, flights, replayed, alerts, replay.notifications)
    console.print("Now with your own data:", style="bold")
    for line in _OWN_DATA:
        console.print(line, style="dim", markup=False, soft_wrap=True)


def _subscribe(console: Console, engine: Engine, flights: pa.Table, alerts: int) -> float:
    """Subscribe the named queries and the alerts; return the seconds that it took."""
    begun = time.perf_counter()
    for name, text in QUERIES.items():
        engine.subscribe(text, id=name)
    with console.status("Subscribing") as status:
        for kind, rows in travellers_alerts(flights, alerts):
            status.update(f"Subscribing {rows.num_rows:,} alerts: {kind.text}")
            engine.subscribe_many(kind.text, rows, id=kind.id)
    return time.perf_counter() - begun


def counts_table(counts: Counter[str]) -> Table:
    """Return the notifications per named subscription and per kind of alert, as bars."""
    table = Table(box=None, pad_edge=False, expand=True)
    table.add_column("subscription", style="green", width=max(map(len, QUERIES)))
    table.add_column("fired", justify="right", width=7)
    table.add_column("", width=_BAR)
    table.add_column("query", style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    shown = QUERIES | {kind.name: kind.text for kind in ALERTS}
    for names in (QUERIES, [kind.name for kind in ALERTS]):
        most = max((counts[name] for name in names), default=0) or 1
        for name in names:
            bar = "▇" * max(1 if counts[name] else 0, round(_BAR * counts[name] / most))
            table.add_row(name, f"{counts[name]:,}", Text(bar, style="cyan"), shown[name])
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
