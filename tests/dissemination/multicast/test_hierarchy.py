"""Clusters of clusters: one tree over all nodes, whatever their coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.dissemination.multicast.hierarchy import build_hierarchy, cluster_points
from tocsin.dissemination.multicast.state import NO_PARENT, Hierarchy


def assert_spans_all(tree: Hierarchy, nodes: int, fan_out: int) -> None:
    reached, waiting = {tree.root}, [tree.root]
    while waiting:
        above = waiting.pop()
        children = tree.children[tree.starts[above] : tree.starts[above + 1]].tolist()
        assert len(children) <= fan_out
        assert children == sorted(children)
        for rank, child in enumerate(children):
            assert child not in reached
            assert (tree.parents[child], tree.ranks[child]) == (above, rank)
            assert tree.depths[child] == tree.depths[above] + 1
            reached.add(child)
            waiting.append(child)
    assert reached == set(range(nodes))
    assert (tree.parents[tree.root], tree.depths[tree.root]) == (NO_PARENT, 0)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60),
    st.integers(1, 10),
    st.data(),
)
def test_every_node_is_reached_once_from_the_server(
    places: list[tuple[int, int]], fan_out: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, len(places) - 1))
    tree = build_hierarchy(np.array(places, dtype=float), root, fan_out=fan_out)
    assert_spans_all(tree, len(places), fan_out)


def test_equal_coordinates_make_a_shallow_tree() -> None:
    tree = build_hierarchy(np.zeros((500, 3)), 7, fan_out=10)
    assert_spans_all(tree, 500, 10)
    assert tree.depths.max() <= 4


def test_clusters_far_apart_are_found() -> None:
    random = np.random.default_rng(8)
    of_point = random.integers(5, size=200)
    points = 100.0 * np.eye(5)[of_point] + random.normal(size=(200, 5))
    found = cluster_points(points, 5, random)
    assert sorted({tuple(np.unique(of_point[members])) for members in found}) == [(i,) for i in range(5)]


@pytest.mark.parametrize("different", [1, 2, 3])
def test_no_cluster_is_empty_where_points_are_equal(different: int) -> None:
    points = np.repeat(np.arange(different, dtype=float), 12)[:, None]
    found = cluster_points(points, 10, np.random.default_rng(1))
    assert [len(members) > 0 for members in found] == [True] * 10
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(len(points)))


def test_a_seed_always_gives_the_same_tree() -> None:
    points = np.random.default_rng(2).normal(size=(100, 4))
    first, second = (build_hierarchy(points, 0, fan_out=10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.parents, second.parents)
