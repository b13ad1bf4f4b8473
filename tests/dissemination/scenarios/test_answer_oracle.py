import numpy as np

from tocsin.dissemination.scenarios.answer_oracle import Recomputation, sample_numbers
from tocsin.dissemination.scenarios.walks import draw_points, draw_updates
from tocsin.views.changes import PointChanges

NAN = float("nan")


def test_the_sample_is_spread_over_all() -> None:
    assert sample_numbers(100, 3).tolist() == [0, 49, 99]
    assert sample_numbers(2, 50).tolist() == [0, 1]


def test_changes_one_by_one_and_all_at_once_lead_to_the_same_answers() -> None:
    points = draw_points(50, seed=3)
    changes = draw_updates(points, 80, spikes=0.2, seed=3).changes
    lows = np.linspace(0, 9_000, 10)
    one_by_one, at_once = (Recomputation("sum", points.x, points.y, lows, lows + 1_000) for _ in range(2))
    for place in range(len(changes)):
        one_by_one.change(changes, place)
    at_once.change_all(changes)
    for number in range(len(lows)):
        assert at_once.answer(number) == one_by_one.answer(number)


def test_rows_come_and_go_however_often_they_are_equal() -> None:
    ranges = np.array([0.0, 5.0]), np.array([2.0, 5.0])
    now = Recomputation("count", np.array([1.0, 1.0]), np.array([2.0, 2.0]), *ranges)
    comes, goes = (NAN, NAN, 1.0, 2.0), (1.0, 2.0, NAN, NAN)
    now.change_all(PointChanges(*np.array([comes, goes, goes, comes, (1.0, 2.0, 5.0, 2.0)]).T.copy()))
    assert (now.answer(0), now.answer(1)) == (1.0, 1.0)


def test_altered_answers_are_sorted_by_change_and_subscription() -> None:
    ranges = np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0, 3.0])
    now = Recomputation("min", np.array([1.0, 2.0]), np.array([5.0, 6.0]), *ranges)
    changes = PointChanges(*np.array([(1.0, 5.0, 1.0, 7.0), (2.0, 6.0, NAN, NAN)]).T.copy())
    found = now.apply_changes(changes, np.array([0, 2]))
    assert [one[:3] for one in found] == [(0, 0, 5.0), (1, 0, 6.0), (1, 2, 6.0)]
    assert found[0].new == 6.0
    assert found[1].new == 7.0
    assert found[2].new != found[2].new


def test_a_sum_beyond_all_floats_is_infinite_and_one_that_comes_back_is_exact() -> None:
    y = np.array([1e308, 1e308, -1e308, -1e308, -1e308])
    x = np.arange(5.0)
    ranges = np.array([0.0, 0.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    total, mean = (Recomputation(kind, x, y, *ranges) for kind in ("sum", "avg"))
    assert [total.answer(number) for number in range(4)] == [np.inf, 1e308, 0.0, -np.inf]
    assert (mean.answer(0), mean.answer(1)) == (np.inf, 1e308 / 3)
