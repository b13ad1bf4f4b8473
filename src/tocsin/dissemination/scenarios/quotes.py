"""Stocks, quote by quote (5, figure 13): made up in the shape of the paper's trace, or read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.dissemination.scenarios.ranges import hundredths
from tocsin.formats.files import UNREADABLE, is_readable, open_decompressed
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats, PointChanges

STOCKS: Final = 3_053
STEPS: Final = 120  # 60 days, at their opening and their closing
_RECOMMENDED: Final = (1.0, 5.0)  # from a strong buy to a sell
_COLUMNS: Final = ("time", "symbol", "dividend_yield", "pe")


class Trace(Struct, frozen=True):
    """The first points, the changes that follow, and the domain of x."""

    x: Floats
    y: Floats
    changes: PointChanges
    domain: tuple[float, float]


def make_trace(stocks: int = STOCKS, steps: int = STEPS, seed: int = 1) -> Trace:
    """Return a trace that is made up: x is a recommendation in tenths, y a price by earnings that walks geometrically.

    At each step all stocks are quoted, in a random order; one whose y stays the same does not change.
    """
    random = np.random.default_rng([seed, 4, stocks, steps])
    x = np.rint(10 * np.clip(random.normal(2.5, 0.6, stocks), *_RECOMMENDED)) / 10
    first = random.lognormal(3.0, 0.6, stocks)
    walked = first * np.exp(np.cumsum(random.normal(0.0, 0.01, (steps, stocks)), axis=0))
    y = np.maximum(hundredths(np.vstack([first, walked])), 0.01)
    order = np.argsort(random.random((steps, stocks)), axis=1)
    old, new = (np.take_along_axis(part, order, axis=1).reshape(-1) for part in (y[:-1], y[1:]))
    is_changed = old != new
    where = x[order.reshape(-1)[is_changed]]
    changes = PointChanges(where, old[is_changed], where, new[is_changed])
    return Trace(x, y[0], changes, _RECOMMENDED)


def read_quotes(path: Path) -> Trace:
    """Return the trace of a file of JSON lines with time, symbol, dividend_yield (the x) and pe (the y).

    A stock begins with its first quote; one that lacks either is no point meanwhile, and a quote without a symbol is of
    no stock. Raise `TocsinError` if there is no such file, if it cannot be read or has no such columns, or if hardly any x is above 0.
    """
    x, y, stocks = _read_columns(path)
    is_absent = ~(np.isfinite(x) & np.isfinite(y))
    x[is_absent] = y[is_absent] = np.nan
    before = _before(stocks)
    begins = (before < 0) & ~is_absent
    follows = np.flatnonzero(before >= 0)
    last = before[follows]
    is_same = ((x[follows] == x[last]) & (y[follows] == y[last])) | (is_absent[follows] & is_absent[last])
    follows, last = follows[~is_same], last[~is_same]
    changes = PointChanges(x[last], y[last], x[follows], y[follows])
    # A few dividends are far beyond all others; a domain that reached to them would be empty for the most part.
    upper = float(np.quantile(x[~is_absent], 0.99)) if not is_absent.all() else 0.0
    if upper <= 0:
        raise TocsinError(
            f"{path} holds hardly any quote with a dividend_yield above 0 and a pe; no range can be drawn"
        )
    return Trace(x[begins], y[begins], changes, (0.0, upper))


def _read_columns(path: Path) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the x, the y and the number of the stock of each quote, by time and symbol."""
    if not is_readable(path):
        raise TocsinError(f"there is no file {path}")
    try:
        with path.open("rb") as raw:
            read = pa.json.read_json(open_decompressed(raw, path.suffix)).select(list(_COLUMNS))
        read = read.filter(pc.is_valid(read["symbol"]))
        quotes = read.sort_by([("time", "ascending"), ("symbol", "ascending")])
        x, y = (quotes[name].cast(pa.float64()).to_numpy().copy() for name in _COLUMNS[2:])
        return x, y, quotes["symbol"].combine_chunks().dictionary_encode().indices.to_numpy()
    except (*UNREADABLE, KeyError) as fault:
        raise TocsinError(
            f"{path} holds no quotes: JSON lines with {', '.join(_COLUMNS)} are needed ({fault})"
        ) from None


def _before(stocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, of each quote, the position of the same stock's one before, or -1."""
    order = np.argsort(stocks, kind="stable")
    before = np.full(len(stocks), -1, dtype=np.int64)
    again = np.flatnonzero(np.diff(stocks[order]) == 0)
    before[order[again + 1]] = order[again]
    return before
