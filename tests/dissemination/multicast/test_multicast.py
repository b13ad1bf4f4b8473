"""Multicasts: everybody concerned is reached once, by nobody who is not on the way, through the best trees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tocsin.dissemination.multicast.multicast import Multicast, random_rates, rates_of
from tocsin.dissemination.multicast.state import Delivery, Hierarchy, Rates
from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import Overlay, place_overlay
from tocsin.model.errors import TocsinError
from tocsin.structures.jit import compiled_kernels


def make_overlay(nodes: int, seed: int = 1) -> Overlay:
    return place_overlay(make_topology(3 * nodes, seed=seed), nodes, seed=seed)


def deliver(multicast: Multicast, concerned: list[dict[int, int]]) -> Delivery:
    starts = np.cumsum([0, *(len(one) for one in concerned)])
    nodes = np.array([node for one in concerned for node in one], dtype=np.int64)
    counts = np.array([count for one in concerned for count in one.values()], dtype=np.int64)
    return multicast.deliver(starts, nodes, counts)


def random_messages(random: np.random.Generator, nodes: int, count: int) -> list[dict[int, int]]:
    """Return whom messages concern: nobody, few, or everybody."""
    drawn = []
    for _ in range(count):
        some = random.choice(nodes, size=int(nodes * random.random() ** 4), replace=False)
        drawn.append({node: int(random.integers(1, 9)) for node in some.tolist()})
    return [*drawn, {}, dict.fromkeys(range(nodes), 2)]


def way_up(tree: Hierarchy, node: int) -> set[int]:
    found = set()
    while node != tree.root:
        found.add(node)
        node = int(tree.parents[node])
    return found


def children_of(tree: Hierarchy, node: int) -> list[int]:
    return [int(child) for child in tree.children[tree.starts[node] : tree.starts[node + 1]]]


def greedy_tree(rates: Rates, node: int, children: set[int]) -> dict[int, int]:
    """Return who sends to each child, by looking at every pair again at each step."""
    senders: dict[int, int] = {}

    def share(sender: int, more: int) -> float:
        receivers = sum(other == sender for other in senders.values()) + more
        return min(rate(sender), float(rates.access[sender]) / receivers)

    def rate(receiver: int) -> float:
        if receiver == node:
            return np.inf
        sender = senders[receiver]
        return min(share(sender, 0), float(rates.bottlenecks[sender, receiver]))

    while len(senders) < len(children):
        pairs = [(a, b) for a in (node, *senders) for b in children - set(senders)]
        _, _, sender, receiver = min(
            (-min(share(a, 1), float(rates.bottlenecks[a, b])), int(rates.hops[a, b]), a, b) for a, b in pairs
        )
        senders[receiver] = sender
    return senders


def assert_delivered(multicast: Multicast, rates: Rates, concerned: dict[int, int], lines: Delivery) -> None:
    tree = multicast.hierarchy
    reached = set().union(*(way_up(tree, node) for node in concerned))
    assert sorted(lines.receiver.tolist()) == sorted(reached)
    sender, step = (
        dict(zip(lines.receiver.tolist(), column.tolist(), strict=True))
        for column in (lines.sender, lines.step)
    )
    for receiver in reached:
        assert step[receiver] == (step[sender[receiver]] + 1 if sender[receiver] != tree.root else 0)
    for node in {tree.root, *reached}:
        children = set(children_of(tree, node)) & reached
        assert {child: sender[child] for child in children} == greedy_tree(rates, node, children)
    listed = dict(zip(lines.receiver.tolist(), lines.ids.tolist(), strict=True))
    for receiver in reached:
        handed = sum(listed[other] for other in reached if sender[other] == receiver)
        assert listed[receiver] == concerned.get(receiver, 0) + handed
    from_root = int(lines.ids[lines.sender == tree.root].sum())
    assert from_root == sum(concerned.values()) - concerned.get(tree.root, 0)


@pytest.mark.parametrize(("nodes", "fan_out"), [(1, 10), (2, 10), (3, 1), (20, 3), (40, 10), (90, 5)])
def test_a_message_reaches_all_whom_it_concerns_once(nodes: int, fan_out: int) -> None:
    overlay = make_overlay(nodes, seed=nodes)
    random = np.random.default_rng(nodes)
    multicast = Multicast(overlay, int(random.integers(nodes)), fan_out=fan_out, seed=3)
    rates = random_rates(overlay, seed=3)
    messages = random_messages(random, nodes, 30)
    carried = deliver(multicast, messages)
    assert np.all(np.diff(carried.message) >= 0)
    for number, concerned in enumerate(messages):
        mine = carried.message == number
        assert_delivered(multicast, rates, concerned, Delivery(*(column[mine] for column in carried)))


def test_the_cost_of_a_message_does_not_depend_on_earlier_ones() -> None:
    overlay = make_overlay(60)
    messages = random_messages(np.random.default_rng(4), 60, 40)
    at_once = deliver(Multicast(overlay, 5), messages)
    multicast = Multicast(overlay, 5)
    one_by_one = [deliver(multicast, [concerned]) for concerned in reversed(messages)][::-1]
    for column, parts in zip(at_once[1:], zip(*(one[1:] for one in one_by_one), strict=True), strict=True):
        np.testing.assert_array_equal(column, np.concatenate(parts))


def test_kernels_are_compiled_once_whatever_arrays_they_get() -> None:
    multicast = Multicast(make_overlay(20), 0)
    starts, nodes, counts = np.array([0, 2]), np.array([3, 4]), np.array([1, 1])
    nodes.flags.writeable = False
    multicast.deliver(starts, nodes, counts)
    multicast.deliver(np.array([0, 9, 2, 9])[::2], nodes, counts.astype(np.int32))
    versions = {name: count for name, count in compiled_kernels().items() if ".multicast." in name}
    assert max(versions.values()) <= 1


def test_room_is_found_for_many_hops() -> None:
    multicast = Multicast(make_overlay(60), 0)
    carried = deliver(multicast, [dict.fromkeys(range(60), 1)] * 100)
    assert np.bincount(carried.message).tolist() == [59] * 100


def test_a_node_given_twice_and_one_with_nobody_count_as_they_are() -> None:
    multicast = Multicast(make_overlay(20), 0)
    nodes, counts = np.array([7, 3, 7]), np.array([2, 0, 5])
    carried = multicast.deliver(np.array([0, 3]), nodes, counts)
    assert carried.receiver[-1] == 7
    assert carried.ids.tolist() == [7] * len(carried.ids)


def test_trees_are_made_when_they_are_needed() -> None:
    multicast = Multicast(make_overlay(40), 0)
    made, possible = multicast.groups
    assert made == 0
    deliver(multicast, [dict.fromkeys(range(40), 1)])
    inner = int(np.count_nonzero(np.diff(multicast.hierarchy.starts)))
    assert multicast.groups == (inner, possible)


def test_bottlenecks_are_the_narrowest_links_on_the_way() -> None:
    overlay = make_overlay(15, seed=6)
    widths = np.random.default_rng(6).integers(1, 11, len(overlay.topology.ends)).astype(float)
    rates = rates_of(overlay, widths)
    assert np.isinf(np.diag(rates.bottlenecks)).all()
    for here in range(15):
        narrowest = narrowest_from(overlay, here, widths)
        np.testing.assert_array_equal(rates.bottlenecks[here], narrowest[overlay.hosts])
    for node, host in enumerate(overlay.hosts.tolist()):
        assert rates.access[node] == widths[(overlay.topology.ends == host).any(axis=1)].sum()


def narrowest_from(overlay: Overlay, here: int, widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the narrowest link on the way to each host, nodes nearest first, each by its smallest neighbour nearer."""
    links: dict[int, dict[int, float]] = {}
    for (a, b), width in zip(overlay.topology.ends.tolist(), widths.tolist(), strict=True):
        links.setdefault(a, {})[b] = links.setdefault(b, {})[a] = width
    source = int(overlay.hosts[here])
    far, narrowest, wave = {source: 0}, {source: np.inf}, [source]
    while wave:
        following = sorted({other for node in wave for other in links[node]} - set(far))
        for node in following:
            nearer = min(other for other in links[node] if other in wave)
            narrowest[node] = min(narrowest[nearer], links[node][nearer])
        far.update(dict.fromkeys(following, 0))
        wave = following
    return np.array([narrowest[node] for node in range(overlay.topology.nodes)])


def test_impossible_multicasts_are_refused() -> None:
    overlay = make_overlay(3)
    with pytest.raises(TocsinError, match=r"fan-out of 17 .* use 1 to 16"):
        Multicast(overlay, 0, fan_out=17)
    with pytest.raises(TocsinError, match="nodes 0 to 2"):
        Multicast(overlay, 3)
