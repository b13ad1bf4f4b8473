"""Both data sources are known to a session by name, and their options to the reader of the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.model.errors import SparkError
from tocsin.spark.data_sources import check_options, register
from tocsin.spark.sinks import arrow
from tocsin.spark.sources import nats

PAGE = (Path(__file__).parents[2] / "docs/reference/spark-sources.md").read_text(encoding="utf-8")


def test_registered_formats_are_found(any_spark: SparkSession) -> None:
    register(any_spark)
    register(any_spark)
    with pytest.raises(PySparkException, match="must name a JetStream stream"):
        any_spark.read.format("nats").load().collect()
    with pytest.raises(PySparkException, match="no folder is given"):
        _ = any_spark.read.format("tocsin-arrow").load().schema


def test_every_option_is_in_the_reference() -> None:
    rows = " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))
    for option in (*nats._OPTIONS, *arrow._OPTIONS):
        assert f"`{option}`" in rows, option


def test_the_connector_for_kafka_is_of_the_version_of_spark() -> None:
    named = set(re.findall(r"spark-sql-kafka-0-10_2\.13:([\d.]+\d)", PAGE))
    assert named == {pyspark.__version__}


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    check_options("x", ["PATH"], ["path", "mode"])
    with pytest.raises(SparkError, match="x: there is no option `colour`; it knows mode, path"):
        check_options("x", ["colour"], ["path", "mode"])
