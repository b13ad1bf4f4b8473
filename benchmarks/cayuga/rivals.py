"""The alternatives for S3 and S4: window functions in SQL, run by DuckDB, and pandas."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.cayuga.workloads.stocks import DAYS, RISE

_S3: Final = """
    select number, day_before, day from (
        select number, day, price, lag(day) over by_name as day_before, lag(price) over by_name as price_before
        from prices window by_name as (partition by name order by day)
    ) where price > $rise::double * price_before
"""
_S4: Final = """
    with moves as (
        select number, name, day, price, lag(price) over (partition by name order by day) as price_before from prices
    ), rises as (
        select number, name, day, count(*) filter (where price_before is null or price < price_before)
            over (partition by name order by day rows unbounded preceding) as rise
        from moves
    )
    select l.number as number, f.day as day_before, l.day as day from rises f join rises l using (name, rise)
    where l.day > f.day and l.day - f.day + 1 >= $days
"""  # gaps and islands: rows of one rise have as many falls before them


class Found(Struct, frozen=True):
    """Answers, as the rows of the last price and the first and last day, and the seconds they took."""

    answers: NDArray[np.int64]  # [answers, 3], sorted
    seconds: float

    @classmethod
    def of(cls, rows: NDArray[Any], starts: NDArray[Any], ends: NDArray[Any], seconds: float) -> Found:
        """Return answers in any order."""
        answers = np.column_stack([rows, starts, ends]).astype(np.int64)
        return cls(answers[np.lexsort(answers.T[::-1])], seconds)


class Rival(Struct, frozen=True):
    """An alternative: its label, the package it needs, and how it answers."""

    label: str
    package: str
    ask: Callable[[pa.Table], Found]


def rivals(question: str) -> list[Rival]:
    """Return the alternatives for S3 or S4."""
    found = [Rival("SQL in DuckDB", "duckdb", lambda prices: _by_sql(prices, *_SQL[question]))]
    if question == "S3":
        found.append(Rival("pandas", "pandas", _by_pandas))
    return found


def missing(rival: Rival) -> str | None:
    """Return which package has to be installed for a rival, or None."""
    if find_spec(rival.package) is not None:
        return None
    return f"{rival.label} needs {rival.package}; install it with: pip install 'tocsin[bench]'"


def _by_sql(prices: pa.Table, query: str, parameters: Mapping[str, float]) -> Found:
    duckdb: Any = import_module("duckdb")
    numbered = prices.append_column("number", pa.array(np.arange(prices.num_rows)))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("prices", numbered)
        begun = time.perf_counter()
        found = connection.execute(query, parameters).fetchnumpy()
        seconds = time.perf_counter() - begun
    return Found.of(found["number"], found["day_before"], found["day"], seconds)


def _by_pandas(prices: pa.Table) -> Found:
    frame = prices.to_pandas()
    begun = time.perf_counter()
    before = frame.groupby("name", sort=False)[["price", "day"]].shift()
    is_found = (frame["price"] > RISE * before["price"]).to_numpy()
    rows = np.flatnonzero(is_found)
    starts, ends = before["day"].to_numpy()[rows], frame["day"].to_numpy()[rows]
    seconds = time.perf_counter() - begun
    return Found.of(rows, starts, ends, seconds)


_SQL: Final[Mapping[str, tuple[str, Mapping[str, float]]]] = {
    "S3": (_S3, {"rise": RISE}),
    "S4": (_S4, {"days": DAYS}),
}
