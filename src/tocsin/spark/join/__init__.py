"""Matching as an equi-join (AMKH): subscriptions as hashed points, events as candidate coordinates, all in Spark SQL."""

from tocsin.spark.join.plan import Joined, join_notifications
from tocsin.spark.join.split import rest_index

__all__ = ["Joined", "join_notifications", "rest_index"]
