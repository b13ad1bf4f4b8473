"""Data sinks for notifications, besides Spark's own."""

from tocsin.spark.sinks.arrow import ArrowSink
from tocsin.spark.sinks.folder import committed_batches, read_committed, vacuum

__all__ = ["ArrowSink", "committed_batches", "read_committed", "vacuum"]
