"""Exact sums where floats are awkward, and windows that grow while subscribers listen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.views.aggregates.every_range import Following, Point, point_changes
from tocsin.views.aggregates.base import PointError
from tocsin.views.aggregates.registry import range_aggregate


def test_numbers_finer_and_larger_than_any_before_are_added_exactly() -> None:
    points: list[Point] = [(1.0, 3.0), (2.0, 5.0)]
    following = Following("sum", [1.0, 2.0, 3.0], points)
    for y in (0.1, 1e-300, 1e16, -1e300, 1.0, 5e-324):
        following.follow([(None, (3.0, y)), ((2.0, 5.0), (1.0, y)), ((1.0, y), (2.0, 5.0))])
        following.check()
    for y in (-1e300, 1e16, 1e-300):
        following.follow([((3.0, y), None)])
        following.check()


def test_a_sum_that_rounds_to_the_same_float_is_not_reported() -> None:
    following = Following("sum", [1.0, 2.0], [(1.0, 1e16)])
    _, changed = following.make([(None, (2.0, 0.5))])
    names = {
        (low, high): (old, new)
        for low, high, old, new in zip(
            following.lows[changed.numbers],
            following.highs[changed.numbers],
            changed.old,
            changed.new,
            strict=True,
        )
    }
    assert (1.0, 2.0) not in names
    assert math.isnan(names[2.0, 2.0][0])
    assert names[2.0, 2.0][1] == 0.5


def test_a_zero_in_an_empty_range_is_reported() -> None:
    following = Following("sum", [1.0, 2.0], [(1.0, 1.0)])
    following.follow([(None, (2.0, -0.0))])
    following.follow([((2.0, -0.0), (2.0, 0.0)), ((2.0, 0.0), None)])


def test_a_count_ignores_changes_of_counted_values() -> None:
    server = range_aggregate("count").reformulator()
    server.load(np.array([1.0]), np.array([0.0]))
    assert len(server.reformulate(point_changes([((1.0, 0.0), (1.0, 0.0))]))) == 0
    assert len(server.reformulate(point_changes([((1.0, 0.0), (2.0, 0.0))]))) == 2


def test_a_sum_beyond_all_floats_is_infinite_and_comes_back() -> None:
    following = Following("avg", [1.0], [(1.0, 1.7e308)])
    _, changed = following.make([(None, (1.0, 1.7e308)), ((1.0, 1.7e308), None)])
    assert changed.new.tolist() == [math.inf, 1.7e308]


@pytest.mark.parametrize("kind", ["count", "sum", "avg"])
def test_many_points_many_blocks(kind: str) -> None:
    rng = np.random.default_rng(5)
    xs, ys = rng.integers(300, size=1_500).astype(float).tolist(), rng.random(1_500).tolist()
    points = [(x, 0.0 if kind == "count" else y) for x, y in zip(xs, ys, strict=True)]
    following = Following(kind, [0.0, 7.0, 50.0, 51.0, 290.0, 400.0], points)
    moves = [(old, (new, old[1])) for old, new in zip(points[:400], reversed(xs), strict=False)]
    following.make(moves)
    following.points[:400] = [new for _, new in moves]
    following.recomputed = following.recompute()
    following.check()
    following.make([(old, None) for old in following.points[:1_300]])
    del following.points[:1_300]
    following.recomputed = following.recompute()
    following.check()


def test_a_new_table_takes_the_place_of_the_old() -> None:
    server = range_aggregate("sum").reformulator()
    answers = range_aggregate("sum").answers()
    for x in (1.0, 2.0):
        server.load(np.array([x]), np.array([x / 4]))
        answers.begin(np.array([3, 0]), server.present(np.array([0.0, 2.0]), np.array([5.0, 2.0])))
        assert (answers.answer(3), answers.answer(0)) == (x / 4, 0.5 if x == 2 else None)
    assert server.nbytes > 0
    assert answers.nbytes > 0


def test_a_point_that_is_not_there_cannot_go() -> None:
    server = range_aggregate("sum").reformulator()
    with pytest.raises(PointError, match="change 0: its old point"):
        server.reformulate(point_changes([((1.0, 2.0), None)]))
