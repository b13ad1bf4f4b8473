"""Where events come from on Spark, besides Spark's own sources."""

from tocsin.spark.sources.nats import NatsSource

__all__ = ["NatsSource"]
