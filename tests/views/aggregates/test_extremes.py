from __future__ import annotations

import math
import os
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.views.aggregates.every_range import Change, Following, Point, matched_ranges, point_changes
from tocsin.structures.a2b_tree import new_a2b_tree
from tocsin.views.aggregates.base import ByRange, PointError
from tocsin.views.aggregates.extremes import Extremes, LatestValues
from tocsin.views.aggregates.registry import range_aggregate
from tocsin.views.messages import Messages
from tocsin.views.state import Influence

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
INF, NAN = math.inf, math.nan
NULL = None

# The brief's table: t1 to t8, the subscriptions s1 to s5, and what each change of the first table tells whom.
TABLE: list[Point] = [(10, 10), (20, 3), (30, 8), (40, 12), (50, 5), (70, 6), (70, 11), (100, 2)]
RANGES: list[Point] = [(15, 60), (18, 65), (25, 60), (35, 80), (60, 90)]
ROWS: list[tuple[Change, Influence, list[tuple[float | None, ...]], dict[int, float]]] = [
    (((40, 12), (40, 4)), Influence.GOOD, [(4, 40, 40, 20, 100)], {3: 4, 4: 4}),
    (
        ((50, 5), (50, 9)),
        Influence.BAD,
        [(9, 50, 50, 30, 70), (8, 30, 50, 20, 70), (6, 50, 70, 20, 100)],
        {3: 8, 4: 6},
    ),
    (((70, 11), (70, 7)), Influence.IGNORABLE, [], {}),
    (((40, 12), (40, 6)), Influence.GOOD, [(6, 40, 40, 20, 50)], {}),
    (((40, 12), (40, 5)), Influence.GOOD, [(5, 40, 40, 20, 50)], {}),
    (((40, 12), (40, 13)), Influence.GOOD, [(13, 40, 40, 30, 50)], {}),
    (((70, 6), (70, 8)), Influence.GOOD, [(8, 70, 70, 50, 100)], {5: 8}),
    (((30, 8), (30, 12)), Influence.BAD, [(12, 30, 30, 20, 50)], {}),
    (((20, 3), (20, 5)), Influence.BAD, [(5, 20, 20, -INF, 100)], {1: 5, 2: 5}),
    (
        ((100, 2), (100, 20)),
        Influence.BAD,
        [(20, 100, 100, 70, INF), (6, 70, 100, 50, INF), (5, 50, 100, 20, INF), (3, 20, 100, -INF, INF)],
        {},
    ),
    (
        ((50, 5), None),
        Influence.BAD,
        [(NULL, 50, 50, 40, 70), (12, 40, 50, 30, 70), (8, 30, 50, 20, 70), (6, 50, 70, 20, 100)],
        {3: 8, 4: 6},
    ),
    ((None, (60, 3)), Influence.GOOD, [(3, 60, 60, 20, 100)], {3: 3, 4: 3, 5: 3}),
    (
        ((50, 5), (80, 7)),
        Influence.BAD,
        [
            (NULL, 50, 50, 40, 70),
            (12, 40, 50, 30, 70),
            (8, 30, 50, 20, 70),
            (6, 50, 70, 20, 80),
            (7, 80, 80, 70, 100),
            (6, 50, 80, 20, 100),
        ],
        {3: 8, 4: 6},
    ),
]


def columns_of(pairs: list[Point]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def loaded(points: list[Point], *, greatest: bool = False) -> Extremes:
    reformulator = Extremes(greatest=greatest)
    reformulator.load(*columns_of(points))
    return reformulator


def following(by_range: str, size: int, points: list[Point]) -> Following:
    """Return all ranges over a small domain as followers of a tree with small nodes: few points make several levels."""
    one = Following(by_range, [float(x) for x in range(size)], points)
    assert isinstance(one.server, Extremes)
    one.server._tree = new_a2b_tree(4, 4)
    one.server.reformulate(point_changes([(None, point) for point in points]))
    return one


def told_by(messages: Messages) -> list[tuple[float | None, ...]]:
    value = [None if math.isnan(number) else number for number in messages.payload["value"].tolist()]
    ends = (messages.inner_l, messages.inner_r, messages.outer_l, messages.outer_r)
    return list(zip(value, *(end.tolist() for end in ends), strict=True))


@pytest.mark.parametrize(("change", "influence", "messages", "notified"), ROWS)
def test_a_change_of_the_papers_table_is_reported_as_in_the_paper(
    change: Change,
    influence: Influence,
    messages: list[tuple[float | None, ...]],
    notified: dict[int, float],
) -> None:
    classes = np.empty(1, dtype=np.int8)
    found = loaded(TABLE).reformulate(point_changes([change]), classes)
    assert told_by(found) == messages
    assert classes.tolist() == [influence]
    answers = LatestValues()
    answers.begin(np.arange(5), loaded(TABLE).present(*columns_of(RANGES)))
    changed = answers.apply(found, matched_ranges(found, *columns_of(RANGES)))
    assert dict(zip((changed.numbers + 1).tolist(), changed.new.tolist(), strict=True)) == notified
    assert [answers.answer(place) for place in range(5)] == [
        notified.get(place + 1, least) for place, least in enumerate([3, 3, 5, 5, 6])
    ]


def test_max_is_min_upside_down() -> None:
    least, greatest = loaded(TABLE), loaded([(x, -y) for x, y in TABLE], greatest=True)
    changes = [change for change, *_ in ROWS[:2]]
    upside_down = [tuple(point and (point[0], -point[1]) for point in change) for change in changes]
    expected = told_by(least.reformulate(point_changes(changes)))
    found = told_by(greatest.reformulate(point_changes(upside_down)))  # type: ignore[arg-type]
    assert [(-value if value is not None else None, *ends) for value, *ends in found] == expected


@pytest.mark.parametrize("name", ["min", "max"])
def test_kinds_are_found_by_their_names(name: str) -> None:
    by_range = range_aggregate(name)
    assert isinstance(by_range, ByRange)
    reformulator = by_range.reformulator()
    reformulator.load(np.array([1.0, 2.0]), np.array([5.0, 7.0]))
    present = reformulator.present(np.array([0.0, 5.0]), np.array([3.0, 6.0]))
    assert present["value"][0] == (5.0 if name == "min" else 7.0)
    assert math.isnan(present["value"][1])
    assert reformulator.nbytes > 0
    assert by_range.answers().nbytes > 0


def test_zero_has_no_sign() -> None:
    reformulator = loaded([(-0.0, 1.0), (2.0, 0.0)])
    messages = reformulator.reformulate(point_changes([((0.0, 1.0), (0.0, -0.0)), ((2.0, -0.0), (2.0, 0.0))]))
    assert told_by(messages) == [(0.0, 0.0, 0.0, -INF, 2.0)]
    assert not np.signbit(messages.payload["value"][0])


def test_a_change_of_a_point_that_is_not_stored_is_refused() -> None:
    reformulator = loaded(TABLE)
    with pytest.raises(PointError, match=r"change 1: its old point \(50\.0, 6\.0\) is not stored"):
        reformulator.reformulate(point_changes([(None, (60, 3)), ((50, 6), (50, 7))]))


def test_a_hull_of_any_length_has_room() -> None:
    # The points rise towards 0 from both sides, with equal ones left and right: each is a step.
    steps = [(float(x), -float(abs(x))) for x in range(-300, 301) if x]
    reformulator = loaded([*steps, (0.0, -1000.0)])
    messages = reformulator.reformulate(point_changes([((0.0, -1000.0), None)]))
    assert len(messages) == 601
    for (value, *_), (lower, *_) in pairwise(told_by(messages)[1:]):
        assert value is not None
        assert lower is not None
        assert lower <= value


def test_answers_of_places_begin_and_end() -> None:
    answers = LatestValues()
    answers.begin(np.array([3, 500]), {"value": np.array([1.5, NAN])})
    assert (answers.answer(3), answers.answer(500)) == (1.5, None)
    answers.end(np.array([3]))
    answers.begin(np.array([3]), {"value": np.array([2.5])})
    assert answers.answer(3) == 2.5


@settings(max_examples=1_000 if LONG else 40)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=14),
    st.lists(
        st.tuples(st.integers(0, 20), st.one_of(st.none(), st.tuples(st.integers(0, 6), st.integers(0, 3)))),
        max_size=8,
    ),
    st.sampled_from(["min", "max"]),
)
def test_each_changed_range_is_reported_once_and_no_other(
    table: list[Point], steps: list[tuple[int, Point | None]], by_range: str
) -> None:
    held, changes = list(table), list[Change]()
    for place, new in steps:
        old = held.pop(place) if place < len(held) else None
        held += [new] if new else []
        changes.append((old, new))
    followers = following(by_range, 7, table)
    followers.follow(changes)
    followers.check()


@pytest.mark.parametrize(("points", "size", "heights"), [(30, 12, 4), (12, 9, 40), (60, 8, 3)])
def test_long_runs_of_changes_with_many_ties(points: int, size: int, heights: int) -> None:
    chance = random.Random(points)  # noqa: S311

    def anywhere() -> Point:
        return float(chance.randrange(size)), float(chance.randrange(heights))

    followers = following("min", size, [anywhere() for _ in range(points)])
    held = list(followers.points)
    for _ in range(400 if LONG else 1):
        changes: list[Change] = []
        for _ in range(100):
            way = chance.random()
            old = held.pop(chance.randrange(len(held))) if held and way > len(held) / points / 8 else None
            new = None if old is not None and way < 0.25 else anywhere()
            if old is not None and new is not None and way > 0.6:
                new = (old[0], new[1])
            held += [new] if new is not None else []
            changes.append((old, new))
        followers.follow(changes)
    followers.check()
