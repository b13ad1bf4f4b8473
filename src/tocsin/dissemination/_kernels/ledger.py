"""Costs of the messages of each event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import kernel


class TrafficColumns(NamedTuple):
    """`Traffic` as contiguous arrays."""

    event: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    messages: NDArray[np.int64]
    size: NDArray[np.int64]
    step: NDArray[np.int64]


class EventCosts(NamedTuple):
    """The paper's metrics of each event, and its number of steps."""

    overlay_hops: NDArray[np.int64]
    ip_hops: NDArray[np.int64]
    size: NDArray[np.int64]
    stress: NDArray[np.int64]  # the most messages that one node sent (MNS)
    steps: NDArray[np.int64]


class PairTotals(NamedTuple):
    """Totals of a run by sender and receiver; `hops` are the links between them."""

    hops: NDArray[np.int64]
    messages: NDArray[np.int64]
    size: NDArray[np.int64]


class SenderCounts(NamedTuple):
    """By node: the messages it sent for `event`, the last event it sent anything for."""

    messages: NDArray[np.int64]
    event: NDArray[np.int64]


@kernel
def charge(traffic: TrafficColumns, pairs: PairTotals, senders: SenderCounts, costs: EventCosts) -> None:
    """Add every line to its event's costs and to its pair's totals; lines are sorted by event, costs are 0 before."""
    senders.event[:] = -1
    for line in range(traffic.event.shape[0]):
        event, sender, receiver = traffic.event[line], traffic.sender[line], traffic.receiver[line]
        messages = traffic.messages[line]
        costs.overlay_hops[event] += messages
        costs.ip_hops[event] += messages * pairs.hops[sender, receiver]
        costs.size[event] += traffic.size[line]
        costs.steps[event] = max(costs.steps[event], traffic.step[line] + 1)
        if senders.event[sender] != event:
            senders.event[sender] = event
            senders.messages[sender] = 0
        senders.messages[sender] += messages
        costs.stress[event] = max(costs.stress[event], senders.messages[sender])
        pairs.messages[sender, receiver] += messages
        pairs.size[sender, receiver] += traffic.size[line]
