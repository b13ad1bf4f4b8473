from __future__ import annotations

import os

import numpy as np
import pytest

from tests.dissemination.worlds import make_world
from tests.views.aggregates.every_range import Change, Point, point_changes
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.cn_plus.broadcasts import (
    Broadcast,
    SubscriptionMinima,
    lowest_in_ranges,
    minimum_rows,
)
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.views.aggregates.base import PointError
from tocsin.views.changes import PointChanges

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
TABLE: list[Point] = [(10, 10), (20, 3), (30, 8), (40, 12), (50, 5), (70, 6), (70, 11), (100, 2)]
RANGES: list[Point] = [(15, 60), (18, 65), (25, 60), (35, 80), (60, 90)]


def minima_of(points: list[Point], ranges: list[Point], nodes: int = 1) -> SubscriptionMinima:
    x, y = np.array(points, dtype=float).reshape(-1, 2).T.copy()
    lows, highs = np.array(ranges, dtype=float).reshape(-1, 2).T.copy()
    queries = RangeQueries("min", x, y, lows, highs)
    can = build_can(
        nodes, Splitting.SUBSCRIPTIONS, lows=lows, highs=highs, rows=x, domain=(0.0, 120.0), seed=1
    )
    return SubscriptionMinima(can, queries, can.locate(lows, highs))


def follow(minima: SubscriptionMinima, *changes: Change) -> Broadcast:
    return minima.apply(point_changes(changes))


@pytest.mark.parametrize(
    ("change", "altered"),
    [
        (((40, 12), (40, 4)), {2: 4, 3: 4}),
        (((50, 5), (50, 9)), {2: 8, 3: 6}),
        (((70, 11), (70, 7)), {}),
        (((40, 12), (40, 5)), {}),
        (((70, 6), (70, 8)), {4: 8}),
        (((20, 3), (20, 5)), {0: 5, 1: 5}),
        (((50, 5), None), {2: 8, 3: 6}),
        ((None, (60, 3)), {2: 3, 3: 3, 4: 3}),
        (((50, 5), (80, 7)), {2: 8, 3: 6}),
    ],
)
def test_answers_of_the_example(change: Change, altered: dict[int, float]) -> None:
    for nodes in (1, 2, 5, 9):
        minima = minima_of(TABLE, RANGES, nodes)
        answers = follow(minima, change).answers
        numbers = minima.subscriptions[answers.position].tolist()
        assert dict(zip(numbers, answers.new.tolist(), strict=True)) == altered
        assert len(numbers) == len(altered)


def test_a_fall_reaches_part_of_its_quadrant_each_zone_from_one_that_was_reached() -> None:
    spared = 0
    for seed in range(60 if LONG else 6):
        world = make_world(seed, nodes=40, subscriptions=200, events=150, splitting=list(Splitting)[seed % 3])
        queries, can = world.queries, world.setting.can
        minima = SubscriptionMinima(can, queries, can.locate(queries.lows, queries.highs))
        for batch in world.batches:
            passed = minima.apply(batch)
            falls = (batch.old_x == batch.new_x) & (batch.new_y < batch.old_y)
            is_fall = falls[np.repeat(passed.changes, np.diff(passed.trees.starts))]
            assert passed.is_reached[~is_fall].all()
            # Roots are always reached, and every other reached zone has it from a reached zone.
            assert passed.is_reached[passed.trees.starts[:-1]].all()
            for begin, end in zip(passed.trees.starts[:-1], passed.trees.starts[1:], strict=True):
                reached = passed.is_reached[begin:end]
                assert set(passed.trees.parents[begin:end][reached]) <= {
                    -1,
                    *passed.trees.zones[begin:end][reached],
                }
            spared += int((~passed.is_reached).sum())
    assert spared > 0


def test_a_fall_to_another_rows_height_at_its_x_ends_where_somebody_knows_that_row() -> None:
    ranges: list[Point] = [(50, 60), (10, 90), (5, 110), (40, 100), (1, 119), (30, 70)]
    passed = follow(minima_of([(55, 1), (55, 9)], ranges, nodes=6), ((55, 9), (55, 1)))
    assert not len(passed.answers.change)
    # The owner of (55, 55) has the subscription of [50, 60], and hands on to nobody.
    assert len(passed.trees.zones) == 6
    assert passed.is_reached.tolist() == [True] + [False] * 5


def test_a_subscription_that_loses_its_minimum_requests_the_stairs_on_both_sides() -> None:
    minima = minima_of(TABLE, [(15, 95), (35, 75)])
    passed = follow(minima, ((20, 3), (20, 4)), ((50, 5), (50, 20)))
    # The first change is still a minimum of one; the second one's next minimum is elsewhere.
    assert passed.answers.new.tolist() == [4, 6]
    assert passed.requests.x.tolist() == [20, 50]
    assert passed.messages.fields.tolist() == [1, 6]  # nothing lower than 4; (40, 12) and (70, 6)


def test_several_equal_rows_are_lost_one_by_one() -> None:
    minima = minima_of([(50, 1), (50, 1), (60, 2)], [(40, 70)])
    passed = follow(minima, ((50, 1), None), ((50, 1), None), ((60, 2), None))
    assert passed.answers.change.tolist() == [1, 2]
    assert passed.answers.new.tolist() == [2, np.inf]
    assert len(passed.requests.x) == 3


def test_changes_before_the_change_of_a_missing_row_are_applied() -> None:
    minima = minima_of(TABLE, RANGES)
    with pytest.raises(PointError, match=r"change 1: its old point \(41\.0, 12\.0\) is not stored"):
        follow(minima, ((50, 5), None), ((41, 12), None), ((70, 6), None))
    assert minima.rows == len(TABLE) - 1
    assert [minima.height(number) for number in range(5)] == [3, 3, 8, 6, 6]


def test_rows_and_lines_get_room() -> None:
    minima = minima_of([(50, 100)], [(40, 60)] * 4_000)
    count = 40
    answers = follow(minima, *((None, (50, 99 - y)) for y in range(count))).answers
    assert len(answers.change) == 4_000 * count
    assert minima.rows == count + 1
    assert answers.new[-1] == 99 - (count - 1)


def test_a_row_that_stays_as_it_is_is_forwarded_and_alters_nothing() -> None:
    minima = minima_of(TABLE, RANGES, nodes=5)
    passed = follow(minima, ((50, 5), (50, 5)))
    assert passed.is_reached.all()
    assert not len(passed.answers.change)
    assert not len(passed.requests.x)
    empty = minima.apply(PointChanges(*np.empty((4, 0))))
    assert not len(empty.trees.zones)


def test_the_lowest_row_of_each_range_is_found() -> None:
    random = np.random.default_rng(5)
    for rows in (0, 1, 2, 7, 40):
        x, height = random.integers(0, 12, (2, rows)).astype(float)
        low, high = np.sort(random.integers(-1, 14, (80, 2)), axis=1).astype(float).T.copy()
        found_x, found = lowest_in_ranges(x, height, low, high)
        for place in range(80):
            within = {
                (h, a)
                for a, h in zip(x.tolist(), height.tolist(), strict=True)
                if low[place] <= a <= high[place]
            }
            if within:
                assert (found[place], found_x[place]) == min(within)
            else:
                assert np.isinf(found[place])
                assert np.isnan(found_x[place])


def test_minima_at_close_numbers_are_distinguished() -> None:
    for x in (np.arange(256.0), np.arange(1, 50) / 10):
        counts = minimum_rows(np.zeros(len(x), dtype=np.int64), 1, x, x, (x, x)).counts[0]
        assert counts.sum() == len(x)
        assert np.count_nonzero(counts) > 0.45 * len(x)
