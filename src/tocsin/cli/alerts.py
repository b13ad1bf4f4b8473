"""Travellers' alerts: a million generated subscriptions to the flights out of New York."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

MILLION: Final = 1_000_000
_DELAYS: Final = (15, 30, 45, 60, 90, 120)
_LONG_DELAYS: Final = (120, 180, 240, 300)
_SEED: Final = 2013


class AlertKind(Struct, frozen=True):
    """Alerts of one template. Each is about a random flight; its parameters but `minutes` are that flight's."""

    name: str
    share: float  # of all alerts
    text: str
    columns: tuple[str, ...]
    minutes: tuple[int, ...] = ()  # the delays to choose from

    @property
    def id(self) -> str:
        """Return the pattern of the alerts' ids."""
        return f"{self.name} {{row}}"


ALERTS: Final = (
    AlertKind(
        "my flight",
        0.6,
        "carrier = :carrier and flight = :flight and month = :month and day = :day and dep_delay > :minutes",
        ("carrier", "flight", "month", "day"),
        _DELAYS,
    ),
    AlertKind(
        "my route",
        0.2,
        "origin = :origin and dest = :dest and month = :month and day = :day and dep_delay > :minutes",
        ("origin", "dest", "month", "day"),
        _DELAYS,
    ),
    AlertKind(
        "my commute",
        0.15,
        "carrier = :carrier and flight = :flight and arr_delay > :minutes",
        ("carrier", "flight"),
        _LONG_DELAYS,
    ),
    AlertKind(
        "no departure",
        0.05,
        "carrier = :carrier and dest = :dest and month = :month and day = :day and dep_time is missing",
        ("carrier", "dest", "month", "day"),
    ),
)
"""What travellers want to hear of: their flight, their route on a day, a flight they take often, a cancellation."""


def travellers_alerts(flights: pa.Table, count: int) -> Iterator[tuple[AlertKind, pa.Table]]:
    """Yield each kind of alert with the rows of its template, `count` in all; the same each time."""
    random = np.random.default_rng(_SEED)
    left = count
    for kind in ALERTS:
        size = left if kind is ALERTS[-1] else min(round(count * kind.share), left)
        left -= size
        about = pa.array(random.integers(0, flights.num_rows, size))
        rows = flights.select(list(kind.columns)).take(about)
        if kind.minutes:
            rows = rows.append_column("minutes", pa.array(random.choice(kind.minutes, size)))
        yield kind, rows
