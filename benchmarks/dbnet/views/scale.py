"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from typing import Final

from benchmarks.runner.scale import scales

SCALES: Final = scales(
    reformulated=((1_000, 10_000), (10_000, 100_000, 1_000_000)),  # rows, where updates are only reformulated
    database=((1_000, 5_000), (10_000, 20_000, 40_000, 60_000, 80_000, 100_000)),  # rows (figure 6),
    heard=(20_000, 500_000),  # and the subscriptions there
    subscriptions=((10_000, 40_000), (100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)),  # (figure 8),
    few_rows=(1_000, 10_000),  # and the rows there
    rows=(10_000, 100_000),  # everywhere else
    notified=(50_000, 1_000_000),  # subscriptions that many updates or next to none notify
    # subscriptions, where kinds, matchers, databases and ways of asking are compared
    compared=(5_000, 100_000),
    rivalled=((1_000,), (10_000,)),  # rows of the databases
    stocks=(300, 3_053),  # of quotes that are made up,
    steps=(20, 120),  # for so many steps
    updates=(10_000, 200_000),  # that a figure is taken from,
    seconds=(0.5, 10.0),  # or as many batches of them as this time allows
    batch=(1_000, 1_000),  # updates
    crowded=(10, 10),  # updates in a batch, where each notifies very many
    single=(200, 2_000),  # updates that are given one by one
    checked=(100, 100),  # updates whose effect is recomputed,
    sample=(50, 50),  # for so many subscriptions
)
