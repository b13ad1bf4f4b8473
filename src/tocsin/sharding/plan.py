"""Which shard runs which subscription."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from tocsin.index.stateful import StatefulRun, StatefulSubscriptions
from tocsin.language.template.columns import Column
from tocsin.model.conditions import Condition
from tocsin.model.errors import TocsinError
from tocsin.sharding.correlation import Scheme
from tocsin.sharding.hashing import Hashes
from tocsin.structures.array_types import Bools, Int32s, Int64s

EVERY: Final = -1
"""Instead of a shard: all of them."""
HOME: Final = -1
"""Instead of a group: the subscriptions without a key, each on one shard."""


class KeyGroup(Struct, frozen=True):
    """Sequences whose keys have the same attributes of the same streams; events go to the shard of their key's hash.

    Each of its sequences is on all shards, or, if the key has to equal constants, on the shard of these. `values` are the
    sorted hashes of these constants; None if some sequence of the group takes any value.
    """

    scheme: Scheme
    size: int
    values: Hashes | None

    @property
    def name(self) -> str:
        """Return a name that the same group has in every generation."""
        return "; ".join(f"{stream}: {', '.join(paths)}" for stream, paths in self.scheme)


class StaticRoute(Struct, frozen=True):
    """A condition on the events of a stream that some sequences without a key may need, and the shards of these.

    The sequences of a template have a row of `columns` each, for the parameters in the condition.
    """

    stream: str
    condition: Condition
    shards: Int32s
    columns: Mapping[str, Column]


class RunPlacement(NamedTuple):
    """Where the subscriptions of a run are: for each its group or HOME, and its shard, or EVERY."""

    groups: Int32s
    shards: Int32s


class MissingKey(Struct, frozen=True):
    """Why so many sequences have no key; `example` is the id of one."""

    text: str
    count: int
    example: str


class ShardPlan(Struct, frozen=True):
    """How the subscriptions of one generation are spread over shards.

    It depends on the subscriptions alone, so every process makes the same one, and a subscription stays where it is as
    long as nothing that it is linked with changes. `tables` has the shards that each table's rows go to, `keys` the attributes
    of its key, and `reads` the streams that sequences read.

    >>> from tocsin import parse
    >>> from tocsin.model import Subscription
    >>> rise = Subscription("rise", parse("from stock a next stock b on b.name = a.name where b.price > a.price"))
    >>> from tocsin.sharding import stateful_subscriptions
    >>> print(ShardPlan.of(stateful_subscriptions([rise]), 4).describe())
    1 subscription on 4 shards.
    1 sequence is keyed by stock: name. It is on all shards; an event goes to the shard of its key's hash.
    """

    shards: int
    groups: tuple[KeyGroup, ...]
    placements: tuple[RunPlacement, ...]  # of each run
    routes: tuple[StaticRoute, ...]
    tables: Mapping[str, Bools]
    keys: Mapping[str, tuple[str, ...]]
    reads: frozenset[str]
    ticks: Mapping[str, int]
    published: frozenset[str]
    linked_shard: int
    linked_filters: int
    reasons: tuple[MissingKey, ...]
    views: Int64s  # how many each shard has

    @classmethod
    def of(cls, stateful: StatefulSubscriptions, shards: int, *, changes: bool = True) -> ShardPlan:
        """Return the plan for so many shards.

        With `changes`, rows of tables go to every shard, because a view that is added later may live on any of them.
        """
        from tocsin.sharding.planning import Planner  # noqa: PLC0415 - it makes what is defined here

        if shards < 1:
            raise TocsinError(f"there is one shard or more, not {shards}")
        return Planner(stateful, shards).plan(changes=changes)

    def members(self, stateful: StatefulSubscriptions, group: int, shard: int) -> list[StatefulRun]:
        """Return the subscriptions of a group, or HOME, that a shard has; the plan is that of all these subscriptions."""
        found = []
        for run, placement in zip(stateful.runs, self.placements, strict=True):
            is_here = (placement.shards == shard) | (placement.shards == EVERY)
            positions = np.flatnonzero(is_here & (placement.groups == group))
            if len(positions):
                found.append(run if len(positions) == len(run) else run.take(positions))
        if group == HOME and shard == self.linked_shard:
            found += stateful.linked_filters
        return found

    def describe(self) -> str:
        """Return in sentences what is where, what travels, and why sequences have no key."""
        from tocsin.sharding.description import describe_plan  # noqa: PLC0415 - few need it

        return describe_plan(self)
