"""Data sinks for notifications, besides Spark's own."""

from tocsin.spark.sinks.arrow import ArrowSink
from tocsin.spark.sinks.folder import committed_batches, read_committed, vacuum
from tocsin.spark.sinks.kafka import kafka_messages

__all__ = ["ArrowSink", "committed_batches", "kafka_messages", "read_committed", "vacuum"]
