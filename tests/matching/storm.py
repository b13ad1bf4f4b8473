"""Very many random adds, removals and events, played on a matcher and on another one beside it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tocsin.language import Template
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, create_matcher

HELD = 5_000  # subscriptions, about


def storm(matcher: Matcher, operations: int, check: Callable[[], None], seed: int = 1) -> list[int]:
    """Do so many operations, compare with another matcher, check ten times, and return the bytes then; all is removed at last."""
    other = create_matcher("counting")
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
            check()
            sizes.append(matcher.stats().bytes)
    matcher.remove(held)
    check()
    stats = matcher.stats()
    assert (stats.conjunctions, stats.predicates) == (0, 0)
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
