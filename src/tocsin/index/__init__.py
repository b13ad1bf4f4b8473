"""Subscriptions in a folder, published as generations that any number of processes match with."""

from tocsin.index.generations import Generation, Generations
from tocsin.index.reader import IndexReader
from tocsin.index.shard import RowNumbers, Shard
from tocsin.index.stateful import StatefulRun, StatefulSubscription, StatefulSubscriptions
from tocsin.index.subscriptions import SubscriptionIndex

__all__ = [
    "Generation",
    "Generations",
    "IndexReader",
    "RowNumbers",
    "Shard",
    "StatefulRun",
    "StatefulSubscription",
    "StatefulSubscriptions",
    "SubscriptionIndex",
]
