"""Data sources of events, besides Spark's own."""

from tocsin.spark.sources.nats import NatsSource

__all__ = ["NatsSource"]
