"""S3 and S4 over prices of stocks, beside window functions in SQL, run by DuckDB, and pandas."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.cayuga.session import ALL, CayugaSession, Subject
from benchmarks.cayuga.workloads.stocks import DAYS, RISE, S3, S4, STREAM, TIME
from tocsin.engine import Engine
from tocsin.language import parse
from tocsin.model.errors import MatcherError

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

OURS: Final = "Tocsin"
_QUESTIONS: Final = {"S3": S3, "S4": S4}
_BATCH: Final = 1 << 14  # prices


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


def ticks(session: CayugaSession) -> None:
    """Run S3 and S4 over prices with Tocsin and with its rivals; all must give the same answers."""
    prices = session.prices
    for question, text in _QUESTIONS.items():
        ours = _median(session, f"{OURS}, {question}", prices, partial(_asked, session, text))
        engine = [
            Rival("Engine.match_sequences", "tocsin", partial(_followed, session, text)),
            Rival("Engine.publish_many", "tocsin", partial(_published, session, text)),
        ]
        for rival in [*engine, *rivals(question)]:
            label = f"{rival.label}, {question}"
            if session.lacks(rival.package, label):
                continue
            found = _median(session, label, prices, rival.ask)
            if not np.array_equal(found.answers, ours.answers):
                raise MatcherError(
                    f"`{OURS}` and `{rival.label}` disagree on {question}: they find {len(ours.answers):,} and"
                    f" {len(found.answers):,} answers"
                )


def _median(session: CayugaSession, label: str, prices: pa.Table, ask: Callable[[pa.Table], Found]) -> Found:
    """Ask several times, record the median, and return the last answers."""
    session.tell(label, f"{prices.num_rows:,} prices")
    found = [ask(prices) for _ in range(session.scale.repeats)]
    seconds = median(one.seconds for one in found)
    rate = prices.num_rows / max(seconds, 1e-9)
    session.record("throughput", label, prices.num_rows, rate, "events/s", seconds=seconds)
    session.record("answers", label, prices.num_rows, len(found[-1].answers), "")
    return found[-1]


def _asked(session: CayugaSession, text: str, prices: pa.Table) -> Found:
    """Return the matches of one subscription over prices, batch by batch."""
    subject = Subject(session.matcher, ALL)
    subject.runner.add(np.zeros(1, dtype=np.int64), subject.prepare(parse(text)), {})
    seconds, parts = 0.0, []
    for first in range(0, prices.num_rows, _BATCH):
        took, witnesses = subject.advance(prices.slice(first, _BATCH), STREAM, TIME)
        seconds += took
        parts.append(np.column_stack([witnesses.rows + first, witnesses.starts, witnesses.ends]))
    answers = np.concatenate(parts)
    return Found.of(answers[:, 0], answers[:, 1], answers[:, 2], seconds)


def _followed(session: CayugaSession, text: str, prices: pa.Table) -> Found:
    """Return the matches of an engine as columns."""
    engine = Engine(matcher=session.matcher)
    engine.subscribe(text)
    begun = time.perf_counter()
    told = engine.match_sequences(prices, stream=STREAM, time=TIME)
    return Found.of(told.rows, told.starts, told.ends, time.perf_counter() - begun)


def _published(session: CayugaSession, text: str, prices: pa.Table) -> Found:
    """Return the matches of an engine as notifications with their events."""
    engine = Engine(matcher=session.matcher)
    engine.subscribe(text)
    begun = time.perf_counter()
    notes = [*engine.publish_many(prices, stream=STREAM, time=TIME), *engine.flush()]
    seconds = time.perf_counter() - begun
    keys = zip(prices["name"].to_pylist(), prices[TIME].to_pylist(), strict=True)
    numbers = {key: number for number, key in enumerate(keys)}
    rows = [numbers[str(note.events[-1].attributes["name"]), note.end] for note in notes]
    starts, ends = [note.start for note in notes], [note.end for note in notes]
    return Found.of(np.array(rows), np.array(starts), np.array(ends), seconds)
