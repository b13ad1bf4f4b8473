"""Points, updates, ranges and quotes, drawn or read when they are first needed."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.dbnet.views.scales import Scale
from tocsin.dissemination.scenarios.quotes import Trace, make_trace, read_quotes
from tocsin.dissemination.scenarios.ranges import Ranges, draw_ranges
from tocsin.dissemination.scenarios.walks import SPIKES, TablePoints, Updates, draw_points, draw_updates
from tocsin.model.errors import TocsinError

_MADE_UP: Final = "made up"


class Data(Struct, frozen=True):
    """The file of quotes; they are made up if it is None."""

    quotes: Path | None = None

    @classmethod
    def of(cls, folder: Path | None) -> Data:
        """Return what a folder has under its usual name, or raise `TocsinError` if it is not there."""
        if folder is None:
            return cls()
        quotes = folder / "stock_quotes.jsonl.gz"
        if not quotes.exists():
            raise TocsinError(f"there is no {quotes}; leave out --data, and the quotes are made up")
        return cls(quotes)


class Material:
    """What the experiments are given; the same is drawn once."""

    def __init__(self, data: Data, scale: Scale) -> None:
        self._data = data
        self._scale = scale
        self.points = lru_cache(maxsize=2)(draw_points)
        self._updates = lru_cache(maxsize=2)(self._draw_updates)
        self._ranges = lru_cache(maxsize=1)(draw_ranges)

    def updates(
        self, rows: int, *, spikes: float = SPIKES, ignorable: float | None = 0.0
    ) -> tuple[TablePoints, Updates]:
        """Return points, and updates of them."""
        return self.points(rows), self._updates(rows, spikes, ignorable)

    def ranges(self, count: int) -> Ranges:
        """Return ranges; those of fewer subscriptions are the first of those of more."""
        most = max(self._scale.notified, self._scale.heard, *self._scale.subscriptions)
        return self._ranges(most).first(count)

    @cached_property
    def trace(self) -> Trace:
        """Return the quotes of stocks."""
        if self._data.quotes is None:
            return make_trace(self._scale.stocks, self._scale.steps)
        return read_quotes(self._data.quotes)

    def described(self) -> dict[str, str]:
        """Return where everything comes from, in words."""
        return {"quotes": _MADE_UP if self._data.quotes is None else self._data.quotes.name}

    def _draw_updates(self, rows: int, spikes: float, ignorable: float | None) -> Updates:
        return draw_updates(self.points(rows), self._scale.updates, spikes=spikes, ignorable=ignorable)
