"""How large the experiments are."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments."""

    name: str
    sizes: tuple[int, ...]  # subscriptions (figure 6a)
    usual: int  # subscriptions, where something else is varied (figures 6b and 6c)
    by_step: int  # subscriptions whose attributes are drawn for each step anew: they need many templates
    loaded: int  # subscriptions that are loaded in several ways,
    texts: int  # and as texts, one by one
    optimised: tuple[int, ...]  # subscriptions, where parts are switched off (figure 7)
    feed: tuple[int, ...]  # subscriptions to feeds (figure 8)
    articles: int  # of a feed
    stocks: int  # of prices that are made up,
    days: int  # for so many days
    exponents: tuple[float, ...] = (0.8, 1.0, 1.2, 1.4)  # zipf1
    selectivities: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9)
    events: int = 100_000  # that a figure is taken from,
    seconds: float = 10.0  # or as many batches of them as this time allows
    warm_up: int = 2_000  # events before, or as many as the same time allows
    batch: int = 1_000  # events
    repeats: int = 3  # of the questions about stocks; the median is told


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
PAPER: Final = Scale(
    "paper",
    sizes=(100_000, 200_000, 300_000, 400_000),
    usual=200_000,
    by_step=100_000,
    loaded=400_000,
    texts=2_000,
    optimised=(10_000, 20_000, 30_000, 40_000),
    feed=(10_000, 20_000, 30_000, 40_000),
    articles=26_623,
    stocks=505,
    days=1_226,
    warm_up=10_000,
)
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
