"""Several threads match parts of a batch: the answers are those of one, and what they write stays apart."""

from __future__ import annotations

import os
from concurrent.futures import Future, wait
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.contract.adversaries import ADVERSARIES, play
from tests.matching.adaptive.invariants import check_invariants
from tests.matching.adaptive.test_interleavings import _steps, play_checked
from tests.matching.interleaving import Step
from tocsin.language import Template
from tocsin.matching import ConjunctionBatch, EventBatch, create_matcher, open_matcher, save_matcher
from tocsin.matching.adaptive import threads as module
from tocsin.matching.adaptive.matcher import DEFAULT, EAGER, Adaptive, Thresholds
from tocsin.matching.adaptive.state import DenseCount, Total
from tocsin.model.errors import MatcherError


@pytest.mark.parametrize(
    ("threads", "thresholds"),
    [(2, replace(DEFAULT, part=64, gathered=64)), pytest.param(3, EAGER, marks=pytest.mark.long)],
    ids=["two", "three, eager"],
)
@pytest.mark.parametrize("workload", ADVERSARIES)
def test_matches_are_those_of_the_oracle(workload: str, threads: int, thresholds: Thresholds) -> None:
    matcher = Adaptive(threads=threads, thresholds=thresholds)
    play(matcher, workload, 1, lambda: check_invariants(matcher))


@settings(max_examples=40)
@given(
    played=st.lists(_steps, min_size=3, max_size=20),
    threads=st.sampled_from([2, 3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_matches_and_invariants_survive_any_interleaving(played: list[Step], threads: int, seed: int) -> None:
    matcher = Adaptive(threads=threads, thresholds=EAGER)
    play_checked(matcher, played, seed)


def filled(threads: int = 2, part: int = 64) -> Adaptive:
    """Return a matcher with a hot cluster, after some events."""
    matcher = Adaptive(threads=threads, thresholds=replace(DEFAULT, part=part))
    rows = Template("a = :x and b > :y").bind_many({"x": np.zeros(300), "y": np.arange(300)})
    matcher.add(ConjunctionBatch.of_rows(np.arange(300), rows))
    for _ in range(3):
        assert matched(matcher, [{"a": 0, "b": i} for i in range(200)]) == [
            list(range(i)) for i in range(200)
        ]
    assert matcher.stats().details["hot clusters"] == 1
    return matcher


def matched(matcher: Adaptive, rows: list[dict[str, object]]) -> list[list[int]]:
    return matcher.match(EventBatch.of_dicts(rows)).to_lists()


@pytest.mark.parametrize("place", [3, 100, 199])  # of the first thread's part, and of another's
def test_a_value_that_no_column_has_stops_no_thread_and_is_left_to_the_next_batch(place: int) -> None:
    matcher = filled()
    rows: list[dict[str, object]] = [{"a": 0, "b": i} for i in range(200)]
    rows[place] = {"a": 0, "b": 2**60 + 1}
    wanted = [list(range(i)) for i in range(200)]
    wanted[place] = list(range(300))
    assert matched(matcher, rows) == wanted
    used = matcher._state.dense.used
    assert used[DenseCount.FAULT] > 0
    assert used[DenseCount.IS_SHARED] == 0
    assert matched(matcher, rows) == wanted
    assert used[DenseCount.FAULT] == 0
    assert matcher.stats().details["hot clusters"] == 0
    check_invariants(matcher)


def test_a_hot_cluster_that_asks_for_another_slot_is_cooled_once_all_threads_are_done() -> None:
    matcher = filled()
    rows = Template("a = :x and b > 0 and c = :x").bind_many({"x": np.zeros(3)})
    matcher.add(ConjunctionBatch.of_rows(np.arange(300, 303), rows))
    wanted = [[*range(i), *([300, 301, 302] if i else [])] for i in range(200)]
    for _ in range(3):
        assert matched(matcher, [{"a": 0, "b": i, "c": 0} for i in range(200)]) == wanted
        check_invariants(matcher)


def test_only_the_first_part_of_a_batch_is_counted() -> None:
    one, two = filled(1), filled(2)
    assert two._state.totals[Total.COUNTED] < 0.7 * one._state.totals[Total.COUNTED]
    assert two._state.totals[Total.WEIGHT] == one._state.totals[Total.WEIGHT]


def test_each_thread_gets_whole_chunks() -> None:
    matcher = Adaptive(threads=3)
    bounds = [matcher._bounds_of_parts(count) for count in (0, 700, 1_000, 1_300, 4_000)]
    assert bounds == [[0, 0], [0, 700], [0, 512, 1_000], [0, 512, 1_024, 1_300], [0, 1_024, 2_560, 4_000]]


def test_threads_are_no_part_of_a_saved_matcher(tmp_path: Path) -> None:
    matcher = filled(3)
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    assert isinstance(opened, Adaptive)
    assert opened.threads == 1
    opened.threads = 2
    rows: list[dict[str, object]] = [{"a": 0, "b": i % 300} for i in range(2_000)]
    assert matched(opened, rows) == [list(range(i % 300)) for i in range(2_000)]
    with opened.parts() as parts:
        matcher.restore(parts)
    assert matched(matcher, rows) == [list(range(i % 300)) for i in range(2_000)]


def test_a_forked_process_starts_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = filled()
    pool = matcher._further._pool
    rows: list[dict[str, object]] = [{"a": 0, "b": i} for i in range(200)]
    matched(matcher, rows)
    assert matcher._further._pool is pool
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert matched(matcher, rows) == [list(range(i)) for i in range(200)]
    assert matcher._further._pool is not pool


def test_a_thread_that_fails_leaves_the_matcher_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = filled()
    rows: list[dict[str, object]] = [{"a": 0, "b": i} for i in range(200)]

    def fail(*_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(module._FurtherThread, "match", fail)
        with pytest.raises(MemoryError, match="no room"):
            matched(matcher, rows)
    assert matcher._state.dense.used[DenseCount.IS_SHARED] == 0
    assert matched(matcher, rows) == [list(range(i)) for i in range(200)]
    check_invariants(matcher)


def test_a_number_of_threads_is_at_least_one() -> None:
    with pytest.raises(
        MatcherError, match="`threads` is how many threads match a batch: 1 or more, and not 0"
    ):
        create_matcher("adaptive", threads=0)
    with pytest.raises(MatcherError, match="has no option `threads`"):
        create_matcher("dynamic", threads=2)


def test_an_interrupt_waits_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher, waits = filled(), []

    def interrupted(begun: list[Future[module.Found]]) -> None:
        waits.append(begun)
        if len(waits) == 1:
            raise KeyboardInterrupt
        wait(begun)

    rows: list[dict[str, object]] = [{"a": 0, "b": i} for i in range(200)]
    with monkeypatch.context() as patch:
        patch.setattr(module, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            matched(matcher, rows)
    assert len(waits) == 2
    assert matcher._state.dense.used[DenseCount.IS_SHARED] == 0
    assert matched(matcher, rows) == [list(range(i)) for i in range(200)]
