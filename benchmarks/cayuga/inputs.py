"""Where feeds and prices come from."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec import Struct

from benchmarks.cayuga.scales import Scale
from benchmarks.cayuga.workloads.feeds import Feed, make_feed, read_feed
from benchmarks.cayuga.workloads.stocks import make_prices, read_prices
from tocsin.model.errors import TocsinError

_MADE_UP: Final = "made up"


class Data(Struct, frozen=True):
    """The files of articles and of prices; what is None is made up."""

    feed: Path | None = None
    prices: Path | None = None

    @classmethod
    def of(cls, folder: Path | None) -> Data:
        """Return what a folder has under its usual names, or raise `TocsinError` if something is not there."""
        if folder is None:
            return cls()
        files = [folder / "news.jsonl.gz", folder / "stocks.jsonl.zst"]
        missing = [str(path) for path in files if not path.exists()]
        if missing:
            raise TocsinError(
                f"there is no {' and no '.join(missing)}; leave out --data, and the data is made up"
            )
        return cls(*files)


class Material:
    """A feed and prices, read or made when they are first needed."""

    def __init__(self, data: Data, scale: Scale) -> None:
        self._data = data
        self._scale = scale

    @cached_property
    def feed(self) -> Feed:
        """Return the articles."""
        if self._data.feed is None:
            return make_feed(self._scale.articles)
        return read_feed(self._data.feed, self._scale.articles)

    @cached_property
    def prices(self) -> pa.Table:
        """Return the prices of stocks."""
        if self._data.prices is None:
            return make_prices(self._scale.stocks, self._scale.days)
        return read_prices(self._data.prices)

    def described(self) -> dict[str, str]:
        """Return where everything comes from, in words."""
        given = {"feed": self._data.feed, "prices": self._data.prices}
        return {name: _MADE_UP if path is None else path.name for name, path in given.items()}
