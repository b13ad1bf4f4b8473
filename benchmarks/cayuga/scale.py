"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from typing import Final

from benchmarks.runner.scale import scales

SCALES: Final = scales(
    sizes=((5_000, 20_000), (100_000, 200_000, 300_000, 400_000)),  # subscriptions (figure 6a)
    usual=(10_000, 200_000),  # subscriptions, where something else is varied (figures 6b and 6c)
    # subscriptions whose attributes are drawn for each step anew: they need many templates
    by_step=(200, 100_000),
    loaded=(20_000, 400_000),  # subscriptions that are loaded in several ways,
    texts=(200, 2_000),  # and as texts, one by one
    # subscriptions, where parts are switched off (figure 7)
    optimised=((500, 2_000), (10_000, 20_000, 30_000, 40_000)),
    feed=((1_000, 4_000), (10_000, 20_000, 30_000, 40_000)),  # subscriptions to feeds (figure 8)
    articles=(4_000, 26_623),  # of a feed
    stocks=(100, 505),  # of prices that are made up,
    days=(250, 1_226),  # for so many days
    exponents=((0.8, 1.4), (0.8, 1.0, 1.2, 1.4)),  # zipf1
    selectivities=((0.5, 0.9), (0.5, 0.6, 0.7, 0.8, 0.9)),
    events=(10_000, 100_000),  # that a figure is taken from,
    seconds=(0.3, 10.0),  # or as many batches of them as this time allows
    warm_up=(500, 10_000),  # events before, or as many as the same time allows
    batch=(1_000, 1_000),  # events
    repeats=(1, 3),  # of the queries over stocks, of which the median counts
)
