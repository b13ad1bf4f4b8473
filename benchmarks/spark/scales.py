"""How large the experiments are."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from benchmarks.lesubscribe.workload import W0, Parameters


class Scale(Struct, frozen=True):
    """The sizes of all experiments."""

    name: str
    subscriptions: int  # where the engine, Spark and shards are compared
    events: int  # that a figure there is taken from
    joined: int  # subscriptions, where a join is the alternative
    join_events: int
    join_samples: tuple[int, ...]  # events that the nested loop is timed with; what is left is extrapolated
    changing: int  # subscriptions of an index that a stream follows
    changes: int  # of it while the stream runs
    rounds: int = 5  # in which all take their turn; figures are medians of them
    shards: tuple[int, ...] = (1, 2, 4)
    noted: tuple[int, int] = (
        1_225,
        24_500,
    )  # subscriptions of W0's two fixed equalities: one in 1,225 matches
    noted_events: int = 100_000
    stream_rows: int = 1_000  # events in a micro-batch
    batch: int = 10_000  # events in a record batch, for the engine as on Spark
    workload: Parameters = W0


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
PAPER: Final = Scale(
    "paper",
    subscriptions=1_000_000,
    events=1_000_000,
    joined=100_000,
    join_events=100_000,
    join_samples=(1_000, 2_000, 4_000),
    changing=100_000,
    changes=10,
)
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
