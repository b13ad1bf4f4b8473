from __future__ import annotations

import math
import os
import random
from typing import TypeAlias

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tocsin.structures.a2b_tree import (
    _LONE,
    A2BTree,
    _Counter,
    add_points,
    follow,
    least_in_ranges,
    new_a2b_tree,
    precede,
    seek,
    start_left,
    take,
    with_room,
    x_at,
)
from tocsin.structures.b_trees import NodeHead, Nodes
from tocsin.structures.growth import bytes_of

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"

Point: TypeAlias = tuple[float, float]

# The figure's numbers are lost but for those that the text names; these agree with all it says.
FIGURE_5: list[Point] = [
    (100, 6),
    (102, 3),
    (105, 5),
    (110, 4),
    (112, 2),
    (118, 7),
    (120, 9),
    (130, 1),
    (140, 8),
]


@numba.njit(nogil=True)
def take_points(tree: A2BTree, x: NDArray[np.float64], y: NDArray[np.float64]) -> int:
    """Remove points and return how many were there."""
    taken = 0
    for i in range(x.shape[0]):
        taken += take(tree, x[i], y[i])
    return taken


@numba.njit(nogil=True)
def find_ends(
    tree: A2BTree,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
) -> None:
    """Write, for each point, the nearest x on either side that has a y of at most the point's; infinite if none has."""
    for i in range(x.shape[0]):
        exact = seek(tree, x[i], tree.right)
        start_left(tree, tree.right, exact)
        left[i] = x_at(tree, tree.left) if precede(tree, y[i]) else -np.inf
        right[i] = x_at(tree, tree.right) if follow(tree, y[i]) else np.inf


class TreeBesideList:
    """A tree whose every answer is compared with that of a scan; a list of points."""

    def __init__(self, x_fan_out: int = 4, y_fan_out: int = 4) -> None:
        self.tree = new_a2b_tree(x_fan_out, y_fan_out)
        self.points: list[Point] = []

    def add(self, *points: Point) -> None:
        self.points += points
        x, y = columns(points)
        done = 0
        while (done := add_points(self.tree, x, y, done)) < len(x):
            self.tree = with_room(self.tree)

    def take(self, *points: Point) -> None:
        for point in points:
            self.points.remove(point)
        assert take_points(self.tree, *columns(points)) == len(points)

    def check(self) -> None:
        held = sorted(self.points)
        assert self.tree.counters[_Counter.POINTS] == len(held)
        assert sorted(points_of(self.tree)) == held
        xs = sorted({x + offset for x, _ in held for offset in (-0.5, 0.0, 0.5)}) or [0.0]
        ys = sorted({y + offset for _, y in held for offset in (-0.5, 0.0)}) or [0.0]
        self.check_ends([(x, y) for x in xs for y in ys])
        self.check_ranges([(low, high) for low in xs for high in xs if low <= high])

    def check_ends(self, asked: list[Point]) -> None:
        x, y = columns(asked)
        left, right = np.empty(len(asked)), np.empty(len(asked))
        find_ends(self.tree, x, y, left, right)
        expected = [
            (
                max((a for a, b in self.points if a < x0 and b <= y0), default=-math.inf),
                min((a for a, b in self.points if a > x0 and b <= y0), default=math.inf),
            )
            for x0, y0 in asked
        ]
        assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected

    def check_ranges(self, asked: list[Point]) -> None:
        lows, highs = columns(asked)
        least = np.empty(len(asked))
        least_in_ranges(self.tree, lows, highs, least)
        expected = [
            min((b for a, b in self.points if low <= a <= high), default=math.inf) for low, high in asked
        ]
        assert least.tolist() == expected


def columns(points: list[Point] | tuple[Point, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    both = np.array(points, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def points_of(tree: A2BTree) -> list[Point]:
    """Return all points, after a look at everything that must hold of the nodes."""
    points: list[Point] = []
    for x, least, link in entries(tree.upper, int(tree.counters[_Counter.ROOT])):
        if link == _LONE:
            points.append((x, least))
            continue
        ys = entries(tree.lower, link)
        assert ys[0][0] == least
        assert sum(times for *_, times in ys) > 1
        points += [(x, y) for y, _, times in ys for _ in range(times)]
    for nodes in (tree.upper, tree.lower):
        used, free = int(nodes.counters[0]), 0
        node = int(nodes.counters[1])
        while node >= 0:
            free += 1
            node = int(nodes.heads[node, NodeHead.COUNT])
        roots = [int(tree.counters[_Counter.ROOT])]
        if nodes is tree.lower:
            roots = [link for *_, link in entries(tree.upper, roots[0]) if link != _LONE]
        assert used == free + sum(number_of_nodes(nodes, root) for root in roots)
    return points


def entries(nodes: Nodes, root: int, *, is_root: bool = True) -> list[tuple[float, float, int]]:
    """Return what the leaves below a node have, in order, and assert that all nodes are in order."""
    count, level = nodes.heads[root].tolist()
    keys, links = nodes.keys[root, :count].tolist(), nodes.links[root, :count].tolist()
    lows = nodes.lows[root, :count].tolist() if nodes.lows.shape[1] else [math.inf] * count
    assert keys == sorted(set(keys))
    assert is_root or count >= 2
    if level == 0:
        return list(zip(keys, lows, links, strict=True))
    found: list[tuple[float, float, int]] = []
    assert count >= 2
    for place, child in enumerate(links):
        assert nodes.heads[child, NodeHead.LEVEL] == level - 1
        below = entries(nodes, child, is_root=False)
        assert keys[place] <= below[0][0]
        assert place == 0 or keys[place] > found[-1][0]
        assert lows[place] == min(low for _, low, _ in below)
        found += below
    return found


def number_of_nodes(nodes: Nodes, root: int) -> int:
    count, level = nodes.heads[root].tolist()
    below = nodes.links[root, :count].tolist() if level else []
    return 1 + sum(number_of_nodes(nodes, child) for child in below)


def height(tree: A2BTree) -> int:
    return int(tree.upper.heads[tree.counters[_Counter.ROOT], NodeHead.LEVEL]) + 1


def test_the_end_of_mar_is_found_as_in_the_papers_figure_5() -> None:
    beside = TreeBesideList()
    beside.add(*FIGURE_5)
    left, right = np.empty(1), np.empty(1)
    find_ends(beside.tree, np.array([102.0]), np.array([3.0]), left, right)
    assert (left[0], right[0]) == (-math.inf, 112.0)
    beside.check()


@settings(max_examples=2_000 if LONG else 40)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.booleans()), max_size=60),
    st.sampled_from([(4, 4), (5, 8), (32, 8)]),
)
def test_a_tree_answers_as_a_scan_of_all_points_does(
    steps: list[tuple[int, int, bool]], fan_outs: tuple[int, int]
) -> None:
    beside = TreeBesideList(*fan_outs)
    for x, y, goes in steps:
        point = (float(x), float(y))
        if goes and point in beside.points:
            beside.take(point)
        else:
            beside.add(point)
    beside.check()
    beside.take(*beside.points[::2])
    beside.check()
    beside.take(*beside.points)
    beside.check()


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_nodes_split_and_unite_at_every_level(order: str) -> None:
    beside = TreeBesideList()
    points = [(float(x), float(x * 7 % 23)) for x in range(120)] + [(5.0, float(y)) for y in range(60)]
    if order == "descending":
        points.reverse()
    chance = random.Random(order)  # noqa: S311
    if order == "random":
        chance.shuffle(points)
    beside.add(*points)
    assert height(beside.tree) >= 4
    beside.check_ends([(float(x), float(y)) for x in range(0, 120, 7) for y in range(0, 23, 3)])
    for _ in range(4):
        going = chance.sample(beside.points, 40)
        beside.take(*going)
        assert sorted(points_of(beside.tree)) == sorted(beside.points)
    beside.check()


def test_a_point_that_is_not_there_is_not_taken() -> None:
    beside = TreeBesideList()
    beside.add((1.0, 2.0), (3.0, 4.0), (3.0, 5.0))
    assert take_points(beside.tree, np.array([1.0, 2.0, 3.0, 9.0]), np.array([3.0, 2.0, 4.5, 1.0])) == 0
    beside.check()


def test_long_churn_needs_no_more_bytes_and_no_more_levels() -> None:
    rounds, held = (100, 4_000) if LONG else (12, 200)
    chance = random.Random(9)  # noqa: S311
    beside = TreeBesideList(8, 4)
    beside.add(*((float(chance.randrange(held)), float(chance.randrange(20))) for _ in range(held)))
    sizes = []
    for _ in range(rounds):
        beside.take(*chance.sample(beside.points, held // 4))
        beside.add(*((float(chance.randrange(held)), float(chance.randrange(20))) for _ in range(held // 4)))
        sizes.append((bytes_of(beside.tree), height(beside.tree)))
    assert sorted(points_of(beside.tree)) == sorted(beside.points)
    half = sizes[rounds // 2 :]
    assert max(half)[0] <= 1.25 * max(sizes[: rounds // 2])[0]
    assert max(levels for _, levels in half) <= math.ceil(math.log2(held))
