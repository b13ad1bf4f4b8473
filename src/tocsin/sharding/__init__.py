"""Spreading sequences and views over shards that together give the engine's notifications."""

from tocsin.sharding.kept_events import AddedFilters, AddedInIndex, FilterMatch
from tocsin.sharding.output import LATE, NOTIFICATIONS, ShardOutput
from tocsin.sharding.plan import ShardPlan
from tocsin.sharding.router import (
    CLOCK,
    EventRows,
    LatestEnds,
    Role,
    Routed,
    ShardRouter,
    merge_latest,
    rows_without_key,
)
from tocsin.sharding.runtime import ShardRuntime
from tocsin.sharding.shard_state import grown, reshard, shards_of_state
from tocsin.sharding.stateful import stateful_subscriptions

__all__ = [
    "CLOCK",
    "LATE",
    "NOTIFICATIONS",
    "AddedFilters",
    "AddedInIndex",
    "EventRows",
    "FilterMatch",
    "LatestEnds",
    "Role",
    "Routed",
    "ShardOutput",
    "ShardPlan",
    "ShardRouter",
    "ShardRuntime",
    "grown",
    "merge_latest",
    "reshard",
    "rows_without_key",
    "shards_of_state",
    "stateful_subscriptions",
]
