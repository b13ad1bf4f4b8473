"""The same questions on Spark: DataFrames of events in, DataFrames of notifications out, batch and streaming alike."""

from tocsin.spark.matching import dead_letters, match
from tocsin.spark.session import local_session
from tocsin.spark.subscriptions import FromTemplate

__all__ = ["FromTemplate", "dead_letters", "local_session", "match"]
