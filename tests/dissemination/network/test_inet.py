"""Generated networks: connected, seeded, with the given degrees."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tocsin.dissemination.network.inet import _degrees, make_topology
from tocsin.dissemination.network.topology import Topology
from tocsin.model.errors import TocsinError


def assert_connected(topology: Topology) -> None:
    starts, neighbours, _ = topology.adjacency
    seen, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        further = set(neighbours[starts[node] : starts[node + 1]].tolist()) - seen
        seen |= further
        waiting += further
    assert len(seen) == topology.nodes


@pytest.mark.parametrize("nodes", [*range(2, 12), 50, 700])
@pytest.mark.parametrize("leaves", [0.0, 0.3, 0.95])
def test_a_network_of_any_size_is_connected_and_has_no_link_twice(nodes: int, leaves: float) -> None:
    topology = make_topology(nodes, seed=nodes, leaves=leaves)
    assert_connected(topology)
    assert (topology.ends[:, 0] < topology.ends[:, 1]).all()
    assert len(np.unique(topology.ends, axis=0)) == len(topology.ends)
    assert topology.degrees.sum() == 2 * len(topology.ends)


def test_degrees_follow_the_power_law_beside_the_leaves() -> None:
    degrees = make_topology(20_000).degrees
    assert np.mean(degrees == 1) == pytest.approx(0.3, abs=0.005)
    assert 200 < degrees.max() <= 20_000**0.6
    inner = degrees[degrees >= 2]
    values = np.arange(2, degrees.max() + 1)
    exponents = np.arange(1.5, 3.0, 0.02)
    likelihood = [-a * np.log(inner).mean() - np.log((values**-a).sum()) for a in exponents]
    assert exponents[np.argmax(likelihood)] == pytest.approx(2.2, abs=0.05)


@pytest.mark.parametrize("leaves", [0.0, 0.3, 0.6])
def test_nodes_that_lack_a_link_are_linked_to_each_other(leaves: float) -> None:
    lacking = 0
    for seed in range(20):
        wanted, _ = _degrees(np.random.default_rng([seed, 20]), 20, 2.2, leaves)
        topology = make_topology(20, seed=seed, exponent=2.2, leaves=leaves)
        lacks = np.flatnonzero(wanted > topology.degrees).tolist()
        assert (topology.degrees <= wanted).all()
        assert set(combinations(lacks, 2)) <= set(map(tuple, topology.ends.tolist()))
        lacking += len(lacks)
    assert lacking > 0


def test_a_seed_gives_one_network_and_another_seed_another() -> None:
    first, again, other = (make_topology(300, seed=seed).ends.tolist() for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_an_exponent_may_be_a_whole_number() -> None:
    assert np.array_equal(make_topology(60, exponent=2).ends, make_topology(60, exponent=2.0).ends)


def test_the_network_of_a_seed_stays_the_same() -> None:
    assert make_topology(8, seed=1).ends.tolist() == [
        [0, 1],
        [0, 4],
        [0, 5],
        [1, 3],
        [1, 5],
        [2, 4],
        [3, 6],
        [3, 7],
        [5, 7],
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 1}, "at least 2"),
        ({"exponent": 1.0}, "above 1"),
        ({"exponent": float("nan")}, "above 1"),
        ({"leaves": 1.0}, "below 1"),
        ({"leaves": -0.1}, "at least 0"),
    ],
)
def test_invalid_networks_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(TocsinError, match=message):
        make_topology(**given)  # type: ignore[arg-type]
