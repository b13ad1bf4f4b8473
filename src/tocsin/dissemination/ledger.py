"""The traffic ledger of a run: costs by event, by pair of nodes, and by role."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination._kernels.ledger import EventCosts, PairTotals, SenderCounts, TrafficColumns, charge
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.traffic import MessageRole, Traffic


class TrafficLedger:
    """Adds up the messages of a run, batch by batch."""

    def __init__(self, overlay: Overlay) -> None:
        nodes = len(overlay)
        self.pairs = PairTotals(overlay.hops, *np.zeros((2, nodes, nodes), dtype=np.int64))
        self._senders = SenderCounts(*np.zeros((2, nodes), dtype=np.int64))
        self._costs: list[EventCosts] = []
        self.size_by_role = dict.fromkeys(MessageRole, 0)

    def add(self, traffic: Traffic, events: int) -> EventCosts:
        """Charge the traffic of a batch of `events`, and return the costs of each event."""
        costs = EventCosts(*np.zeros((len(EventCosts._fields), events), dtype=np.int64))
        columns = (
            np.ascontiguousarray(getattr(traffic, name), dtype=np.int64) for name in TrafficColumns._fields
        )
        charge(TrafficColumns(*columns), self.pairs, self._senders, costs)
        sizes = np.bincount(traffic.role, weights=traffic.size, minlength=len(MessageRole))
        for role in MessageRole:
            self.size_by_role[role] += int(sizes[role])
        self._costs.append(costs)
        return costs

    @property
    def costs(self) -> EventCosts:
        """Return the costs of all events of all batches."""
        none = np.zeros((len(EventCosts._fields), 0), dtype=np.int64)
        return EventCosts(*(np.concatenate(columns) for columns in zip(none, *self._costs, strict=True)))
