"""What workers are told of a stateful stage."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from tocsin.engine.reorder_buffer import Delay
from tocsin.index import IndexReader
from tocsin.index.stateful import StatefulSubscriptions
from tocsin.model.errors import SparkError
from tocsin.model.ticks import Tick
from tocsin.sharding import ShardPlan, ShardRouter
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.match_worker import MatchJob
from tocsin.spark.stateful.shard_notes import NoteSchema

MOST_SHARDS: Final = 4096
_NOTHING: Final = StatefulSubscriptions("", (), (), {}, {})


class StatefulOptions(Struct, frozen=True):
    """How sequences and views are run: on how many shards, how late events may be, and whether late ones are returned."""

    shards: int | None = None
    out_of_orderness: Tick = 0
    late: bool = False

    def check(self) -> None:
        """Raise `SparkError` or `OptionError` for values that cannot be."""
        if self.shards is not None and (type(self.shards) is not int or not 1 <= self.shards <= MOST_SHARDS):
            raise SparkError(
                f"`state_shards` is the number of shards of sequences and views, 1 to {MOST_SHARDS:,}, not {self.shards!r}"
            )
        Delay.read("out_of_orderness", self.out_of_orderness)

    def is_asked_for(self, layout: EventLayout, *, is_stream: bool) -> bool:
        """Return whether shards are needed even if there are only filters: others may come, or events are kept."""
        return self.shards is not None or (is_stream and (self.late or layout.keeps_events))


FILTERS_ONLY: Final = StatefulOptions()


class PlannedShards(Struct, frozen=True):
    """The sequences and views of a generation, on which shards they are, and which events go there."""

    stateful: StatefulSubscriptions
    plan: ShardPlan
    router: ShardRouter

    @property
    def ticks(self) -> Mapping[str, int]:
        """Return the microseconds of a tick of each stream that was declared."""
        return self.stateful.ticks


class StatefulJob(Struct, frozen=True):
    """The task of a stateful stage: the filters' one, the number of shards, and how long events may be late.

    With `changes`, as in a stream, subscriptions may come later, so that tables have all their rows on every shard.
    """

    match: MatchJob
    notes: NoteSchema
    shards: int
    keys: tuple[int, ...] = ()
    out_of_orderness: Tick = 0
    late: bool = False
    changes: bool = True

    def planned(self, reader: IndexReader, generation: int) -> PlannedShards:
        """Return the plan of a generation; generations with the same sequences and views have the same."""
        stateful = reader.stateful(generation) or _NOTHING
        return _planned(_ByDigest(stateful), self.shards, self.changes)


class _ByDigest:
    """Sequences and views that are equal to others of the same digest."""

    def __init__(self, stateful: StatefulSubscriptions) -> None:
        self.stateful = stateful

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByDigest) and self.stateful.digest == other.stateful.digest

    def __hash__(self) -> int:
        return hash(self.stateful.digest)


@lru_cache(maxsize=4)
def _planned(of: _ByDigest, shards: int, changes: bool) -> PlannedShards:
    plan = ShardPlan.of(of.stateful, shards, changes=changes)
    return PlannedShards(of.stateful, plan, ShardRouter(plan))
