"""The sizes of the experiments."""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments; by default those of the paper."""

    name: str
    # subscriptions (N) of figure 1, and where times are compared
    sizes: tuple[int, ...] = (200_000, 1_000_000)
    usual: int = (
        1_000_000  # subscriptions, where something else is varied; the published methods get as many buckets
    )
    highest: tuple[int, ...] = (15, 25, 35, 45, 55, 65, 75, 85, 95)  # x: constants are 6 to x
    ratios: tuple[float, ...] = (0.25, 1.0, 4.0)  # N/M: subscriptions to a bucket
    equality_clauses: tuple[int, ...] = (0, 1, 2, 3, 4, 5)  # of a subscription, where G is studied
    small_set: int = 3  # equality-only attributes in use, where these are few
    hashed: tuple[int, ...] = (0, 1, 2)  # G
    classes: tuple[float, ...] = (2, 4, 8, 16, 64, inf)  # B
    # per cent of values that an inequality holds for
    selectivities: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 80)
    events: int = 2_000  # that a figure is taken from,
    seconds: float = 5.0  # or as many batches of them as this time allows
    warm_up: int = 500  # events before
    batch: int = 250  # events


SMALL: Final = Scale(
    "small",
    sizes=(50_000, 200_000),
    usual=200_000,
    highest=(15, 35, 55, 75, 95),
    classes=(2, 8, 64, inf),
    selectivities=(1, 5, 20, 80),
    events=500,
    seconds=0.5,
    warm_up=250,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
