"""Very many random adds, removals and events: the answers stay right, and nothing is left behind.

Run as a module with a number of operations for a longer storm.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.matching.adaptive.invariants import check_invariants
from tocsin.language import Template
from tocsin.matching import ConjunctionBatch, EventBatch, create_matcher
from tocsin.matching.adaptive.matcher import Adaptive

HELD = 5_000  # subscriptions, about


def storm(operations: int, seed: int = 1) -> list[int]:
    """Do so many operations, compare with another matcher, and return the bytes at ten moments."""
    matcher, other = Adaptive(), create_matcher("counting")
    random = np.random.default_rng(seed)
    held = np.empty(0, dtype=np.int64)
    fresh = done = 0
    sizes: list[int] = []
    while done < operations:
        names = [f"a{i}" for i in random.choice(60, size=3) ** 2 // 60]  # the first ones more often
        count = int(random.integers(1, 200))
        columns = {"x": random.integers(0, 50, count), "y": random.integers(0, 50, count)}
        bound = Template(_text(names, int(random.integers(5)))).bind_many(columns)
        ids = np.arange(fresh, fresh + len(bound))  # those that can never match are left out
        fresh += len(bound)
        gone = random.choice(held, size=min(len(held), max(0, len(held) - HELD)), replace=False)
        batch = ConjunctionBatch.of_rows(ids, bound)
        rows = [
            {f"a{i}": int(random.integers(0, 50)) for i in random.choice(60, size=12) ** 2 // 60}
            for _ in range(int(random.integers(1, 60)))
        ]
        events = EventBatch.of_dicts(rows)
        for each in (matcher, other):
            each.add(batch)
            each.remove(gone)
        assert matcher.match(events).to_lists() == other.match(events).to_lists()
        held = np.concatenate([np.setdiff1d(held, gone), ids])
        before, done = done, done + len(ids) + len(gone) + len(rows)
        if before * 10 // operations != done * 10 // operations:
            check_invariants(matcher)
            sizes.append(matcher.stats().bytes)
    matcher.remove(held)
    check_invariants(matcher)
    stats = matcher.stats()
    assert (stats.conjunctions, stats.predicates, stats.details["access paths"]) == (0, 0, 1)
    assert len(matcher.vocabulary.names) == 0
    return sizes


def _text(names: list[str], which: int) -> str:
    a, b, c = names
    return [
        f"{a} = :x and {b} >= :y",
        f"{a} <= :x and {b} = :y and {c} is present",
        f"{a} = :x and {a} <= :y",
        f"{a} > :x and {b} != :y and {c} in (1, 2, 30)",
        f"{a} between 3 and :x and {b} is missing",
    ][which]


def test_a_storm_of_changes_leaves_nothing_behind() -> None:
    sizes = storm(30_000)
    assert max(sizes[3:]) <= 1.5 * sizes[2]


if __name__ == "__main__":
    print(storm(int(sys.argv[1])))  # noqa: T201 - for who runs it
