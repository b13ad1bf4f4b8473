"""What a run costs: by event, by pair of nodes, by link."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination._kernels.accounts import Columns, Costs, Pairs, Scratch, charge
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.sent import Role, Sent

__all__ = ["Accounts", "Costs"]


class Accounts:
    """Adds up the messages of a run, batch by batch."""

    def __init__(self, overlay: Overlay) -> None:
        nodes = len(overlay)
        self._pairs = Pairs(overlay.hops, *np.zeros((2, nodes, nodes), dtype=np.int64))
        self._scratch = Scratch(*np.zeros((2, nodes), dtype=np.int64))
        self._costs: list[Costs] = []
        self.size_by_role = dict.fromkeys(Role, 0)

    def add(self, sent: Sent, events: int) -> Costs:
        """Charge the messages of a batch of so many events, and return what each event cost."""
        costs = Costs(*np.zeros((len(Costs._fields), events), dtype=np.int64))
        columns = (np.ascontiguousarray(getattr(sent, name), dtype=np.int64) for name in Columns._fields)
        charge(Columns(*columns), self._pairs, self._scratch, costs)
        sizes = np.bincount(sent.role, weights=sent.size, minlength=len(Role))
        for role in Role:
            self.size_by_role[role] += int(sizes[role])
        self._costs.append(costs)
        return costs

    @property
    def costs(self) -> Costs:
        """Return what every event cost, those of all batches one after another."""
        none = np.zeros((len(Costs._fields), 0), dtype=np.int64)
        return Costs(*(np.concatenate(columns) for columns in zip(none, *self._costs, strict=True)))

    @property
    def messages(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return how many messages went from each node (a row) to each other one."""
        return self._pairs.messages

    @property
    def size(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return how many bytes went from each node (a row) to each other one."""
        return self._pairs.size
