"""Every index of ranges finds the same for messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.matching import registered_matchers
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats
from tocsin.views.coverage import Coverage
from tocsin.views.messages import Messages
from tocsin.views.range_index import RangeIndex, new_range_index

MATCHERS = [None, *sorted(registered_matchers())]
WIDEST = float(np.finfo(np.float64).max)

numbers = st.one_of(
    st.integers(-4, 4).map(float), st.sampled_from([-WIDEST, WIDEST, -0.0, 0.1, 5e-324, 2.0**60])
)
ranges = st.tuples(numbers, numbers).map(lambda ends: (min(ends), max(ends)))
outer = st.one_of(numbers, st.sampled_from([-np.inf, np.inf]))
rectangles = st.lists(st.tuples(outer, numbers, numbers, outer), max_size=8)


def messages_of(sides: list[tuple[float, float, float, float]]) -> Messages:
    outer_l, inner_l, inner_r, outer_r = np.array(sides, dtype=np.float64).reshape(-1, 4).T.copy()
    return Messages(np.arange(len(sides)), inner_l, inner_r, outer_l, outer_r)


def ends_of(pairs: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    lows, highs = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return lows, highs


def matched(index: RangeIndex, messages: Messages) -> list[list[int]]:
    found = index.match(messages)
    return [sorted(found[i].tolist()) for i in range(len(found))]


def scanned(held: dict[int, tuple[float, float]], messages: Messages) -> list[list[int]]:
    sides = zip(messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r, strict=True)
    return [
        sorted(p for p, (low, high) in held.items() if a < low <= b and c <= high < d) for a, b, c, d in sides
    ]


@pytest.mark.parametrize("matcher", MATCHERS)
@settings(max_examples=settings().max_examples // 16)
@given(first=st.lists(ranges, max_size=20), then=st.lists(ranges, max_size=20), sides=rectangles)
def test_a_message_reaches_the_ranges_between_its_ends(
    matcher: str | None,
    first: list[tuple[float, float]],
    then: list[tuple[float, float]],
    sides: list[tuple[float, float, float, float]],
) -> None:
    index, messages = new_range_index(matcher, "min(per) of stock"), messages_of(sides)
    assert matched(index, messages) == [[]] * len(sides)
    index.add(np.arange(len(first)), *ends_of(first))
    held = dict(enumerate(first))
    assert matched(index, messages) == scanned(held, messages)
    index.remove(np.array([0, 3, 99]))
    held = {place: ends for place, ends in held.items() if place not in (0, 3)}
    places = [0, *range(30, 29 + len(then))][: len(then)]  # one that was held is given again
    index.add(np.array(places, dtype=np.int64), *ends_of(then))
    held |= dict(zip(places, then, strict=True))
    assert matched(index, messages) == scanned(held, messages)
    assert index.nbytes > 0


def test_a_matcher_that_is_not_there_is_an_error() -> None:
    with pytest.raises(MatcherError, match="there is no matcher `pionts`"):
        new_range_index("pionts", "min")


@settings(max_examples=settings().max_examples // 4)
@given(
    st.lists(st.tuples(st.booleans(), st.lists(ranges, max_size=10)), max_size=6),
    rectangles,
)
def test_coverage_returns_whether_any_subscription_can_be_affected(
    steps: list[tuple[bool, list[tuple[float, float]]]], sides: list[tuple[float, float, float, float]]
) -> None:
    coverage, messages = Coverage(), messages_of(sides)
    held: list[tuple[float, float]] = []
    for comes, pairs in steps:
        if comes:
            coverage.add(*ends_of(pairs))
            held += pairs
        else:
            coverage.remove(*ends_of(pairs))
            for pair in pairs:
                if pair in held:
                    held.remove(pair)
        assert coverage.concerns(messages).tolist() == [
            bool(ids) for ids in scanned(dict(enumerate(held)), messages)
        ]
        assert len(coverage) == len({(low + 0.0, high + 0.0) for low, high in held})
    assert coverage.nbytes > 0
