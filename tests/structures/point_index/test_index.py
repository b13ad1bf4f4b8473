"""The point index against linear scans, in the orders that trees do not like."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.structures.point_index.beside import IndexBesideDicts, Point, Rectangle, rectangles
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Top

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
WIDEST = float(np.finfo(np.float64).max)
EVERYWHERE: Rectangle = (-np.inf, np.inf, -np.inf, np.inf)

coordinates = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([-WIDEST, WIDEST, -0.0, 5e-324, 0.1]))
sides = st.one_of(coordinates, st.sampled_from([-np.inf, np.inf]))
asked = st.lists(st.tuples(sides, sides, sides, sides), max_size=6)
seeds = st.integers(0, 2**32)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "scatter", "remove"]),
        st.integers(0, 1),
        st.integers(1, 200),
        st.sampled_from([1, 4, 50]),
        st.sampled_from(["as they come", "sorted", "falling", "out of both ends"]),
        seeds,
    ),
    min_size=1,
    max_size=8,
)


def drawn(ids: list[int], spread: int, order: str, seed: int) -> dict[int, Point]:
    """Return points for ids, many of them equal where the spread is small."""
    points = np.random.default_rng(seed).integers(0, spread, (len(ids), 2)) * 0.5
    if order != "as they come":
        points = points[np.lexsort(points.T)]
    if order == "falling":
        points = points[::-1]
    if order == "out of both ends":
        points = np.concatenate([points[::2], points[1::2][::-1]])
    return {id_: (float(x1), float(x2)) for id_, (x1, x2) in zip(ids, points, strict=True)}


@settings(max_examples=settings().max_examples // 4)
@given(steps, asked)
def test_trees_answer_as_a_scan_does(
    steps: list[tuple[str, int, int, int, str, int]], asked: list[Rectangle]
) -> None:
    both, top = IndexBesideDicts(2), 0
    for step, tree, count, spread, order, seed in steps:
        held = sorted(set().union(*both.held))
        if step == "remove":
            gone = np.random.default_rng(seed).permutation(held)[:count].tolist()
            both.remove([*gone, top + 7, -1])
            continue
        free = [id_ for id_ in range(top + count) if id_ not in held][:count]  # ids are given again
        top = max(top, free[-1] + 1)
        points = drawn(free, spread, order, seed)
        if step == "add":
            both.add(tree, points)
        else:
            both.add_scattered(points)
    both.check([*asked, EVERYWHERE])


@given(st.lists(st.tuples(coordinates, coordinates), max_size=30), asked)
def test_the_ends_of_a_rectangle_are_open_and_closed_as_it_says(
    points: list[Point], asked: list[Rectangle]
) -> None:
    both = IndexBesideDicts()
    both.add(0, dict(enumerate(points)))
    both.check(asked)


@pytest.mark.parametrize("order", ["as they come", "sorted", "falling", "out of both ends"])
@pytest.mark.parametrize("spread", [1, 3, 10_000])
def test_points_that_come_one_by_one_make_a_tree_in_balance(order: str, spread: int) -> None:
    count = 3_000
    both = IndexBesideDicts()
    both.add_scattered(drawn(list(range(count)), spread, order, 7))
    both.check([EVERYWHERE, (0.0, spread / 8, spread / 4, spread)])
    both.remove(range(0, count, 3))
    both.remove(range(count // 2))
    both.check([EVERYWHERE, (0.0, spread / 8, spread / 4, spread)])


def test_a_tree_that_loses_one_side_is_brought_into_balance() -> None:
    both = IndexBesideDicts()
    both.add(0, {i: (float(i), 0.0) for i in range(2_000)})
    both.remove(range(1_900))
    both.check([EVERYWHERE, (1_900.0, 1_950.0, 0.0, 1.0)])


def test_space_is_given_back() -> None:
    both = IndexBesideDicts()
    both.add(0, drawn(list(range(20_000)), 1_000, "as they come", 1))
    before = both.index.nbytes
    both.remove(range(19_000))
    both.check([EVERYWHERE])
    assert both.index.state.tops[Top.SLOT] <= 3 * 1_000 + 4_096
    assert both.index.nbytes < before / 2


def test_trees_that_are_given_up_make_room_for_others() -> None:
    index = PointIndex()
    roots = index.plant(100)
    index.fell(roots[:50])
    assert sorted(index.plant(50).tolist()) == sorted(roots[:50].tolist())


def test_results_of_any_size_are_whole() -> None:
    both = IndexBesideDicts()
    both.add(0, drawn(list(range(5_000)), 50, "as they come", 3))
    asked: list[Rectangle] = [EVERYWHERE] * 4
    batch = rectangles(both.roots * 4, asked)
    found, offsets = both.index.find(batch)
    assert offsets.tolist() == [0, 5_000, 10_000, 15_000, 20_000]
    assert all(sorted(found[o : o + 5_000].tolist()) == list(range(5_000)) for o in offsets[:-1])


def test_arrays_that_may_not_be_written_to_are_taken() -> None:
    ids, x = np.arange(3), np.array([1.0, 2.0, 3.0])
    ids.flags.writeable = x.flags.writeable = False
    index = PointIndex()
    (root,) = index.plant(1)
    index.add(root, ids, x, x)
    assert index.find(rectangles([root], [(1.0, 3.0, 0.0, 3.0)]))[0].tolist() == [1]
    index.remove(ids)
    assert not len(index)


def test_an_id_that_is_too_large_is_refused() -> None:
    index = PointIndex()
    (root,) = index.plant(1)
    with pytest.raises(OverflowError, match="divide them among several"):
        index.add(root, np.array([2**31]), np.zeros(1), np.zeros(1))


@pytest.mark.skipif(not LONG, reason="runs only with `make test-long`")
@pytest.mark.parametrize("spread", [3, 100, 1_000_000])
def test_a_hundred_thousand_points_come_and_go(spread: int) -> None:
    random, both = np.random.default_rng(), IndexBesideDicts()
    for turn in range(20):
        held = sorted(both.held[0])
        both.remove(random.permutation(held)[: len(held) // 3].tolist())
        free = [i for i in range(120_000) if i not in both.held[0]]
        order = ["as they come", "sorted", "falling"][turn % 3]
        both.add_scattered(drawn(free[:10_000], spread, order, turn))
        corners = np.sort(random.integers(0, spread, (10, 2, 2)) / 2, axis=2).reshape(10, 4)
        both.check([EVERYWHERE, *((a, b, c, d) for a, b, c, d in corners.tolist())])
