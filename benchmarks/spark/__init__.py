"""Tocsin on Spark: beside a join, beside the embedded engine, sharded, and while subscriptions change."""
