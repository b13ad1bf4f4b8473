"""S3 and S4 over prices of stocks, beside SQL and pandas."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.cayuga.rivals import Found, Rival, missing, rivals
from benchmarks.cayuga.session import ALL, CayugaSession
from benchmarks.cayuga.subject import Subject
from benchmarks.cayuga.workloads.stocks import S3, S4, STREAM, TIME
from tocsin.engine import Engine
from tocsin.language import parse
from tocsin.model.errors import MatcherError

OURS: Final = "Tocsin"
_QUESTIONS: Final = {"S3": S3, "S4": S4}
_BATCH: Final = 1 << 14  # prices


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
            if (reason := missing(rival)) is not None:
                session.left_out.append(f"ticks: {label}: {reason}")
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
