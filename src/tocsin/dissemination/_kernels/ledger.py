"""What the messages of each event cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import kernel


class Columns(NamedTuple):
    """`Traffic`, as arrays without gaps."""

    event: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    messages: NDArray[np.int64]
    size: NDArray[np.int64]
    step: NDArray[np.int64]


class EventCosts(NamedTuple):
    """By event."""

    overlay_hops: NDArray[np.int64]
    ip_hops: NDArray[np.int64]
    size: NDArray[np.int64]
    stress: NDArray[np.int64]
    steps: NDArray[np.int64]


class Pairs(NamedTuple):
    """By sender and receiver, over a run; `hops` are the links between them."""

    hops: NDArray[np.int64]
    messages: NDArray[np.int64]
    size: NDArray[np.int64]


class Scratch(NamedTuple):
    """By node: the messages it sent for the present event, which is `event` if that is where it was counted last."""

    sent: NDArray[np.int64]
    event: NDArray[np.int64]


@kernel
def charge(sent: Columns, pairs: Pairs, scratch: Scratch, costs: EventCosts) -> None:
    """Add every line to its event's costs and to its pair; lines are in the order of their events, costs are 0 before."""
    scratch.event[:] = -1
    for line in range(sent.event.shape[0]):
        event, sender, receiver = sent.event[line], sent.sender[line], sent.receiver[line]
        messages = sent.messages[line]
        costs.overlay_hops[event] += messages
        costs.ip_hops[event] += messages * pairs.hops[sender, receiver]
        costs.size[event] += sent.size[line]
        costs.steps[event] = max(costs.steps[event], sent.step[line] + 1)
        if scratch.event[sender] != event:
            scratch.event[sender] = event
            scratch.sent[sender] = 0
        scratch.sent[sender] += messages
        costs.stress[event] = max(costs.stress[event], scratch.sent[sender])
        pairs.messages[sender, receiver] += messages
        pairs.size[sender, receiver] += sent.size[line]
