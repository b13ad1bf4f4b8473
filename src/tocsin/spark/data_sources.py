"""Tocsin's data sources: their registration with a Spark session, and the check of their options."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import SparkSession

from tocsin.language.parsing.cursor import closest
from tocsin.model.errors import SparkError
from tocsin.spark.worker_python import ensure_worker_python


def register(spark: SparkSession) -> None:
    """Make `tocsin-arrow` and `nats` formats that this session can read and write."""
    from tocsin.spark.sinks.arrow import ArrowSink  # noqa: PLC0415 - both import `check_options`
    from tocsin.spark.sources.nats import NatsSource  # noqa: PLC0415

    ensure_worker_python(spark)  # a source is sent to workers with their Python now
    for source in (ArrowSink, NatsSource):
        spark.dataSource.register(source)


def check_options(source: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `SparkError` for the first option that `source` does not have; names are compared without case.

    A misspelt option is an error, never ignored.
    """
    lowered = {name.lower() for name in known}
    for name in given:
        if name.lower() not in lowered:
            near = closest(name, tuple(known), 0.6)
            remedy = f"did you mean `{near}`?" if near else f"it knows {', '.join(sorted(known))}"
            raise SparkError(f"{source}: there is no option `{name}`; {remedy}")
