"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from typing import Final

from benchmarks.lesubscribe.workload import WORKLOADS
from benchmarks.runner.scale import scales

SCALES: Final = scales(
    subscriptions=(50_000, 1_000_000),  # where the engine, Spark and shards are compared
    events=(100_000, 1_000_000),  # that a figure there is taken from
    joined=(2_000, 100_000),  # subscriptions, where a join is the alternative
    join_events=(2_000, 100_000),
    # events that the nested loop is timed with; the rest is extrapolated
    join_samples=((2_000,), (1_000, 2_000, 4_000)),
    changing=(2_000, 100_000),  # subscriptions of an index that a stream follows
    changes=(3, 10),  # of it while the stream runs
    rounds=(3, 5),  # in which all take their turn; figures are medians of them
    shards=((1, 2, 4), (1, 2, 4)),
    # subscriptions of W0's two fixed equalities: one in 1,225 matches
    noted=((1_225, 24_500), (1_225, 24_500)),
    noted_events=(20_000, 100_000),
    stream_rows=(1_000, 1_000),  # events in a micro-batch
    batch=(10_000, 10_000),  # events in a record batch, for the engine as on Spark
    workload=(WORKLOADS["W0"], WORKLOADS["W0"]),
)
