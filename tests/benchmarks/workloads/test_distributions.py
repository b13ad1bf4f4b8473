from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from benchmarks.workloads.distributions import Choice, zipf


def test_zipf_draws_each_number_as_often_as_its_rank_says() -> None:
    drawn = zipf(10, 1.0).draw(np.random.default_rng(1), 200_000)
    expected = 1 / np.arange(1, 11)
    assert np.bincount(drawn, minlength=10) / 200_000 == pytest.approx(expected / expected.sum(), abs=0.005)


def test_without_an_exponent_all_are_alike() -> None:
    drawn = zipf(8, 0.0).draw(np.random.default_rng(1), (1_000, 80))
    assert np.bincount(drawn.reshape(-1)) / 80_000 == pytest.approx(np.full(8, 1 / 8), abs=0.01)


def test_a_row_is_drawn_by_weight_from_the_remaining_ones() -> None:
    weights = np.array([8.0, 4.0, 2.0, 1.0, 0.0])
    rows = Choice(5, weights).distinct(np.random.default_rng(1), 100_000, 3)
    found = rows @ np.array([100, 10, 1])
    for row in permutations(range(4), 3):
        left, probable = 15.0, 1.0
        for number in row:
            probable *= weights[number] / left
            left -= weights[number]
        assert np.mean(found == row[0] * 100 + row[1] * 10 + row[2]) == pytest.approx(probable, abs=0.006)


@pytest.mark.parametrize(
    ("count", "exponent", "width"), [(500, 0.0, 40), (500, 3.0, 30), (6, 40.0, 6), (9, 0.0, 9)]
)
def test_a_row_never_holds_a_number_twice(count: int, exponent: float, width: int) -> None:
    rows = zipf(count, exponent).distinct(np.random.default_rng(1), 300, width)
    assert all(len(set(row)) == width for row in rows.tolist())


def test_a_row_without_weight_is_never_drawn() -> None:
    weights = np.zeros(50)
    weights[[7, 31]] = 1e-9, 3e-9
    drawn = Choice(50, weights).draw(np.random.default_rng(1), 10_000)
    assert set(drawn.tolist()) == {7, 31}
    with pytest.raises(ValueError, match="no 3 different numbers among 2"):
        Choice(50, weights).distinct(np.random.default_rng(1), 1, 3)


def test_weights_that_cannot_be_are_refused() -> None:
    for weights in (np.zeros(3), np.ones(2), np.array([1.0, -1.0, 1.0]), np.array([1.0, np.nan, 1.0])):
        with pytest.raises(ValueError, match="need as many weights"):
            Choice(3, weights)
