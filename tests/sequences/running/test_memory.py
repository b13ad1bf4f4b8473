"""State is bounded: what expires, is no longer referred to, or has no room, goes."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from tests.sequences.running.test_graph import compiled
from tocsin.language import Template
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Sequence
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.sequences.running.state import StateCounter


def _run(runner: AutomatonMatcher, begin: int, count: int, batch: int = 500) -> int:
    found = 0
    for first in range(begin, begin + count, batch):
        arrivals = TimedBatch(
            [Event(f"e{n}", {"w": f"word {n}", "k": n % 7}, "s", n, n) for n in range(first, first + batch)]
        )
        found += len(runner.process(arrivals))
    return found


def test_instances_that_last_too_long_are_freed() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    runner.add(np.array([0]), compiled("from s a next s b on b.w = a.w and b.k = 9 within 100"), {})
    _run(runner, 1, 60_000)
    stats = runner.stats()
    assert stats.instances < 10_000  # 60,000 have begun, 100 of them could still go on
    assert stats.strings < 20_000
    assert stats.kept_events < 20_000
    assert stats.expired > 40_000


def test_strings_and_events_are_kept_as_long_as_they_are_needed() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    runner.add(
        np.array([0]), compiled("from s a where a.k = 1 next s b on b.w = 'last' select a.w as first"), {}
    )
    _run(runner, 1, 700)  # a hundred of them wait
    other = compiled("from s a where a.k = 2 next s b on b.w = a.w")
    runner.add(np.array([1]), other, {})
    _run(runner, 1001, 30_000)
    runner.remove(np.array([1]))
    found = runner.process(TimedBatch([Event("end", {"w": "last"}, "s", 99_999, 99_999)]))
    matches = [found.match(place) for place in range(len(found))]
    first = [one for one in matches if one.steps[0].first.end <= 700]
    assert len(first) == 100
    assert all(one.values["first"] == f"word {one.steps[0].first.end}" for one in matches)
    assert all(one.steps[0].first.attributes["w"] == one.values["first"] for one in matches)


def test_chains_are_kept_as_long_as_they_are_needed() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    query = compiled("from s a where a.k = 1 fold s b on b.k = a.k while b.w != 'end' within 70")
    runner.add(np.array([0]), compile_sequence(query.query, full=True), {})
    found = 0
    for first in range(1, 20_000, 200):
        arrivals = TimedBatch(
            [Event(f"e{n}", {"w": "x", "k": n % 7}, "s", n, n) for n in range(first, first + 200)]
        )
        matches = runner.process(arrivals)
        found += len(matches)
        for place in range(0, len(matches), 50):
            steps = matches.match(place).steps
            chain = steps[1].chain
            assert chain is not None
            assert [event.end for event in chain] == list(
                range(steps[0].first.end + 7, steps[1].last.end + 1, 7)
            )
    assert found > 20_000
    assert runner._graph.state.counters[StateCounter.LINKS] < 20_000


def test_the_memory_limit_drops_the_oldest(caplog: pytest.LogCaptureFixture) -> None:
    runner = AutomatonMatcher(matcher="oracle", memory_limit=3_000_000)
    runner.add(np.array([0]), compiled("from s a next s b on b.w = 'last'"), {})
    with caplog.at_level(logging.WARNING):
        _run(runner, 1, 40_000)
    stats = runner.stats()
    assert stats.dropped > 1_000
    assert stats.dropped + stats.instances == 40_000
    assert caplog.text.count("memory limit") == 1
    found = runner.process(TimedBatch([Event("end", {"w": "last"}, "s", 99_999, 99_999)]))
    starts = sorted(found.starts.tolist())
    assert starts == list(range(40_001 - len(starts), 40_001))  # the youngest are still there


@pytest.mark.parametrize("batch", [1, 100])
def test_the_memory_limit_drops_no_more_than_it_must(batch: int) -> None:
    runner = AutomatonMatcher(matcher="oracle", memory_limit=1_000_000)
    text = "from s a next s b on b.q = 1 select a.w as w, a.k as k, a.x as x, a.y as y, a.z as z"
    runner.add(np.array([0]), compiled(text), {})
    _run(runner, 1, 1_000, batch)
    assert runner.stats().dropped == 0
    fewest = []
    for begin in range(1_001, 8_001, 100):
        _run(runner, begin, 100, batch)
        fewest.append(runner.stats().instances)
    assert runner.stats().dropped > 1_000
    assert min(fewest) >= 1_000


def test_unused_state_is_freed_before_instances_are_dropped() -> None:
    runner = AutomatonMatcher(matcher="oracle", memory_limit=1_000_000)
    runner.add(np.array([0]), compiled("from s a where a.k = 1 next s b on b.w = a.w within 700"), {})
    _run(runner, 1, 20_000, 100)
    assert runner.stats().dropped == 0
    assert runner.stats().kept_events * 400 < 1_100_000


def test_constants_of_subscriptions_do_not_count_as_partial_matches() -> None:
    runner = AutomatonMatcher(matcher="oracle", memory_limit=300_000)
    query = Template("from s a where a.k = :k next s b on a.x = b.x or b.w contains :p").query
    assert isinstance(query, Sequence)
    names = np.array([f"a rather long constant {n}" for n in range(5_000)], dtype=object)
    runner.add(np.arange(5_000), compile_sequence(query), {"k": np.arange(5_000), "p": names})
    _run(runner, 1, 7, 1)
    assert runner.stats().strings >= 5_000
    assert runner.stats().instances == 7
