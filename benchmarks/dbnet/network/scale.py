"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from typing import Final

from benchmarks.runner.scale import scales

SCALES: Final = scales(
    nodes=(100, 1_000),  # of the overlay,
    physical=(1_000, 20_000),  # and of the network that it is in
    subscriptions=(20_000, 500_000),  # where nothing else is said
    rows=(1_000, 10_000),
    events=(4_000, 200_000),  # where there are few simulations,
    several=(2_000, 50_000),  # and where a figure has many points
    database=((1_000, 4_000), (10_000, 20_000, 40_000, 60_000, 80_000, 100_000)),  # rows (figures 6 and 7)
    # subscriptions (figures 8 and 9)
    heard=((10_000, 40_000), (100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)),
    ignorable=((0.0, 0.5, 0.9), (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)),  # shares (figure 10)
    spikes=((0.0, 0.01), (0.0, 0.0025, 0.005, 0.01, 0.02)),  # shares (figure 11),
    spiked=(2_000, 50_000),  # and the rows there
    traced=((5_000, 20_000), (100_000, 300_000, 500_000)),  # subscriptions (figure 13)
    stocks=(300, 3_053),  # of quotes that are made up,
    steps=(10, 120),  # for so many steps
    compared=(5_000, 100_000),  # subscriptions, where kinds are compared,
    few=(500, 5_000),  # and the events there, each of which changes very many answers
    paired=(200, 2_000),  # events of joins, of which each makes several pairs come and go
    full=(40_000, 1_000_000),  # subscriptions, where everything is as large as it gets
    batch=(1_000, 2_000),  # events
    sample=(50, 200),  # subscriptions whose answers are recomputed
)
