"""The loads of links, compared with a walk along every path."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import Overlay, link_loads, overlay_at, place_overlay
from tocsin.dissemination.network.topology import Topology
from tocsin.model.errors import TocsinError


def walked(overlay: Overlay, amounts: np.ndarray) -> list[int]:
    """Return what links carry: from every receiver back to the sender, always by the smallest neighbour that is nearer."""
    topology = overlay.topology
    starts, neighbours, links = topology.adjacency
    loads = [0] * len(topology.ends)
    for sender, source in enumerate(overlay.hosts.tolist()):
        far = {source: 0}
        for node in (queue := [source]):
            for other in neighbours[starts[node] : starts[node + 1]].tolist():
                if other not in far:
                    far[other] = far[node] + 1
                    queue.append(other)
        for receiver, node in enumerate(overlay.hosts.tolist()):
            while node != source:
                beside = range(starts[node], starts[node + 1])
                place = min(i for i in beside if far[int(neighbours[i])] == far[node] - 1)
                loads[links[place]] += int(amounts[sender, receiver])
                node = int(neighbours[place])  # noqa: PLW2901 - the walk goes on from there
    return loads


@pytest.mark.parametrize("nodes", [2, 9, 120])
def test_every_message_costs_every_link_of_its_path(nodes: int) -> None:
    overlay = place_overlay(make_topology(nodes, seed=4), min(nodes, 30), seed=1)
    random = np.random.default_rng(6)
    shape = (len(overlay), len(overlay))
    messages = random.integers(0, 5, shape) * (random.random(shape) < 0.4)
    messages[0] = 0
    size = 24 * messages + random.integers(0, 2, shape)
    loads = link_loads(overlay, messages, size)
    assert loads.messages.tolist() == walked(overlay, messages)
    assert loads.size.tolist() == walked(overlay, size)
    assert loads.messages.sum() == (messages * overlay.hops).sum()
    assert loads.size.sum() == (size * overlay.hops).sum()


def test_of_two_paths_the_one_by_the_smaller_neighbour_of_the_receiver_is_taken() -> None:
    square = Topology.of(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]))
    overlay = overlay_at(square, np.array([0, 2]))
    loads = link_loads(overlay, np.array([[7, 1], [0, 0]]), np.array([[0, 8], [0, 0]]))
    assert square.ends.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    assert loads.messages.tolist() == [1, 0, 1, 0]
    assert loads.size.tolist() == [8, 0, 8, 0]


def test_matrices_of_another_size_are_refused() -> None:
    overlay = place_overlay(make_topology(5), 3, seed=1)
    with pytest.raises(TocsinError, match="3 overlay nodes: both need a row and a column for each"):
        link_loads(overlay, np.zeros((3, 2), dtype=np.int64), np.zeros((3, 3), dtype=np.int64))
