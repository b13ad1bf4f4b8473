"""Families of ranges: their state has the size of the ranges, and no message is sent in vain."""

from __future__ import annotations

import numpy as np

from tocsin.views.changes import PointChanges
from tocsin.views.range_family import RangeFamily


def test_messages_that_affect_no_subscription_are_not_sent() -> None:
    random = np.random.default_rng(3)
    families = [RangeFamily("min"), RangeFamily("min", check=True)]
    x, y = random.integers(0, 100, 40).astype(np.float64), random.integers(0, 20, 40).astype(np.float64)
    numbers = np.arange(30)
    lows = random.integers(0, 40, 30).astype(np.float64)
    for family in families:
        family.load_points(x, y)
        family.add_ranges(numbers, lows, lows + numbers % 5)
        family.remove(numbers[::3])
    for _ in range(20):
        place = random.integers(0, 40, 8)
        place = np.unique(place)
        new = random.integers(0, 20, len(place)).astype(np.float64)
        changes = [
            family.change_points(PointChanges(x[place], y[place], x[place], new)) for family in families
        ]
        y[place] = new
        one, other = [
            sorted(zip(t.rows.tolist(), t.numbers.tolist(), t.new.tolist(), strict=True)) for t in changes
        ]
        assert [repr(each) for each in one] == [repr(each) for each in other]
    sent = [family.stats().messages for family in families]
    assert 0 < sent[1] < sent[0]


def test_state_does_not_depend_on_the_size_of_numbers() -> None:
    families = [RangeFamily("min"), RangeFamily("min")]
    lows, highs = np.array([0.0, 5.0, 9.0]), np.array([6.0, 8.0, 1.0])
    numbers = [np.array([0, 1, 2]), np.array([5_000_000, 3, 4_000_000_000])]
    changes = []
    for family, those in zip(families, numbers, strict=True):
        family.load_points(np.array([1.0, 7.0]), np.array([3.0, 4.0]))
        family.add_ranges(those, lows, highs)
        none = np.array([np.nan])
        changes.append(family.change_points(PointChanges(none, none, np.array([5.5]), np.array([1.0]))))
        family.remove(those[:1])
        family.add_ranges(those[:1], lows[:1], highs[:1])
        assert [family.answer(int(number)) for number in those] == [1, 1, None]
    assert [sorted(one.numbers.tolist()) for one in changes] == [[0, 1], [3, 5_000_000]]
    assert families[0].stats() == families[1].stats()
