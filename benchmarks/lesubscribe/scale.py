"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from typing import Final

from benchmarks.runner.scale import scales

SCALES: Final = scales(
    # subscriptions, in the experiment that varies them
    sizes=((1_000, 10_000, 100_000), (10_000, 100_000, 1_000_000, 3_000_000, 6_000_000)),
    usual=(50_000, 1_000_000),  # subscriptions in the experiments that vary something else
    drifting=(20_000, 1_000_000),  # subscriptions while schemas and values drift
    churning=(100_000, 3_000_000),  # subscriptions while single ones come and go
    domains=((10, 35, 100, 1_000), (10, 35, 100, 1_000)),
    predicates=((3, 5, 7, 9), (3, 5, 7, 9)),
    events=(2_000, 5_000),  # events that a figure is taken from,
    seconds=(0.5, 5.0),  # or as many batches of them as this time allows
    warm_up=(500, 2_000),  # events before
    batch=(250, 500),  # events
    steps=(12, 24),  # figures taken while schemas or values drift
    turnover=(1.2, 1.2),  # how often all subscriptions are replaced meanwhile
    changes=(50, 500),  # subscriptions that go and come at a time meanwhile
    rounds=(100, 400),  # seconds of churn
    single=(500, 2_000),  # single changes, of which the worst counts
    patience=(6.0, 600.0),  # seconds that one matcher may take for one size
)
