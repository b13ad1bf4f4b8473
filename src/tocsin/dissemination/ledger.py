"""What a run costs: by event, by pair of nodes, by link."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination._kernels.ledger import Columns, EventCosts, Pairs, Scratch, charge
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.traffic import Role, Traffic

__all__ = ["EventCosts", "TrafficLedger"]


class TrafficLedger:
    """Adds up the messages of a run, batch by batch."""

    def __init__(self, overlay: Overlay) -> None:
        nodes = len(overlay)
        self._pairs = Pairs(overlay.hops, *np.zeros((2, nodes, nodes), dtype=np.int64))
        self._scratch = Scratch(*np.zeros((2, nodes), dtype=np.int64))
        self._costs: list[EventCosts] = []
        self.size_by_role = dict.fromkeys(Role, 0)

    def add(self, sent: Traffic, events: int) -> EventCosts:
        """Charge the messages of a batch of so many events, and return what each event cost."""
        costs = EventCosts(*np.zeros((len(EventCosts._fields), events), dtype=np.int64))
        columns = (np.ascontiguousarray(getattr(sent, name), dtype=np.int64) for name in Columns._fields)
        charge(Columns(*columns), self._pairs, self._scratch, costs)
        sizes = np.bincount(sent.role, weights=sent.size, minlength=len(Role))
        for role in Role:
            self.size_by_role[role] += int(sizes[role])
        self._costs.append(costs)
        return costs

    @property
    def costs(self) -> EventCosts:
        """Return what every event cost, those of all batches one after another."""
        none = np.zeros((len(EventCosts._fields), 0), dtype=np.int64)
        return EventCosts(*(np.concatenate(columns) for columns in zip(none, *self._costs, strict=True)))

    @property
    def messages(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return how many messages went from each node (a row) to each other one."""
        return self._pairs.messages

    @property
    def size(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return how many bytes went from each node (a row) to each other one."""
        return self._pairs.size
