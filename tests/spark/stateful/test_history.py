"""Sequences and views over a history on Spark have the engine's notifications."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.stateful.workload import TABLES, TEXTS, events, expected, frame, notified
from tocsin.spark import match


@pytest.mark.parametrize("shards", [1, 4])
def test_a_history_has_the_engines_notifications(any_spark: SparkSession, shards: int) -> None:
    rows = events(shards, 300)
    wanted = expected(rows)
    assert {id_ for id_, *_ in wanted} == TEXTS.keys()  # each has some
    found = match(
        frame(any_spark, rows),
        TEXTS,
        time="t",
        stream_column="of",
        tables=TABLES,
        values=True,
        state_shards=shards,
        shards=min(shards, 2),
    )
    assert notified(found) == wanted
