"""The sizes of the experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from benchmarks.lesubscribe.workload import WORKLOADS, Parameters


class Scale(Struct, frozen=True):
    """The sizes of all experiments; by default those of the paper."""

    name: str
    subscriptions: int = 1_000_000  # where the engine, Spark and shards are compared
    events: int = 1_000_000  # that a figure there is taken from
    joined: int = 100_000  # subscriptions, where a join is the alternative
    join_events: int = 100_000
    # events that the nested loop is timed with; the rest is extrapolated
    join_samples: tuple[int, ...] = (1_000, 2_000, 4_000)
    changing: int = 100_000  # subscriptions of an index that a stream follows
    changes: int = 10  # of it while the stream runs
    rounds: int = 5  # in which all take their turn; figures are medians of them
    shards: tuple[int, ...] = (1, 2, 4)
    # subscriptions of W0's two fixed equalities: one in 1,225 matches
    noted: tuple[int, int] = (1_225, 24_500)
    noted_events: int = 100_000
    stream_rows: int = 1_000  # events in a micro-batch
    batch: int = 10_000  # events in a record batch, for the engine as on Spark
    workload: Parameters = WORKLOADS["W0"]


SMALL: Final = Scale(
    "small",
    subscriptions=50_000,
    events=100_000,
    joined=2_000,
    join_events=2_000,
    join_samples=(2_000,),
    changing=2_000,
    changes=3,
    rounds=3,
    noted_events=20_000,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
