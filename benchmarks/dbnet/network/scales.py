"""How large the experiments are."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True, kw_only=True):
    """The sizes of all experiments."""

    name: str
    nodes: int  # of the overlay,
    physical: int  # and of the network that it is in
    subscriptions: int  # where nothing else is said
    rows: int
    events: int  # where there are few simulations,
    several: int  # and where a figure has many points
    database: tuple[int, ...]  # rows (figures 6 and 7)
    heard: tuple[int, ...]  # subscriptions (figures 8 and 9)
    ignorable: tuple[float, ...]  # shares (figure 10)
    spikes: tuple[float, ...]  # shares (figure 11),
    spiked: int  # and the rows there
    traced: tuple[int, ...]  # subscriptions (figure 13)
    stocks: int  # of quotes that are made up,
    steps: int  # for so many steps
    compared: int  # subscriptions, where kinds are compared,
    few: int  # and the events there, each of which changes very many answers
    paired: int  # events of joins, of which each makes several pairs come and go
    full: int  # subscriptions, where everything is as large as it gets
    batch: int = 2_000  # events
    sample: int = 200  # subscriptions whose answers are recomputed


SMALL: Final = Scale(
    name="small",
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
PAPER: Final = Scale(
    name="paper",
    nodes=1_000,
    physical=20_000,
    subscriptions=500_000,
    rows=10_000,
    events=200_000,
    several=50_000,
    database=(10_000, 20_000, 40_000, 60_000, 80_000, 100_000),
    heard=(100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000),
    ignorable=(0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    spikes=(0.0, 0.0025, 0.005, 0.01, 0.02),
    spiked=50_000,
    traced=(100_000, 300_000, 500_000),
    stocks=3_053,
    steps=120,
    compared=100_000,
    few=5_000,
    paired=2_000,
    full=1_000_000,
)
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
