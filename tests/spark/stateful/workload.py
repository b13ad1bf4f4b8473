"""Subscriptions of all kinds, and events of the streams that they read, as rows of a DataFrame and as the engine takes them."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.sharding.shards import Told, normal, told
from tests.sharding.test_equivalence import HOME, KEYED, VIEWS
from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.errors import EventError

COLUMNS = "event_id string, of string, t long, g int, x double, y int, w string"
TABLES = {"t": "g", "p": "g"}
FILTERS = ["g = 1 and x > 2", "select x, y from t where x >= 1", "from p where g = 1", "w is missing"]
TEXTS = {
    f"{kind}{number}": text
    for kind, texts in (("keyed", KEYED), ("home", HOME), ("view", VIEWS), ("filter", FILTERS))
    for number, text in enumerate(texts)
}
Row = tuple[str, str, int, int | None, float | None, int | None, str | None]


def events(seed: int, count: int, *, begin: int = 0) -> list[Row]:
    """Return rows in the order of their ends, none at the same time; the fields of some are null."""
    random = Random(seed)  # noqa: S311 - a workload
    found: list[Row] = []
    end = begin
    for number in range(count):
        end += random.choice([1, 1, 1, 3])
        given: list[Any] = [
            random.randint(0, 3),
            random.randint(0, 8) / 2,
            random.randint(0, 3),
            random.choice("ab"),
        ]
        given = [None if random.random() < 0.06 else value for value in given]
        found.append((f"e{begin}-{number}", random.choice("ssssstp"), end, *given))
    return found


def frame(spark: SparkSession, rows: list[Row], partitions: int = 3) -> DataFrame:
    """Return the events in no order."""
    mixed = rows.copy()
    Random(1).shuffle(mixed)  # noqa: S311
    return spark.createDataFrame(mixed, COLUMNS).repartition(partitions)


def engine(out_of_orderness: int = 0) -> Engine:
    """Return an engine with the tables."""
    made = Engine(clock=EventClock(), out_of_orderness=out_of_orderness, lateness=10**15)
    for name, key in TABLES.items():
        made.table(name, key=key)
    return made


def publish(to: Engine, rows: list[Row]) -> Told:
    """Return the notifications of an engine that is given the events in the order of their end."""
    found: Told = Told()
    for id_, stream, end, *values in rows:
        given = {name: value for name, value in zip("gxyw", values, strict=True) if value is not None}
        with suppress(EventError):  # it is no row of its table
            found += told(to.publish(given, stream=stream, time=end, id=id_))
    return found


def expected(rows: list[Row]) -> Told:
    """Return an engine's notifications of all subscriptions."""
    made = engine()
    for id_, text in TEXTS.items():
        made.subscribe(text, id=id_)
    return publish(made, rows)


def notified(notes: DataFrame) -> Told:
    """Return notifications as `expected` does."""
    found: Told = Told()
    for row in notes.collect():
        texts = (None if row[name] is None else normal(row[name]) for name in ("values", "old", "new"))
        end = row["time"] if row["event_ids"] else None
        found[row["subscription"], tuple(row["event_ids"]), row["start"], end, *texts] += 1
    return found
