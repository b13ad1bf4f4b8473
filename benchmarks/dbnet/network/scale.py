"""The sizes of the experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments; by default those of the paper."""

    name: str
    nodes: int = 1_000  # of the overlay,
    physical: int = 20_000  # and of the network that it is in
    subscriptions: int = 500_000  # where nothing else is said
    rows: int = 10_000
    events: int = 200_000  # where there are few simulations,
    several: int = 50_000  # and where a figure has many points
    database: tuple[int, ...] = (10_000, 20_000, 40_000, 60_000, 80_000, 100_000)  # rows (figures 6 and 7)
    # subscriptions (figures 8 and 9)
    heard: tuple[int, ...] = (100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)
    ignorable: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)  # shares (figure 10)
    spikes: tuple[float, ...] = (0.0, 0.0025, 0.005, 0.01, 0.02)  # shares (figure 11),
    spiked: int = 50_000  # and the rows there
    traced: tuple[int, ...] = (100_000, 300_000, 500_000)  # subscriptions (figure 13)
    stocks: int = 3_053  # of quotes that are made up,
    steps: int = 120  # for so many steps
    compared: int = 100_000  # subscriptions, where kinds are compared,
    few: int = 5_000  # and the events there, each of which changes very many answers
    paired: int = 2_000  # events of joins, of which each makes several pairs come and go
    full: int = 1_000_000  # subscriptions, where everything is as large as it gets
    batch: int = 2_000  # events
    sample: int = 200  # subscriptions whose answers are recomputed


SMALL: Final = Scale(
    "small",
    nodes=100,
    physical=1_000,
    subscriptions=20_000,
    rows=1_000,
    events=4_000,
    several=2_000,
    database=(1_000, 4_000),
    heard=(10_000, 40_000),
    ignorable=(0.0, 0.5, 0.9),
    spikes=(0.0, 0.01),
    spiked=2_000,
    traced=(5_000, 20_000),
    stocks=300,
    steps=10,
    compared=5_000,
    few=500,
    paired=200,
    full=40_000,
    batch=1_000,
    sample=50,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
