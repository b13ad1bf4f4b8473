"""Where notifications go from Spark, besides Spark's own sinks."""

from tocsin.spark.sinks.arrow import ArrowSink
from tocsin.spark.sinks.folder import committed_batches, read_committed, vacuum

__all__ = ["ArrowSink", "committed_batches", "read_committed", "vacuum"]
