"""Tocsin on Spark: DataFrames of events in, DataFrames of notifications out, batch and streaming alike."""

from tocsin.engine.backtest import Backtest
from tocsin.model.errors import SparkError
from tocsin.model.installation import install_hint

try:
    import pyspark  # noqa: F401
except ImportError as fault:
    raise SparkError(
        f"PySpark is not installed ({fault}); install it with {install_hint('spark')}"
    ) from fault

from tocsin.spark.backtest import backtest
from tocsin.spark.index_build import build_index
from tocsin.spark.matching import dead_letters, match
from tocsin.spark.pipeline import Pipeline
from tocsin.spark.progress import BatchProgress
from tocsin.spark.session import local_session
from tocsin.spark.stateful.growth import grow
from tocsin.spark.statistics import statistics
from tocsin.spark.subscription_sources import FromTemplate

__all__ = [
    "Backtest",
    "BatchProgress",
    "FromTemplate",
    "Pipeline",
    "backtest",
    "build_index",
    "dead_letters",
    "grow",
    "local_session",
    "match",
    "statistics",
]
