"""The sizes of the experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments; by default those of the paper."""

    name: str
    reformulated: tuple[int, ...] = (10_000, 100_000, 1_000_000)  # rows, where updates are only reformulated
    database: tuple[int, ...] = (10_000, 20_000, 40_000, 60_000, 80_000, 100_000)  # rows (figure 6),
    heard: int = 500_000  # and the subscriptions there
    subscriptions: tuple[int, ...] = (100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)  # (figure 8),
    few_rows: int = 10_000  # and the rows there
    rows: int = 100_000  # everywhere else
    notified: int = 1_000_000  # subscriptions that many updates or next to none notify
    compared: int = 100_000  # subscriptions, where kinds, matchers, databases and ways of asking are compared
    rivalled: tuple[int, ...] = (10_000,)  # rows of the databases
    stocks: int = 3_053  # of quotes that are made up,
    steps: int = 120  # for so many steps
    updates: int = 200_000  # that a figure is taken from,
    seconds: float = 10.0  # or as many batches of them as this time allows
    batch: int = 1_000  # updates
    crowded: int = 10  # updates in a batch, where each notifies very many
    single: int = 2_000  # updates that are given one by one
    checked: int = 100  # updates whose effect is recomputed,
    sample: int = 50  # for so many subscriptions


SMALL: Final = Scale(
    "small",
    reformulated=(1_000, 10_000),
    database=(1_000, 5_000),
    heard=20_000,
    subscriptions=(10_000, 40_000),
    few_rows=1_000,
    rows=10_000,
    notified=50_000,
    compared=5_000,
    rivalled=(1_000,),
    stocks=300,
    steps=20,
    updates=10_000,
    seconds=0.5,
    single=200,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
