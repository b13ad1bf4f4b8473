"""Sequences and views on Spark: events routed to shards, each of which keeps its state in Spark's state store."""
