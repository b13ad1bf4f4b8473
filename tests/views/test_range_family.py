"""A family whose server knows the ranges there are sends no message in vain, and tells the same."""

from __future__ import annotations

import numpy as np

from tocsin.views.changes import PointChanges
from tocsin.views.range_family import RangeFamily


def test_messages_that_none_can_hear_are_not_sent() -> None:
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
        told = [family.change_points(PointChanges(x[place], y[place], x[place], new)) for family in families]
        y[place] = new
        one, other = [
            sorted(zip(t.change.tolist(), t.places.tolist(), t.new.tolist(), strict=True)) for t in told
        ]
        assert [repr(each) for each in one] == [repr(each) for each in other]
    sent = [family.stats().messages for family in families]
    assert 0 < sent[1] < sent[0]
