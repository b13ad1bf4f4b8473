"""The table of what instances wait for is used where it pays."""

from __future__ import annotations

import numpy as np

from tests.sequences.running.test_graph import compiled
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event
from tocsin.sequences.modes import MODES
from tocsin.sequences.running.matcher import AutomatonMatcher


def _run(runner: AutomatonMatcher, keys: int, count: int, begin: int = 1) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first in range(begin, begin + count, 500):
        batch = [Event(f"e{n}", {"k": n * n % keys}, "s", n, n) for n in range(first, first + 500)]
        matches = runner.process(TimedBatch(batch))
        found += zip(matches.starts.tolist(), matches.ends.tolist(), strict=True)
    return found


def test_it_is_switched_off_where_it_spares_nothing_and_on_again_where_it_does() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    plain = AutomatonMatcher(matcher="oracle", mode=MODES["no instance index"])
    for one in (runner, plain):
        one.add(np.array([0]), compiled("from s a next s b on b.k = a.k"), {})
    assert runner.stats().keyed_nodes == 1
    assert _run(runner, 1, 25_000) == _run(plain, 1, 25_000)  # one instance at a time: nothing to be spared
    assert runner.stats().keyed_nodes == 0
    assert _run(runner, 977, 40_000, 30_001) == _run(plain, 977, 40_000, 30_001)
    assert runner.stats().keyed_nodes == 1
    assert plain.stats().keyed_nodes == 0
