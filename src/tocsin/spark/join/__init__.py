"""Matching as an equi-join (AMKH): subscriptions as hashed points, events as candidate coordinates, all in Spark SQL."""

from tocsin.spark.join.plan import JoinResult, index_remaining, join_notifications

__all__ = ["JoinResult", "index_remaining", "join_notifications"]
