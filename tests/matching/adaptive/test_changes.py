"""No single change waits for what there is of all subscriptions."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.matching.adaptive.invariants import check_invariants
from tocsin.language import Template
from tocsin.matching import ConjunctionBatch
from tocsin.matching.adaptive.matcher import Adaptive

HELD = 1_000_000
MILLISECONDS = 10.0


@pytest.mark.long
def test_a_single_change_beside_a_million_subscriptions_takes_less_than_ten_milliseconds() -> None:
    Adaptive.warm_up()
    matcher, random, template = Adaptive(), np.random.default_rng(1), Template("a = :x and b > :y and c = :z")

    def batch(first: int, count: int) -> ConjunctionBatch:
        columns = {name: random.integers(0, 2_000, count) for name in ("x", "y", "z")}
        return ConjunctionBatch.of_rows(np.arange(first, first + count), template.bind_many(columns))

    first = 2 * HELD // 3 + 1_000  # there is a plan for all when there are half as many again
    matcher.add(batch(0, first))
    matcher.add(batch(first, HELD - first))
    added, taken = [batch(HELD + i, 1) for i in range(4_000)], []
    matcher.remove(np.array([0]))
    for i, one in enumerate(added):
        start = time.process_time()
        matcher.add(one)
        middle = time.process_time()
        if i % 4 == 3:
            matcher.remove(np.array([i]))
        taken += [middle - start, time.process_time() - middle]
    slowest = [1e3 * seconds for seconds in sorted(taken)[-4:]]
    # The machine itself may stop for as long now and then, when it provides memory.
    assert slowest[0] < MILLISECONDS, slowest


def test_a_plan_draws_conjunctions_where_few_numbers_are_in_use() -> None:
    matcher, template = Adaptive(), Template("a = :x and b = :y")
    count = 20_000
    rows = template.bind_many({"x": np.arange(count) % 7, "y": np.arange(count) % 11})
    matcher.add(ConjunctionBatch.of_rows(np.arange(count), rows))
    assert 1_000 <= len(matcher._draw()) <= 1_024
    matcher.remove(np.arange(count)[np.arange(count) % 40 > 0])
    assert 250 < len(matcher._draw()) <= 1_024
    matcher.remove(np.arange(count))
    assert len(matcher._draw()) == 0
    check_invariants(matcher)


def test_a_cluster_that_is_most_of_the_memory_finds_room_to_close_its_gaps() -> None:
    matcher, template, count = Adaptive(), Template("a = 1 and b > :y"), 150_000
    matcher.add(
        ConjunctionBatch.of_rows(np.arange(count), template.bind_many({"y": np.arange(count) % 1_000}))
    )
    for begin in range(0, count, 15_000):
        matcher.remove(np.arange(begin, begin + 15_000))
    assert matcher.stats().conjunctions == 0
    check_invariants(matcher)
