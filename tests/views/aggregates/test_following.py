"""Counts, sums, means and distinct values, maintained change by change, equal the recomputed ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.aggregates.every_range import Change, Following, Point, point_changes
from tocsin.views.aggregates.base import PointError
from tocsin.views.aggregates.registry import range_aggregate

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
KINDS = ["count", "sum", "avg", "distinct"]
AWKWARD = [0.0, -0.0, 0.1, 0.2, 0.3, -0.3, 1e16, 1.0, -1.0, 3.0, 1e300, -1e300, 1e-300, 5e-324, 2.0**53 + 2]
YS = {"count": [0.0], "distinct": [0.0, 1.0, 2.0, 5.0]}


def random_changes(
    rng: np.random.Generator, points: list[Point], xs: list[float], ys: list[float], count: int
) -> list[Change]:
    """Return changes of every sort, from these points on; about ten are there at a time."""
    held, changes = list(points), list[Change]()
    for _ in range(count):
        old = held.pop(rng.integers(len(held))) if held and rng.random() < 0.75 else None
        new: Point | None = (xs[rng.integers(len(xs))], ys[rng.integers(len(ys))])
        sort = rng.random()
        if old is not None and new is not None:
            if len(held) > 10 or sort < 0.25:
                new = None
            elif sort < 0.45:
                new = (old[0], new[1])
            elif sort < 0.65:
                new = (new[0], old[1])
        if new is not None:
            held.append(new)
        changes.append((old, new))
    return changes


def follow_at_random(kind: str, seed: int, changes: int) -> None:
    rng = np.random.default_rng(seed)
    xs = [float(x) for x in range(int(rng.integers(1, 7)))]
    every = YS.get(kind, AWKWARD)
    ys = [every[i] for i in rng.integers(len(every), size=rng.integers(1, 6))]
    points = [
        (xs[i], ys[j])
        for i, j in zip(rng.integers(len(xs), size=6), rng.integers(len(ys), size=6), strict=True)
    ]
    following = Following(kind, xs, points)
    done = 0
    while done < changes:
        some = random_changes(rng, following.points, xs, ys, int(rng.integers(1, 40)))
        following.follow(some)
        done += len(some)
        if rng.random() < 0.3:
            following.check()
    following.check()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1))
def test_every_changed_answer_is_reported_once(kind: str, seed: int) -> None:
    follow_at_random(kind, seed, 60)


@pytest.mark.parametrize("kind", ["min", "max", *KINDS])
@pytest.mark.parametrize("absent", [((-1.0, 1.0), None), ((-1.0, 1.0), (-1.0, 1.0))])
def test_changes_before_one_that_is_refused_are_made(kind: str, absent: Change) -> None:
    rng = np.random.default_rng(1)
    points: list[Point] = [(float(x), 1.0) for x in rng.permutation(20_000)]  # more than there is room for
    server, other = range_aggregate(kind).reformulator(), range_aggregate(kind).reformulator()
    with pytest.raises(PointError, match="change 20000: its old point"):
        server.reformulate(point_changes([*((None, point) for point in points), absent, (None, (0.5, 1.0))]))
    other.load(*(np.array(column) for column in zip(*points, strict=True)))
    lows, highs = np.array([0.0, 3.0, 100.0]), np.array([0.7, 9_999.0, 30_000.0])
    for one in (server, other):
        one.reformulate(point_changes([(points[0], (7.5, 2.0)), (points[1], None)]))
    for name, column in server.present(lows, highs).items():
        np.testing.assert_array_equal(column, other.present(lows, highs)[name])


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="`make test-long` runs it")
@pytest.mark.parametrize("kind", KINDS)
def test_every_changed_answer_is_reported_once_over_many_changes(kind: str) -> None:
    for seed in range(100):
        follow_at_random(kind, seed, 1_000)
