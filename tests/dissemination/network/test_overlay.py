"""Overlays: where their nodes are, and how far apart."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import overlay_at, place_overlay
from tocsin.dissemination.network.topology import Topology
from tocsin.model.errors import TocsinError


def distances(topology: Topology) -> np.ndarray:
    """Return the links between any two nodes, by trying every node on the way (Floyd and Warshall)."""
    far = np.full((topology.nodes, topology.nodes), topology.nodes)
    np.fill_diagonal(far, 0)
    for here, there in topology.ends.tolist():
        far[here, there] = far[there, here] = 1
    for middle in range(topology.nodes):
        far = np.minimum(far, far[:, [middle]] + far[[middle], :])
    return far


@pytest.mark.parametrize("nodes", [2, 3, 60])
def test_hops_are_counted_along_shortest_paths(nodes: int) -> None:
    topology = make_topology(nodes, seed=5)
    overlay = place_overlay(topology, nodes, seed=1)
    assert sorted(overlay.hosts.tolist()) == list(range(nodes))
    assert np.array_equal(overlay.hops, distances(topology)[np.ix_(overlay.hosts, overlay.hosts)])


def test_a_link_counts_once_in_either_direction_and_a_loop_not_at_all() -> None:
    topology = Topology.of(3, np.array([2, 0, 1, 1, 0]), np.array([1, 1, 1, 2, 1]))
    assert topology.ends.tolist() == [[0, 1], [1, 2]]
    assert topology.degrees.tolist() == [1, 2, 1]


def test_leaves_are_taken_first() -> None:
    topology = make_topology(100, seed=2)
    leaves = np.flatnonzero(topology.degrees == 1)
    some = place_overlay(topology, 20, seed=1)
    assert len(set(some.hosts.tolist())) == len(some) == 20
    assert set(some.hosts.tolist()) <= set(leaves.tolist())
    many = place_overlay(topology, 60, seed=1)
    assert len(set(many.hosts.tolist())) == 60
    assert set(leaves.tolist()) < set(many.hosts.tolist())


def test_a_seed_gives_one_placing() -> None:
    topology = make_topology(100, seed=2)
    first, again, other = (place_overlay(topology, 10, seed=seed).hosts.tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("nodes", [0, 11])
def test_an_overlay_that_does_not_fit_is_refused(nodes: int) -> None:
    with pytest.raises(TocsinError, match="use 1 to 10"):
        place_overlay(make_topology(10), nodes, seed=1)


def test_hosts_may_be_given() -> None:
    line = Topology.of(4, np.array([3, 1, 2]), np.array([2, 0, 1]))
    assert overlay_at(line, np.array([3, 0])).hops.tolist() == [[0, 3], [3, 0]]
