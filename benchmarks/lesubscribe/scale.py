"""The sizes of the experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments; by default those of the paper."""

    name: str
    # subscriptions, in the experiment that varies them
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000, 3_000_000, 6_000_000)
    usual: int = 1_000_000  # subscriptions in the experiments that vary something else
    drifting: int = 1_000_000  # subscriptions while schemas and values drift
    churning: int = 3_000_000  # subscriptions while single ones come and go
    domains: tuple[int, ...] = (10, 35, 100, 1_000)
    predicates: tuple[int, ...] = (3, 5, 7, 9)
    events: int = 5_000  # events that a figure is taken from,
    seconds: float = 5.0  # or as many batches of them as this time allows
    warm_up: int = 2_000  # events before
    batch: int = 500  # events
    steps: int = 24  # figures taken while schemas or values drift
    turnover: float = 1.2  # how often all subscriptions are replaced meanwhile
    changes: int = 500  # subscriptions that go and come at a time meanwhile
    rounds: int = 400  # seconds of churn
    single: int = 2_000  # single changes, of which the worst counts
    patience: float = 600.0  # seconds that one matcher may take for one size


SMALL: Final = Scale(
    "small",
    sizes=(1_000, 10_000, 100_000),
    usual=50_000,
    drifting=20_000,
    churning=100_000,
    events=2_000,
    seconds=0.5,
    warm_up=500,
    batch=250,
    steps=12,
    changes=50,
    rounds=100,
    single=500,
    patience=6.0,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
