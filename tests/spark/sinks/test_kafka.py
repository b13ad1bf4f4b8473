"""Rows as messages for Kafka, without a broker; `tests/spark/kafka` has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession, functions

from tocsin.errors import SparkError
from tocsin.spark import Pipeline, dead_letters, match
from tocsin.spark.sinks import kafka_messages
from tocsin.spark.sinks.kafka import kafka_options


def test_a_notification_is_a_key_that_stays_and_a_value(any_spark: SparkSession) -> None:
    rows = [("e1", 1, '["', b"raw"), ("e2", 2, None, None)]
    events = any_spark.createDataFrame(rows, "event_id string, a int, `odd name` string, raw binary")
    events = events.withColumn("at", functions.timestamp_micros(functions.lit(1_500_000)))
    notes = match(events, {'of "a"': "a > 0"}, time="at", keep=["odd name", "raw"])
    messages = sorted((json.loads(key), json.loads(value)) for key, value in kafka_messages(notes).collect())
    common = {"subscription": 'of "a"', "time": "1970-01-01T00:00:01.500000Z", "generation": 1}
    assert messages == [
        (['of "a"', "e1"], {"event_id": "e1", "odd name": '["', "raw": "raw", **common}),
        (['of "a"', "e2"], {"event_id": "e2", **common}),
    ]


def test_a_sequence_s_key_has_all_its_events(spark: SparkSession) -> None:
    rows = [("s", 3, ["1", "3"], 10), ("s", 3, ["2", "3"], 20)]
    notes = spark.createDataFrame(
        rows, "subscription string, event_id long, event_ids array<string>, start long"
    )
    keys = sorted(row["key"] for row in kafka_messages(notes).collect())
    assert keys == ['["s","3","1","3"]', '["s","3","2","3"]']


def test_dead_letters_are_messages_too(spark: SparkSession) -> None:
    events = spark.createDataFrame([(7, b"{oops")], "event_id long, body binary")
    (message,) = kafka_messages(dead_letters(events, payload="body", keep=["body"])).collect()
    letter = json.loads(message["value"])
    assert (message["key"], letter["event_id"], letter["body"]) == ('["7"]', 7, "{oops")
    assert letter["reason"].startswith("not JSON")
    with pytest.raises(SparkError, match="there are only: other"):
        kafka_messages(spark.sql("select 1 as other"))


def test_an_address_names_brokers_and_topic() -> None:
    found = {"kafka.bootstrap.servers": "a:1,b:2", "topic": "alerts"}
    assert kafka_options("kafka://a:1,b:2/alerts") == found
    for wrong in ("kafka://a:1", "kafka:///alerts", "kafka://a:1/alerts/more", "file:///alerts"):
        with pytest.raises(SparkError, match="kafka://host:9092/topic"):
            kafka_options(wrong)


@pytest.mark.parametrize("sink", ["kafka://127.0.0.1:1/alerts", {"format": "kafka", "topic": "alerts"}])
def test_a_pipeline_writes_to_a_topic(
    spark: SparkSession, tmp_path: Path, sink: str | dict[str, str]
) -> None:
    stream = spark.readStream.format("rate").load()
    pipeline = Pipeline(stream, {"x": "value = 1"}, sink, tmp_path / "checkpoint", event_id="value")
    with pytest.raises(SparkError, match=r"cannot be started: .*kafka"):  # there is no connector here
        pipeline.start()
