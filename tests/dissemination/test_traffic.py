"""The costs of a run are the sums of its messages."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.dissemination.worlds import make_world
from tocsin.dissemination.network.overlay import Overlay, overlay_at
from tocsin.dissemination.network.topology import Topology
from tocsin.dissemination.simulator import simulate
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.dissemination.strategies.strategy import Outcome
from tocsin.dissemination.traffic import MessageRole, Traffic, TrafficLedger


def in_a_row() -> Overlay:
    """Return three overlay nodes, the second two hops from the first, the third one hop further."""
    return overlay_at(Topology.of(4, np.arange(3), np.arange(1, 4)), np.array([0, 2, 3]))


def test_lines_are_charged_to_their_event_and_to_the_links_between() -> None:
    accounts = TrafficLedger(in_a_row())
    lines = [  # event, sender, receiver, messages, size, step
        (0, 0, 1, 3, 30, 0),
        (0, 1, 2, 1, 10, 4),
        (0, 0, 2, 2, 50, 1),
        (2, 1, 0, 1, 7, 0),
    ]
    event, sender, receiver, messages, size, step = np.array(lines).T
    sent = Traffic.from_columns(
        event, sender, receiver, size=size, step=step, role=MessageRole.ASK, messages=messages
    )
    costs = accounts.add(sent, 3)
    assert costs.overlay_hops.tolist() == [6, 0, 1]
    assert costs.ip_hops.tolist() == [3 * 2 + 1 + 2 * 3, 0, 2]
    assert costs.size.tolist() == [90, 0, 7]
    assert costs.stress.tolist() == [5, 0, 1]
    assert costs.steps.tolist() == [5, 0, 1]
    accounts.add(sent, 3)
    assert accounts.costs.size.tolist() == [90, 0, 7, 90, 0, 7]
    assert accounts.pairs.messages.tolist() == [[0, 6, 4], [2, 0, 2], [0, 0, 0]]
    assert accounts.pairs.size.tolist() == [[0, 60, 100], [14, 0, 20], [0, 0, 0]]
    assert accounts.size_by_role == {
        MessageRole.ROUTE: 0,
        MessageRole.SPREAD: 0,
        MessageRole.ASK: 194,
        MessageRole.REPLY: 0,
    }


def test_lines_stand_in_the_order_of_their_events_and_otherwise_as_given() -> None:
    event, sender = np.array([1, 0, 1, 0, 0]), np.array([1, 2, 0, 1, 0])
    step = np.array([5, 6, 7, 8, 9])
    sent = Traffic.from_columns(
        event, sender, np.zeros(5, dtype=np.int64), size=8, step=step, role=MessageRole.SPREAD
    )
    assert sent.event.tolist() == [0, 0, 1]  # what a node sends to itself is left out
    assert sent.step.tolist() == [6, 8, 5]
    assert Traffic.concat([sent, sent]).step.tolist() == [6, 8, 6, 8, 5, 5]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_costs_as_much_as_its_batches_together(name: str) -> None:
    world = make_world(4, nodes=20)
    reported: list[tuple[Outcome, int]] = []
    strategy = strategy_named(name)(world.setting, world.queries)
    result = simulate(strategy, world.batches, lambda *one: reported.append(one))
    assert len(reported) > 1
    assert result.outgoing == sum(outcome.outgoing for outcome, _ in reported)
    assert result.changed_answers == sum(len(outcome.answer_changes) for outcome, _ in reported)
    assert result.server_seconds == sum(outcome.server_seconds for outcome, _ in reported)
    assert sum(result.size_by_role.values()) == result.costs.size.sum()
    ways, hops = Counter[str](), world.setting.overlay.hops
    begin = 0
    for outcome, events in reported:
        sent = outcome.traffic
        for event in range(events):
            of = np.flatnonzero(sent.event == event)
            by_node = np.bincount(sent.sender[of], weights=sent.messages[of], minlength=1)
            assert result.costs.stress[begin + event] == by_node.max()
            assert result.costs.steps[begin + event] == sent.step[of].max(initial=-1) + 1
            ways["messages"] += int(np.sum(sent.messages[of] * hops[sent.sender[of], sent.receiver[of]]))
            ways["size"] += int(np.sum(sent.size[of] * hops[sent.sender[of], sent.receiver[of]]))
        begin += events
    assert result.links.messages.sum() == result.costs.ip_hops.sum() == ways["messages"]
    assert result.links.size.sum() == ways["size"]
