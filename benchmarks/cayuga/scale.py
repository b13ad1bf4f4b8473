"""The sizes of the experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments; by default those of the paper."""

    name: str
    sizes: tuple[int, ...] = (100_000, 200_000, 300_000, 400_000)  # subscriptions (figure 6a)
    usual: int = 200_000  # subscriptions, where something else is varied (figures 6b and 6c)
    by_step: int = (
        100_000  # subscriptions whose attributes are drawn for each step anew: they need many templates
    )
    loaded: int = 400_000  # subscriptions that are loaded in several ways,
    texts: int = 2_000  # and as texts, one by one
    # subscriptions, where parts are switched off (figure 7)
    optimised: tuple[int, ...] = (10_000, 20_000, 30_000, 40_000)
    feed: tuple[int, ...] = (10_000, 20_000, 30_000, 40_000)  # subscriptions to feeds (figure 8)
    articles: int = 26_623  # of a feed
    stocks: int = 505  # of prices that are made up,
    days: int = 1_226  # for so many days
    exponents: tuple[float, ...] = (0.8, 1.0, 1.2, 1.4)  # zipf1
    selectivities: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9)
    events: int = 100_000  # that a figure is taken from,
    seconds: float = 10.0  # or as many batches of them as this time allows
    warm_up: int = 10_000  # events before, or as many as the same time allows
    batch: int = 1_000  # events
    repeats: int = 3  # of the queries over stocks, of which the median counts


SMALL: Final = Scale(
    "small",
    sizes=(5_000, 20_000),
    usual=10_000,
    by_step=200,
    loaded=20_000,
    texts=200,
    optimised=(500, 2_000),
    feed=(1_000, 4_000),
    articles=4_000,
    stocks=100,
    days=250,
    exponents=(0.8, 1.4),
    selectivities=(0.5, 0.9),
    events=10_000,
    seconds=0.3,
    warm_up=500,
    repeats=1,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
