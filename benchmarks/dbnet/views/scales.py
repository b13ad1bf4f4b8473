"""How large the experiments are."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments."""

    name: str
    reformulated: tuple[int, ...]  # rows, where updates are only reformulated
    database: tuple[int, ...]  # rows (figure 6),
    heard: int  # and the subscriptions there
    subscriptions: tuple[int, ...]  # (figure 8),
    few_rows: int  # and the rows there
    rows: int  # everywhere else
    notified: int  # subscriptions that many updates or next to none notify
    compared: int  # subscriptions, where kinds, matchers, databases and ways of asking are compared
    rivalled: tuple[int, ...]  # rows of the databases
    stocks: int  # of quotes that are made up,
    steps: int  # for so many steps
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
PAPER: Final = Scale(
    "paper",
    reformulated=(10_000, 100_000, 1_000_000),
    database=(10_000, 20_000, 40_000, 60_000, 80_000, 100_000),
    heard=500_000,
    subscriptions=(100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000),
    few_rows=10_000,
    rows=100_000,
    notified=1_000_000,
    compared=100_000,
    rivalled=(10_000,),
    stocks=3_053,
    steps=120,
)
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
