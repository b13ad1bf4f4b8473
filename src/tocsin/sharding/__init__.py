"""Spreading sequences and views over shards that together give the engine's notifications."""

from tocsin.sharding.output import LATE, NOTIFICATIONS, ShardOutput
from tocsin.sharding.plan import ShardPlan
from tocsin.sharding.router import CLOCK, EventRows, LatestEnds, Role, Routed, ShardRouter, merge_latest
from tocsin.sharding.runtime import ShardRuntime
from tocsin.sharding.stateful import StatefulRun, StatefulSubscriptions

__all__ = [
    "CLOCK",
    "LATE",
    "NOTIFICATIONS",
    "EventRows",
    "LatestEnds",
    "Role",
    "Routed",
    "ShardOutput",
    "ShardPlan",
    "ShardRouter",
    "ShardRuntime",
    "StatefulRun",
    "StatefulSubscriptions",
    "merge_latest",
]
