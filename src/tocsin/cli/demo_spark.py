"""The second half of `tocsin demo`: the same flights and subscriptions on Spark, and a comparison of the notifications."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct
from rich.console import Console

from tocsin.cli.alerts import travellers_alerts
from tocsin.cli.flights import SEQUENCES, SUBSCRIPTIONS, TABLE, VIEWS
from tocsin.engine.notifications import Notifications
from tocsin.model.errors import SparkError, TocsinError

STREAM: Final = "flights"
QUERIES: Final = SUBSCRIPTIONS | SEQUENCES | VIEWS
COLUMNS: Final = ("row", "subscription", "start", "values", "answer")
"""What is compared of a notification: the flight that caused it, since when a sequence had waited, selected values, answers."""

_CORES: Final = 2


class SparkReplay(Struct, frozen=True):
    """The notifications of a replay on Spark, and the seconds of building the index and of matching."""

    notifications: pa.Table
    building: float
    matching: float


def compared_columns(notifications: Notifications, first_row: int) -> pa.Table:
    """Return the COLUMNS of an engine's notifications of a part of the flights, which begins at `first_row`."""
    from pyarrow import compute as pc  # noqa: PLC0415 - it takes a while to load

    found = notifications.to_arrow().select(COLUMNS)
    return found.set_column(0, "row", pc.add(found.column("row"), first_row))


def replay_on_spark(
    console: Console, flights: pa.Table, replayed: pa.Table, alerts: int, expected: pa.Table
) -> None:
    """Match the same flights with the same subscriptions on Spark, and compare the notifications with the engine's."""
    try:
        from tocsin.spark.session import local_session  # noqa: PLC0415 - part of an extra

        with console.status("Starting Spark"):
            spark = local_session(_CORES)
    except SparkError as fault:
        console.print(f"The part on Spark is left out: {fault}", style="dim", markup=False)
        return
    try:
        with TemporaryDirectory(prefix="tocsin-demo-") as folder:
            found = _match(console, spark, flights, replayed, alerts=alerts, folder=Path(folder))
    finally:
        spark.stop()
    compare(found.notifications, expected)
    count, of_each = found.notifications.num_rows, _by_kind(found.notifications)
    console.print(
        f"On Spark, the same [bold]{replayed.num_rows:,}[/] flights at "
        f"[bold]{replayed.num_rows / found.matching:,.0f}[/] events/s, with an index that was built in {found.building:.1f} s: "
        f"both gave [bold green]the same {count:,}[/] notifications, {of_each['sequence']:,} of them of the sequence and "
        f"{of_each['view']:,} of the view.",
        soft_wrap=True,
    )


def _match(
    console: Console, spark: Any, flights: pa.Table, replayed: pa.Table, *, alerts: int, folder: Path
) -> SparkReplay:
    """Build an index of all subscriptions, and match the flights with it."""
    from tocsin.index import SubscriptionIndex  # noqa: PLC0415 - not needed before
    from tocsin.spark import match  # noqa: PLC0415

    begun = time.perf_counter()
    with console.status("Building the index of the same subscriptions"):
        index = SubscriptionIndex(folder)
        index.table(STREAM, key=TABLE)
        for name, text in QUERIES.items():
            index.subscribe(text, id=name)
        for kind, rows in travellers_alerts(flights, alerts):
            index.subscribe_many(kind.text, rows, id=kind.id)
        index.publish()
    building = time.perf_counter() - begun
    with console.status("The same flights and subscriptions on Spark"):
        names = pa.array(range(replayed.num_rows)).cast(pa.string())
        events = spark.createDataFrame(replayed.append_column("event_id", names))
        begun = time.perf_counter()
        found = match(events, index, time="time", stream=STREAM, values=True)
        told = found.select("event_id", "subscription", "start", "values", "old", "new").toArrow()
        matching = time.perf_counter() - begun
    return SparkReplay(_with_answers(told), building, matching)


def _with_answers(told: pa.Table) -> pa.Table:
    """Return Spark's notifications in the COLUMNS of the engine's."""
    from pyarrow import compute as pc  # noqa: PLC0415 - it takes a while to load

    old, new = (pc.fill_null(told.column(name), "null") for name in ("old", "new"))
    is_view = pc.is_in(told.column("subscription"), pa.array(VIEWS))
    answer = pc.binary_join_element_wise('{"old":', old, ',"new":', new, "}", "")
    columns = (
        told.column("event_id").cast(pa.int64()),
        told.column("subscription"),
        told.column("start").cast(pa.int64()),
        told.column("values"),
        pc.if_else(is_view, answer, pa.scalar(None, pa.string())),
    )
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def _by_kind(notifications: pa.Table) -> dict[str, int]:
    from pyarrow import compute as pc  # noqa: PLC0415 - it takes a while to load

    ids = notifications.column("subscription")
    return {
        kind: pc.sum(pc.is_in(ids, pa.array(names))).as_py() or 0
        for kind, names in (("sequence", SEQUENCES), ("view", VIEWS))
    }


def compare(found: pa.Table, expected: pa.Table) -> None:
    """Raise `TocsinError` unless both have the same notifications."""
    by = [("row", "ascending"), ("subscription", "ascending"), ("start", "ascending")]
    one, other = (table.combine_chunks().sort_by(by) for table in (found, expected))
    if not one.equals(other.cast(one.schema)):
        told, wanted = (Counter(zip(*table.to_pydict().values(), strict=True)) for table in (one, other))
        missing, extra = wanted - told, told - wanted
        ids = ", ".join(sorted({str(note[1]) for note in (*missing, *extra)})[:3])
        raise TocsinError(
            f"Spark's notifications differ: {missing.total():,} are missing, {extra.total():,} are too many (of {ids})"
        )
