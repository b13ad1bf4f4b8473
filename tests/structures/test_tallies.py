from __future__ import annotations

import math
from fractions import Fraction

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.tallies import COUNT, Window, add_numbers, rounded, widen_tallies, window_of

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)
AWKWARD = st.sampled_from(
    [
        0.0,
        -0.0,
        0.1,
        0.2,
        0.3,
        -0.3,
        1e16,
        1.0,
        -1.0,
        1e300,
        -1e300,
        1e-300,
        5e-324,
        2.0**53 + 2,
        0.5,
        2.0**60,
    ]
)


@numba.njit(nogil=True)
def round_tally(rows: np.ndarray, row: int, bottom: int) -> float:
    return rounded(rows, row, bottom)


def tallied(numbers: list[float], window: Window) -> np.ndarray:
    rows = np.zeros((1, 1 + window.limbs), dtype=np.int64)
    add_numbers(
        rows, np.zeros(len(numbers), dtype=np.int64), window.bottom, np.array(numbers, dtype=float), 1
    )
    return rows


def sums_of(rows: np.ndarray, window: Window) -> list[float]:
    return [round_tally(rows, row, window.bottom) for row in range(len(rows))]


def exact(numbers: list[float]) -> float:
    total = sum(map(Fraction, numbers), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@given(st.lists(FLOATS | AWKWARD, max_size=12))
def test_the_sum_is_the_nearest_float(numbers: list[float]) -> None:
    window = window_of(np.array(numbers, dtype=float))
    rows = tallied(numbers, window)
    assert rows[0, COUNT] == len(numbers)
    assert sums_of(rows, window) == [exact(numbers)]


@given(st.lists(AWKWARD, max_size=8), st.lists(AWKWARD, max_size=8))
def test_a_wider_window_holds_the_same_sums_and_more(numbers: list[float], more: list[float]) -> None:
    narrow = window_of(np.array(numbers, dtype=float))
    wide = narrow.union(window_of(np.array(more, dtype=float)))
    rows = widen_tallies(tallied(numbers, narrow), narrow, wide)
    assert sums_of(rows, wide) == [exact(numbers)]
    places = np.zeros(len(more), dtype=np.int64)
    add_numbers(rows, places, wide.bottom, np.array(more, dtype=float), 1)
    assert sums_of(rows, wide) == [exact(numbers + more)]
    add_numbers(rows, places, wide.bottom, np.array(more, dtype=float), -1)
    assert sums_of(rows, wide) == [exact(numbers)]
    assert rows[0, COUNT] == len(numbers)


def test_ties_go_to_the_even_float_whatever_lies_far_below() -> None:
    half = 2.0**53 + 2 - 2.0**53  # what lies half way between floats of this size is an odd whole number
    assert half == 2.0
    for numbers in ([2.0**53, 1.0], [2.0**53, 1.0, 5e-324], [-(2.0**53), -1.0], [-(2.0**53), -1.0, -5e-324]):
        window = window_of(np.array(numbers))
        assert sums_of(tallied(numbers, window), window) == [exact(numbers)]


def test_many_large_numbers_do_not_wrap_around() -> None:
    numbers = [1.7e308, 1.7e308, -1.7e308, -1.7e308, -1.7e308, -1.7e308, 1.7e308, 1.0]
    window = window_of(np.array(numbers))
    assert sums_of(tallied(numbers, window), window) == [exact(numbers)]
    assert sums_of(tallied(numbers[:2], window), window) == [math.inf]
    assert sums_of(tallied(numbers[2:6], window), window) == [-math.inf]


def test_windows_are_as_narrow_as_the_numbers_allow() -> None:
    assert window_of(np.array([1.0, 1e6, np.nan, -0.0])) == Window(0, 1)
    assert window_of(np.array([12.5, 99.75])) == Window(-1, 2)
    assert window_of(np.array([])) == Window(0, 1)
    assert window_of(np.array([1e300, 1e-300])).limbs < 40
