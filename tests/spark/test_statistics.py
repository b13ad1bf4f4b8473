from __future__ import annotations

import json
import logging
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, Statistics
from tocsin.model import Kind
from tocsin.model.errors import SparkError
from tocsin.spark import statistics, statistics_worker
from tocsin.spark.event_decoding import EventLayout

GROUPS = [("city", "kind"), ("city", "kind", "data.size"), ("city", "absent")]
CITIES = ["Oslo", "Bergen", "Tromsø", 'qu"ote', ""]
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Return events in which attributes are missing, nested, of several kinds, and come together."""
    random = np.random.default_rng(seed)
    found = []
    for i in range(count):
        city = int(random.zipf(1.5)) % 5
        row: dict[str, Any] = {
            "id": i,
            "city": CITIES[city],
            "kind": f"k{city % 2}" if random.random() < 0.9 else "other",
            "price": round(float(random.normal(100, 20)), 2),
            "data": {"size": int(random.integers(4)), "big": 2**53 + int(random.integers(3))},
            "at": (START + timedelta(minutes=int(random.integers(500)))).isoformat(),
        }
        mixed = [1, 1.0, "1", True, None, 2.5, [1, 2]][int(random.integers(7))]
        row["mixed"] = mixed
        if random.random() < 0.5:
            del row["price"]
        if random.random() < 0.1:
            row[f"rare{random.integers(40)}"] = int(random.integers(3))
        found.append(row)
    return found


def payloads(spark: SparkSession, events: list[dict[str, Any]], *more: str | None) -> DataFrame:
    texts = [*(json.dumps(event) for event in events), *more]
    return spark.createDataFrame(
        [(str(i), text) for i, text in enumerate(texts)], "event_id string, body string"
    )


@pytest.mark.parametrize(("top", "bins"), [(256, 32), (3, 4)])
def test_payloads_give_the_same_statistics_as_here(spark: SparkSession, top: int, bins: int) -> None:
    events = rows(600)
    frame = payloads(spark, events).repartition(3)
    found = statistics(frame, groups=GROUPS, event_id="event_id", payload="body", top=top, bins=bins)
    assert found == Statistics.of(events, groups=GROUPS, top=top, bins=bins)
    assert len(found.attributes) > 40
    assert found.groups["absent", "city"].count == 0


def test_rows_that_are_no_events_are_counted_and_skipped(any_spark: SparkSession) -> None:
    frame = payloads(any_spark, [{"a": 1}], "{", "[1]", None, '{"a": {"b": 1}, "a.b": 2}', '{"a": "\\ud800"}')
    found = statistics(frame, payload="body")
    assert (found.events, found.refused) == (1, 5)
    assert found.attributes.keys() == {"a"}
    as_bytes = frame.selectExpr("cast(body as binary) as body")
    assert statistics(as_bytes, payload="body") == found


def columns(spark: SparkSession) -> tuple[DataFrame, list[dict[str, Any]]]:
    """Return events in columns of every type, and as dicts."""
    schema = (
        "event_id string, name string, number double, whole bigint, `dotted name` int, flag boolean, at timestamp, "
        "local timestamp_ntz, day date, amount decimal(10,2), data struct<size:int,inner:struct<x:string>>, tags array<int>"
    )
    random = np.random.default_rng(3)
    cells: list[tuple[Any, ...]] = []
    events: list[dict[str, Any]] = []
    for i in range(300):
        at = START + timedelta(hours=int(random.integers(50)))
        price = Decimal(int(random.integers(200))) / 4
        gone = random.random() < 0.3
        inner = None if random.random() < 0.2 else {"x": f"x{random.integers(3)}"}
        event: dict[str, Any] = {
            "name": None if gone else CITIES[int(random.integers(5))],
            "number": [0.0, -0.0, 2.5, float("inf")][int(random.integers(4))],
            "whole": 2**53 + int(random.integers(3)),
            "dotted name": int(random.integers(100)),
            "flag": bool(random.integers(2)),
            "at": at,
            "local": at,
            "day": date(2026, 1, 1 + int(random.integers(9))),
            "amount": price,
            "data": {"size": int(random.integers(3)), "inner": inner},
        }
        events.append(event)
        packed = (event["data"]["size"], inner and (inner["x"],))
        local = event | {"local": at.replace(tzinfo=None), "data": packed}
        cells.append((str(i), *local.values(), [1, 2]))
    return spark.createDataFrame(cells, schema), events


def test_columns_and_structs_give_the_same_statistics_as_here(spark: SparkSession) -> None:
    frame, events = columns(spark)
    groups = [("name", "flag"), ("day", "data.inner.x", "whole"), ("at", "local")]
    wanted = Statistics.of(events, groups=groups, top=5, bins=4)
    assert statistics(frame.repartition(2), groups=groups, event_id="event_id", top=5, bins=4) == wanted
    names = [f"`{name}`" for name in frame.columns if name != "event_id"]
    packed = frame.selectExpr("event_id", f"struct({', '.join(names)}) as event")
    assert statistics(packed, groups=groups, struct="event", top=5, bins=4) == wanted


def test_nan_is_absence(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1.0, "x"), (float("nan"), "x"), (None, "x")], "a double, b string")
    found = statistics(frame, groups=[("a", "b")])
    assert (found.events, found.refused) == (3, 0)
    assert found.groups["a", "b"].count == 1


def test_many_values_are_right_to_a_sixteenth_of_a_bin(spark: SparkSession) -> None:
    count, bins = 20_000, 16
    frame = spark.range(count).selectExpr("id", "(id * 7919) % 20011 as a").repartition(3)
    found = statistics(frame, top=10, bins=bins).attribute("a").of(Kind.NUMBER)
    assert (found.count, found.distinct, len(found.frequent)) == (count, count, 10)
    assert found.rest == count - 10
    values = np.sort(np.arange(count) * 7919 % 20011)
    bounds = np.array(found.bounds[1:], dtype=np.int64)
    for exact, deep in zip(
        np.searchsorted(values, bounds, side="right"), np.cumsum(found.depths), strict=True
    ):
        assert abs(int(deep) + 10 - int(exact)) <= count / bins / 32 + 10


def test_groups_come_from_the_subscriptions_and_excluded_ones_are_reported(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["city = 'Oslo' and kind = 'k1' and price > 3"] * 3 + ["city = 'Oslo' and id = 7"]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    frame = payloads(spark, rows(50))
    with caplog.at_level(logging.WARNING, logger="tocsin"):
        found = statistics(frame, subscriptions=batch, max_groups=1, payload="body")
    assert list(found.groups) == [("city", "kind")]
    assert found.groups_left_out == 1
    assert caplog.messages == [
        "the 1 most frequent groups of attributes in subscriptions are counted, 1 are not; raise `max_groups`"
    ]
    every = statistics(frame, subscriptions=[c for _, c in batch], groups=[("price", "id")], payload="body")
    assert list(every.groups) == [("id", "price"), ("city", "kind"), ("city", "id")]
    assert every.groups_left_out == 0


def test_a_worker_gives_out_its_counts_when_they_are_many(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_worker, "_HELD", 50)
    monkeypatch.setattr(statistics_worker, "_ROWS", 20)
    events = rows(100)
    batches = payloads(spark, events).selectExpr("body", "0 as row").toArrow().to_batches(max_chunksize=10)
    layout = EventLayout("row", "row", payload="body")
    given = list(statistics_worker.count(layout, (), batches))
    assert len(given) > 10
    whole = spark.createDataFrame(
        [row for batch in given for row in batch.to_pylist()], statistics_worker.COUNTS
    )
    assert whole.where("kind = 'events'").groupBy().sum("events").collect()[0][0] == 100


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"payload": "boddy"}, "no column `boddy`, which `payload` names; did you mean `body`"),
        ({"struct": "body"}, "`body` is string, not a struct"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(
    spark: SparkSession, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(SparkError, match=reason):
        statistics(payloads(spark, [{"a": 1}]), **options)  # type: ignore[arg-type]


def test_columns_without_values_have_no_statistics(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("1", [1], b"x")], "event_id string, tags array<int>, bytes binary")
    with pytest.raises(SparkError, match="no column holds values: event_id, tags, bytes"):
        statistics(frame, event_id="event_id")


def test_the_stream_is_counted_and_a_deletion_is_not(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("stock", '{"a": 1}'), ("stock", '{"a": 1, "_deleted": true}'), (None, '{"a": 1}')],
        "source string, body string",
    )
    found = statistics(frame, payload="body", stream_column="source", groups=[("$stream", "a")])
    assert (found.events, found.presence("a"), found.presence("$stream")) == (2, 1.0, 0.5)
    assert found.groups["$stream", "a"].count == 1
    columns = spark.createDataFrame([("x", 1), ("y", 1), ("x", 2)], "source string, a int")
    found = statistics(columns, stream_column="source", groups=[("$stream", "a")])
    assert found.attribute("$stream") == found.attribute("source")
    assert found.groups["$stream", "a"].distinct == 3


def test_a_stream_has_no_statistics(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SparkError, match="give a batch DataFrame, not a stream"):
        statistics(stream)
