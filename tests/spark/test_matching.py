"""`match` on Spark: the same notifications as the engine's, batch and streaming, sharded or not, however laid out."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from tocsin import Engine
from tocsin.engine import ManualClock
from tocsin.errors import SavedIndexError, SparkError, SubscriptionError, TocsinError
from tocsin.index import SubscriptionIndex
from tocsin.spark import FromTemplate, dead_letters, event_columns, match

Pair = tuple[str, str]
NAMES = ("a", "b", "c", "d")
SCHEMA = pa.schema(
    [("event_id", pa.string()), ("at", pa.int64())]
    + [(name, pa.int64()) for name in NAMES]
    + [("word", pa.string()), ("x", pa.float64())]
)


def workload(seed: int) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Subscriptions of every shape that an index places differently, and events that satisfy some."""
    chance = random.Random(seed)  # noqa: S311 - a workload

    def predicate() -> str:
        name, value = chance.choice(NAMES), chance.randint(0, 5)
        forms = [
            f"{name} = {value}",
            f"{name} = {value}",
            f"{name} > {value}",
            f"{name} in ({value}, {value + 2})",
            f"{name} not in ({value})",
            f"{name} is missing",
            f"word like '%{chance.choice('xyz')}'",
            f"word = '{chance.choice('xyz')}'",
            f"x < {name} + {value / 2}",
        ]
        return chance.choice(forms)

    def condition() -> str:
        joined = " and ".join(predicate() for _ in range(chance.randint(1, 3)))
        return joined if chance.random() < 0.7 else f"{joined} or {predicate()}"

    subscriptions = {f"s{number}": condition() for number in range(60)}
    subscriptions["of stocks"] = f"select a, b from stock where {condition()}"
    subscriptions["of bonds"] = f"from bond where {condition()}"
    events = []
    for number in range(120):
        event: dict[str, Any] = {name: chance.randint(0, 5) for name in NAMES if chance.random() < 0.7}
        if chance.random() < 0.6:
            event["word"] = chance.choice(["x", "y", "axy", "ünx"])
        event["x"] = chance.choice([0.5, 3.25, 2.0])
        events.append({"event_id": f"e{number}", "at": number, **event})
    return subscriptions, events


def expected(subscriptions: Mapping[str, str], events: list[dict[str, Any]]) -> set[Pair]:
    """Return the engine's notifications of the events, by subscription and event."""
    engine = Engine(matcher="oracle", clock=ManualClock(0))
    for name, text in subscriptions.items():
        engine.subscribe(text, id=name)
    return {
        (note.subscription, event["event_id"])
        for event in events
        for note in engine.publish(event, stream="stock", time=event["at"])
    }


def columns(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(events, schema=SCHEMA))


def structs(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    frame = columns(spark, events)
    return frame.select("event_id", "at", functions.struct(*frame.columns).alias("event"))


def payloads(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    rows = [(event["event_id"], event["at"], json.dumps(event)) for event in events]
    return spark.createDataFrame(rows, "event_id string, at long, body string")


def binaries(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    return payloads(spark, events).withColumn("body", functions.col("body").cast("binary"))


LAYOUTS: dict[str, tuple[Callable[[SparkSession, list[dict[str, Any]]], DataFrame], dict[str, Any]]] = {
    "columns": (columns, {}),
    "struct": (structs, {"struct": "event"}),
    "text": (payloads, {"payload": "body"}),
    "binary": (binaries, {"payload": "body"}),
}


def pairs(notes: DataFrame) -> set[Pair]:
    """Return the subscriptions and events of notifications, which must not repeat."""
    rows = [(row["subscription"], row["event_id"]) for row in notes.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_batch_has_the_engines_notifications(spark: SparkSession, name: str, shards: int) -> None:
    subscriptions, events = workload(shards)
    make, layout = LAYOUTS[name]
    notes = match(make(spark, events), subscriptions, time="at", stream="stock", shards=shards, **layout)
    assert notes.columns == ["subscription", "event_id", "time", "generation"]
    assert pairs(notes) == expected(subscriptions, events)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", ["columns", "text"])
def test_a_stream_has_the_engines_notifications(
    spark: SparkSession, tmp_path: Path, name: str, shards: int
) -> None:
    subscriptions, events = workload(10 + shards)
    make, layout = LAYOUTS[name]
    for begin in range(0, len(events), 40):
        part = make(spark, events[begin : begin + 40]).coalesce(1)
        part.write.mode("append").parquet(str(tmp_path / "events"))
    schema = make(spark, events).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    notes = match(stream, subscriptions, time="at", stream="stock", shards=shards, keep=[], **layout)
    assert notes.isStreaming
    run(notes, tmp_path)
    assert pairs(spark.read.parquet(str(tmp_path / "notes"))) == expected(subscriptions, events)


def run(notes: DataFrame, folder: Path) -> None:
    """Write to `notes` what there is now."""
    writer = notes.writeStream.format("parquet").option("path", str(folder / "notes"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None


def test_a_stream_follows_its_index_and_replays_batches_with_their_generation(
    any_spark: SparkSession, tmp_path: Path
) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=2)
    index.subscribe("a > 2", id="first")
    index.publish()
    schema = "event_id string, a long"
    (tmp_path / "events").mkdir()
    stream = any_spark.readStream.schema(schema).parquet(str(tmp_path / "events"))

    def send(*values: int) -> None:
        rows = [(f"{value}-{number}", value) for number, value in enumerate(values)]
        any_spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(
            str(tmp_path / "events")
        )

    def notified() -> list[tuple[str, str, int]]:
        rows = any_spark.read.parquet(str(tmp_path / "notes")).collect()
        return sorted((row["subscription"], row["event_id"], row["generation"]) for row in rows)

    send(1, 3)
    run(match(stream, tmp_path / "index"), tmp_path)
    assert notified() == [("first", "3-1", 1)]
    index.subscribe("a = 5", id="second")
    index.unsubscribe("first")
    index.publish()
    send(5)
    run(match(stream, str(tmp_path / "index")), tmp_path)
    assert notified() == [("first", "3-1", 1), ("second", "5-0", 2)]
    # As after a crash between the sink's work and the checkpoint's commit, with the index changed meanwhile.
    for commit in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        commit.unlink()
    for commit in (tmp_path / "notes" / "_spark_metadata").glob("*1*"):
        commit.unlink()
    index.unsubscribe("second")
    index.subscribe("true", id="third")
    index.publish()
    send(7)
    run(match(stream, tmp_path / "index"), tmp_path)
    assert notified() == [("first", "3-1", 1), ("second", "5-0", 2), ("third", "7-0", 3)]


def test_columns_kept_values_selected_and_faults(any_spark: SparkSession) -> None:
    rows = [("e1", '{"a": 1}', 10), ("e2", "{oops", 20), ("e3", '{"a": 2}', 30), (None, '{"a": 2}', 40)]
    events = any_spark.createDataFrame(rows, "id string, body string, colour int")
    subscriptions = {"x": "select a, a + 1 as more from s where a > 0"}
    notes = match(
        events,
        subscriptions,
        event_id="id",
        payload="body",
        stream="s",
        keep=["colour"],
        values=True,
        faults=True,
    )
    found = sorted(notes.collect(), key=lambda row: row["colour"])
    assert [(row["subscription"], row["event_id"], row["values"], row["colour"]) for row in found] == [
        ("x", "e1", '{"a":1,"more":2}', 10),
        (None, "e2", None, 20),
        ("x", "e3", '{"a":2,"more":3}', 30),
        (None, None, None, 40),
    ]
    assert [row["reason"] for row in found][1::2] == [
        "not JSON: object keys must be strings (byte 1): {oops",
        "it has no event id",
    ]
    letters = dead_letters(events, event_id="id", payload="body", keep=["body"]).collect()
    assert [(row["event_id"], row["body"]) for row in letters] == [("e2", "{oops"), (None, '{"a": 2}')]


def test_time_is_of_the_column_s_type_and_decides_on_validity(any_spark: SparkSession) -> None:
    rows = [("e1", "2025-12-31T23:59:59Z", 1), ("e2", "2026-01-01T00:00:00Z", 1), ("e3", None, 1)]
    events = any_spark.createDataFrame(rows, "event_id string, at string, a int").withColumn(
        "at", functions.to_timestamp("at")
    )
    subscriptions = any_spark.createDataFrame(
        [
            ("x", "a = 1", None, "2026-01-01T00:00:00Z"),
            ("y", "a = 1", None, None),
            ("z", "a = =", None, None),
        ],
        "id string, text string, valid_from string, valid_until string",
    )
    errors: list[TocsinError] = []
    notes = match(events, subscriptions, time="at", on_error=errors.append)
    assert notes.schema["time"].dataType.simpleString() == "timestamp"
    assert pairs(notes) == {("x", "e1"), ("y", "e1"), ("y", "e2")}
    assert ["z" in str(error) for error in errors] == [True]
    assert pairs(match(events, subscriptions, on_error=errors.append)) == {
        ("y", "e1"),
        ("y", "e2"),
        ("y", "e3"),
    }


def test_subscriptions_come_in_every_form(any_spark: SparkSession, tmp_path: Path) -> None:
    events = any_spark.createDataFrame(
        [("e1", "IBM", 5), ("e2", "HP", 9)], "event_id string, s string, p int"
    )
    rows = any_spark.createDataFrame(
        [("IBM", 3, "ibm"), ("HP", 10, "hp"), (None, 1, "bad")], "s string, p int, n string"
    )
    template = FromTemplate("s = :s and p > :p", rows, id="n")
    assert pairs(match(events, template, on_error=lambda _: None)) == {("ibm", "e1")}
    assert len(pairs(match(events, FromTemplate("p > :p", [{"p": 1}])))) == 2
    (tmp_path / "subs.txt").write_text("ibm: s = 'IBM'\nbad: s = =\nhp:\n  s = 'HP'\n")
    errors: list[TocsinError] = []
    assert pairs(match(events, tmp_path / "subs.txt", on_error=errors.append)) == {
        ("ibm", "e1"),
        ("hp", "e2"),
    }
    assert str(errors[0]).startswith(f"{tmp_path}/subs.txt:2: subscription `bad`")
    engine = Engine()
    engine.subscribe("p > 8", id="high")
    assert pairs(match(events, engine.subscriptions())) == {("high", "e2")}
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("p > 8", id="high")
    assert pairs(match(events, index)) == {("high", "e2")}
    index.subscribe("p > 1", id="low")
    index.publish()
    assert len(pairs(match(events, str(tmp_path / "index")))) == 3
    assert len(pairs(match(events, tmp_path / "index", generation=1))) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event_id": "even_id"}, "did you mean `event_id`?"),
        ({"time": "word"}, "to_timestamp"),
        ({"time": "when"}, "no column `when`"),
        ({"payload": "a"}, "strings or binary"),
        ({"struct": "a"}, "not a struct"),
        ({"payload": "word", "struct": "s"}, "give one of them"),
        ({"stream": "x", "stream_column": "word"}, "either `stream`"),
        ({"keep": ["time"]}, "rename"),
        ({"keep": "word"}, r"give \['word'\]"),
        ({"keep": ["wort"]}, "did you mean `word`?"),
        ({"matcher": "dinamic"}, "did you mean `dynamic`?"),
    ],
)
def test_invalid_options_are_refused_before_anything_runs(
    spark: SparkSession, options: dict[str, Any], message: str
) -> None:
    events = spark.createDataFrame(
        [("e1", 1, "w", 5, (1,))], "event_id string, a int, word string, time int, s struct<x: int>"
    )
    with pytest.raises(TocsinError, match=message):
        match(events, {"x": "a = 1"}, **options)


def test_a_folder_without_an_index_is_refused(any_spark: SparkSession, tmp_path: Path) -> None:
    events = any_spark.createDataFrame([("e1", 1)], "event_id string, a int")
    SubscriptionIndex(tmp_path / "index", shards=2)
    with pytest.raises(SavedIndexError, match="nothing was published"):
        match(events, tmp_path / "index")
    with pytest.raises(SparkError, match="2 shards, not 4"):
        match(events, tmp_path / "index", shards=4)
    with pytest.raises(SubscriptionError, match="there is no file"):
        match(events, tmp_path / "nothing")
    with pytest.raises(SparkError, match="no column `text`"):
        match(events, any_spark.createDataFrame([("x",)], "id string"))
    with pytest.raises(SparkError, match="no subscription could be read"):
        match(events, {"x": "a ="}, on_error=lambda _: None)


def test_columns_may_have_any_name_and_any_type(any_spark: SparkSession) -> None:
    events = any_spark.sql(
        "select 'e1' as `an id`, 1 as `a.b`, 2 as `A.B`, 3 as `x``y`, make_interval(1) as span, "
        "interval 1 month as months, named_struct('f', 1, 'f', 2) as twice, timestamp'2026-01-01' as `when.at`"
    )
    subscriptions = {"low": "a.b = 1", "high": '"A.B" = 2', "tick": '"x`y" = 3', "none": "span is present"}
    for shards in (1, 2):
        notes = match(
            events, subscriptions, event_id="an id", time="when.at", keep=["a.b"], values=True, shards=shards
        )
        rows = {(row["subscription"], row["event_id"], row["a.b"]) for row in notes.collect()}
        assert rows == {("low", "e1", 1), ("high", "e1", 1), ("tick", "e1", 1)}
    assert dead_letters(events, event_id="an id").count() == 0
    for wrong, message in [
        (events.withColumn("__tocsin_time", functions.lit(1)), "Tocsin's own"),
        (events.select("*", events["`x``y`"]), "two columns"),
    ]:
        with pytest.raises(SparkError, match=message):
            match(wrong, subscriptions, event_id="an id")
    with pytest.raises(SparkError, match="cast `span`"):
        match(events, subscriptions, event_id="an id", keep=["span"])
    with pytest.raises(SparkError, match="a stream's name is a string"):
        match(events, subscriptions, event_id="an id", stream_column="a.b")


def test_the_query_s_time_is_not_in_the_code_that_spark_generates(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    events = spark.range(10).selectExpr("cast(id as string) as event_id", "id as a").repartition(1)
    layout = event_columns.resolve_layout(events)
    prepared, _ = event_columns.select_columns(events, layout, ())
    prepared.explain("codegen")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("/*")]  # not the plan
    code = "\n".join(lines)
    assert "processNext" in code
    assert str(int(time.time()) // 10_000) not in code


def test_in_foreach_batch_the_micro_batch_decides_on_the_generation(
    spark: SparkSession, tmp_path: Path
) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="before")
    index.publish()
    spark.createDataFrame([("e1", 1, 2)], "event_id string, a int, b int").write.parquet(
        str(tmp_path / "events")
    )
    stream = spark.readStream.schema("event_id string, a int, b int").parquet(str(tmp_path / "events"))
    notified: list[list[tuple[str, int]]] = []

    def each(batch: DataFrame, _: int) -> None:
        notes = match(batch, tmp_path / "index")
        index.subscribe("b = 2", id=f"after {len(notified)}")  # with a new attribute
        index.publish()
        both = [notes, match(batch, tmp_path / "index")]
        notified.extend([(row["subscription"], row["generation"]) for row in one.collect()] for one in both)

    for _ in range(2):
        writer = stream.writeStream.foreachBatch(each).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()
        assert query.exception() is None
        for commit in (tmp_path / "checkpoint" / "commits").glob("*0*"):
            commit.unlink()  # as if the run had been killed before the commit
    assert notified == [[("before", 1)]] * 4
