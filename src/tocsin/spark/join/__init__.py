"""Matching as an equi-join (AMKH): subscriptions as hashed points, events as candidate coordinates, all in Spark SQL."""

from tocsin.spark.join.plan import JoinResult, join_notifications
from tocsin.spark.join.split import index_remaining

__all__ = ["JoinResult", "index_remaining", "join_notifications"]
