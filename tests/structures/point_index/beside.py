"""A point index whose every answer is compared with that of a linear scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.blocks import size_of
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import LEAF, MERGED, Link, Rectangles, Top

Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]


def rectangles(roots: Iterable[int], sides: Sequence[Rectangle]) -> Rectangles:
    columns = np.array(sides, dtype=np.float64).reshape(-1, 4)
    return Rectangles(np.fromiter(roots, dtype=np.int64), *columns.T.copy())


def holds(rectangle: Rectangle, point: Point) -> bool:
    outer_l, inner_l, inner_r, outer_r = rectangle
    return outer_l < point[0] <= inner_l and inner_r <= point[1] < outer_r


class IndexBesideDicts:
    """Trees beside dicts of the same points."""

    def __init__(self, trees: int = 1) -> None:
        self.index = PointIndex()
        self.roots: list[int] = self.index.plant(trees).tolist()
        self.held: list[dict[int, Point]] = [{} for _ in self.roots]

    def add(self, tree: int, points: dict[int, Point]) -> None:
        ids, x1, x2 = _columns(points)
        self.index.add(self.roots[tree], ids, x1, x2)
        self.held[tree] |= points

    def add_scattered(self, points: dict[int, Point]) -> None:
        ids, x1, x2 = _columns(points)
        trees = [id_ % len(self.roots) for id_ in points]
        self.index.add_scattered(np.array([self.roots[t] for t in trees], dtype=np.int64), ids, x1, x2)
        for tree, (id_, point) in zip(trees, points.items(), strict=True):
            self.held[tree][id_] = point

    def remove(self, ids: Iterable[int]) -> None:
        gone = list(ids)
        self.index.remove(np.array(gone, dtype=np.int64))
        for held in self.held:
            for id_ in gone:
                held.pop(id_, None)

    def check(self, asked: Sequence[Rectangle]) -> None:
        """Ask every tree, and look at all that must hold of its arrays."""
        roots = [root for root in self.roots for _ in asked]
        batch = rectangles(roots, [*asked] * len(self.roots))
        wanted = [
            sorted(id_ for id_, point in held.items() if holds(one, point))
            for held in self.held
            for one in asked
        ]
        found, offsets = self.index.find(batch)
        assert [sorted(found[a:b].tolist()) for a, b in pairwise(offsets)] == wanted
        assert self.index.count(batch).tolist() == [len(ids) for ids in wanted]
        assert self.index.any(batch).tolist() == [bool(ids) for ids in wanted]
        assert len(self.index) == sum(map(len, self.held))
        where = self.index.state.where
        assert set(np.flatnonzero(where >= 0).tolist()) == set().union(*self.held)
        blocks: list[tuple[int, int]] = []
        for root, held in zip(self.roots, self.held, strict=True):
            assert self._points(root, -1, blocks) == held
        assert_apart(blocks, int(self.index.state.tops[Top.SLOT]))

    def _points(self, node: int, parent: int, blocks: list[tuple[int, int]]) -> dict[int, Point]:
        """Return the points below a node, which is as it must be."""
        state = self.index.state
        link = state.links[node].tolist()
        assert link[Link.PARENT] == parent
        if link[Link.CHILD] < 0:
            found = self._in_leaf(node, blocks)
        else:
            left, right = (self._points(link[Link.CHILD] + side, node, blocks) for side in (0, 1))
            axis, split = link[Link.AXIS], state.splits[node]
            assert all(point[axis] <= split for point in left.values())
            assert all(point[axis] >= split for point in right.values())
            found = left | right
            assert len(found) > MERGED
            assert len(found) <= 4 * LEAF or max(len(left), len(right)) <= 0.7 * len(found)
        assert len(found) == link[Link.COUNT]
        if found:
            x1, x2 = zip(*found.values(), strict=True)
            assert state.boxes[node].tolist() == [min(x1), max(x1), min(x2), max(x2)]
        return found

    def _in_leaf(self, node: int, blocks: list[tuple[int, int]]) -> dict[int, Point]:
        state = self.index.state
        first, count, class_ = (
            int(state.links[node, column]) for column in (Link.BLOCK, Link.COUNT, Link.CLASS)
        )
        assert (class_ < 0) is (count == 0)
        if not count:
            return {}
        size = int(size_of.py_func(class_)) if hasattr(size_of, "py_func") else size_of(class_)
        blocks.append((first, first + size))
        assert count <= size
        assert count < LEAF
        ids = state.ids[first : first + count].tolist()
        assert state.where[ids].tolist() == [node] * count
        found = dict(
            zip(
                ids,
                zip(state.x1[first : first + count], state.x2[first : first + count], strict=True),
                strict=True,
            )
        )
        assert len(found) == count
        return found


def assert_apart(blocks: list[tuple[int, int]], top: int) -> None:
    """No slot is in two blocks."""
    ends = [0]
    for first, end in sorted(blocks):
        assert first >= ends[-1]
        ends.append(end)
    assert ends[-1] <= top


def _columns(points: dict[int, Point]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    ids = np.array(list(points), dtype=np.int64)
    x1, x2 = np.array(list(points.values()), dtype=np.float64).reshape(-1, 2).T
    return ids, x1, x2
