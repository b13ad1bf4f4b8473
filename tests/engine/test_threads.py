"""An engine with several threads returns the notifications of one with one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.cli.running import tocsin
from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.matching.adaptive.matcher import Adaptive

TEMPLATE = "a = :x and b > :y or c contains :z"


def filled(threads: int) -> Engine:
    engine = Engine(matcher="adaptive", threads=threads, clock=EventClock(0))
    random = np.random.default_rng(1)
    rows = pa.table(
        {
            "x": random.integers(0, 5, 400),
            "y": random.integers(0, 50, 400),
            "z": [f"{i % 97}" for i in range(400)],
        }
    )
    engine.subscribe_many(TEMPLATE, rows, id="s{row}")
    return engine


def test_tables_and_lists_give_the_same_notifications(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    events = pa.table(
        {
            "a": random.integers(0, 6, 3_000),
            "b": random.integers(0, 60, 3_000),
            "c": [str(i) for i in range(3_000)],
        }
    )
    one, two = filled(1), filled(2)
    matcher = two._store.filters.matcher
    assert isinstance(matcher, Adaptive)
    assert matcher.threads == 2
    for given in (events, events.to_pylist(), events):
        assert two.publish_many(given).to_arrow().equals(one.publish_many(given).to_arrow())
    assert two.match(events).to_arrow().equals(one.match(events).to_arrow())
    assert len(one.match(events).to_arrow()) > 10_000
    two.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine", threads=3)
    assert opened.match(events).to_arrow().equals(one.match(events).to_arrow())


def test_match_at_the_command_line_takes_threads(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("a,b\n" + "".join(f"{i % 7},{i}\n" for i in range(3_000)))
    asked = "match", "-s", "a = 3 and b > 100", "-s", "b < 5", "--matcher", "adaptive", events
    one, two = tocsin(*asked), tocsin(*asked, "--threads", "2")
    assert two.returncode == 0, two.stderr
    notes = [[json.loads(line) for line in done.stdout.splitlines()] for done in (one, two)]
    told = [[(note["subscription"], note["events"][0]["attributes"]) for note in each] for each in notes]
    assert told[0] == told[1]
    assert len(told[0]) == 420
