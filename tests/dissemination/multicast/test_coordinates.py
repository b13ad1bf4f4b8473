"""Network coordinates: exact where points can be, near elsewhere, and the same each time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tocsin.dissemination.multicast.coordinates import choose_landmarks, network_coordinates
from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import place_overlay


def relative_errors(points: NDArray[np.float64], hops: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each two nodes, the part of their distance by which the points are too near or too far."""
    first, second = np.triu_indices(len(hops), 1)
    apart = hops[first, second]
    return np.asarray(np.abs(np.linalg.norm(points[first] - points[second], axis=1) - apart) / apart)


def test_nodes_along_a_line_are_placed_exactly() -> None:
    along = np.arange(40, dtype=np.int64)
    hops = np.abs(along[:, None] - along)
    assert relative_errors(network_coordinates(hops), hops).max() < 1e-3


def test_nodes_of_a_grid_are_placed_nearly() -> None:
    x, y = np.divmod(np.arange(64, dtype=np.int64), 8)
    hops = np.abs(x[:, None] - x) + np.abs(y[:, None] - y)
    assert relative_errors(network_coordinates(hops), hops).mean() < 0.15


@pytest.mark.parametrize("nodes", [1, 2, 3, 20])
def test_few_nodes_have_coordinates_too(nodes: int) -> None:
    hops = place_overlay(make_topology(60, seed=3), nodes, seed=3).hops
    points = network_coordinates(hops)
    assert len(points) == nodes
    assert np.isfinite(points).all()
    if nodes in {2, 3}:
        assert relative_errors(points, hops).max() < 1e-3


def test_a_seed_always_gives_the_same_coordinates() -> None:
    hops = place_overlay(make_topology(100, seed=4), 30, seed=4).hops
    np.testing.assert_array_equal(network_coordinates(hops, seed=5), network_coordinates(hops, seed=5))


def test_nodes_at_one_host_are_placed_together() -> None:
    hops = np.array([[0, 0, 3], [0, 0, 3], [3, 3, 0]])
    points = network_coordinates(hops)
    assert np.linalg.norm(points[0] - points[1]) < 1e-3
    assert np.linalg.norm(points[0] - points[2]) == pytest.approx(3, abs=1e-3)
    assert sorted(choose_landmarks(hops, 15).tolist()) == [0, 1, 2]


def test_landmarks_are_spread_over_the_network() -> None:
    along = np.arange(90, dtype=np.int64)
    chosen = choose_landmarks(np.abs(along[:, None] - along), 9)
    assert len(set(chosen.tolist())) == 9
    assert np.abs(along[:, None] - chosen).min(axis=1).max() <= 12  # 5 at best
