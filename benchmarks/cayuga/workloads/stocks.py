"""Prices of stocks, day by day: read from a file, or walked at random; and the two questions S3 and S4 about them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tocsin.formats.files import is_readable, open_decompressed
from tocsin.model.errors import TocsinError

STREAM: Final = "stock"
TIME: Final = "day"
RISE: Final = 1.05
DAYS: Final = 10

S3: Final = f"from stock a next stock b on b.name = a.name where b.price > {RISE} * a.price"
"""The next price of the same stock is more than 5 % higher."""

S4: Final = (
    f"from stock a fold stock b on b.name = a.name while b.price >= last.price where duration >= {DAYS}"
)
"""A stock does not fall for at least ten days; a day is a tick."""

_FIRST: Final = 15_000  # day


def make_prices(stocks: int = 505, days: int = 1_226, seed: int = 1) -> pa.Table:
    """Return random walks: `day`, `name`, `price` and `volume`, a row for each stock and day, day by day."""
    random = np.random.default_rng([seed, stocks, days])
    steps = random.normal(0.0003, 0.017, (days, stocks))
    prices = random.uniform(10, 200, stocks) * np.exp(np.cumsum(steps, axis=0))
    day = _FIRST + np.arange(days) // 5 * 7 + np.arange(days) % 5  # there is no trade at weekends
    width = len(str(stocks))
    names = np.array([f"S{number:0{width}}" for number in range(stocks)])
    return pa.table(
        {
            TIME: np.repeat(day, stocks),
            "name": pa.array(np.tile(names, days)),
            "price": np.round(prices, 2).reshape(-1),
            "volume": random.integers(1_000, 10_000_000, days * stocks),
        }
    )


def read_prices(path: Path) -> pa.Table:
    """Return the prices of a file of JSON lines with `date`, `symbol`, `close` and `volume`, day by day.

    Raise `TocsinError` if there is no such file, or if it has no such columns.
    """
    if not is_readable(path):
        raise TocsinError(f"there is no file {path}; name none, and the prices are made up")
    try:
        with path.open("rb") as raw:
            read = pa.json.read_json(open_decompressed(raw, path.suffix))
        days = pc.cast(pc.cast(pc.cast(read["date"], pa.date32()), pa.int32()), pa.int64())
        columns = {"name": read["symbol"], "price": read["close"], "volume": read["volume"]}
        table = pa.table({TIME: days, **columns})
    except (pa.ArrowException, KeyError) as fault:
        raise TocsinError(
            f"{path} holds no prices: JSON lines with date, symbol, close and volume are needed ({fault})"
        ) from None
    return table.filter(pc.is_valid(table["price"])).sort_by([(TIME, "ascending"), ("name", "ascending")])
