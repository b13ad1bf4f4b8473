"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from math import inf
from typing import Final

from benchmarks.runner.scale import scales

SCALES: Final = scales(
    # subscriptions (N) of figure 1, and where times are compared
    sizes=((50_000, 200_000), (200_000, 1_000_000)),
    # subscriptions, where something else is varied; the published methods get as many buckets
    usual=(200_000, 1_000_000),
    highest=((15, 35, 55, 75, 95), (15, 25, 35, 45, 55, 65, 75, 85, 95)),  # x: constants are 6 to x
    ratios=((0.25, 1.0, 4.0), (0.25, 1.0, 4.0)),  # N/M: subscriptions to a bucket
    equality_clauses=((0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5)),  # of a subscription, where G is studied
    small_set=(3, 3),  # equality-only attributes in use, where these are few
    hashed=((0, 1, 2), (0, 1, 2)),  # G
    classes=((2, 8, 64, inf), (2, 4, 8, 16, 64, inf)),  # B
    # per cent of values that an inequality holds for
    selectivities=((1, 5, 20, 80), (1, 2, 5, 10, 20, 50, 80)),
    events=(500, 2_000),  # that a figure is taken from,
    seconds=(0.5, 5.0),  # or as many batches of them as this time allows
    warm_up=(250, 500),  # events before
    batch=(250, 250),  # events
)
