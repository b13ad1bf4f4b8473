"""Tocsin's data sources, made known to a Spark session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tocsin.spark.sinks import ArrowSink
from tocsin.spark.sources import NatsSource


def register(spark: SparkSession) -> None:
    """Make `tocsin-arrow` and `nats` formats that this session can read and write."""
    for kind in (ArrowSink, NatsSource):
        spark.dataSource.register(kind)
