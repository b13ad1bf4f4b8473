"""The traffic that a strategy is charged for: messages between overlay nodes as columns, and the ledger of a run."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.dissemination._kernels.ledger import EventCosts, PairTotals, SenderCounts, TrafficColumns, charge
from tocsin.dissemination.network.overlay import Overlay
from tocsin.matching import IdArray


class MessageRole(IntEnum):
    """The purpose of a message."""

    ROUTE = 0  # on its way to the zone from which it spreads
    SPREAD = 1  # to gateways of affected subscriptions, or to nodes that forward it
    ASK = 2  # a request for rows that another node stores
    REPLY = 3


class Traffic(Struct, frozen=True):
    """Messages from one overlay node to another, as columns of equal length, sorted by event.

    A row stands for `messages` equal messages sent at once; `size` is the bytes of all of them. A message that another
    one of its event caused has a greater `step`; steps count from 0.
    """

    event: IdArray  # int64 the position of the change in its batch; ascending
    sender: IdArray  # int64 overlay nodes; never the receiver
    receiver: IdArray
    messages: IdArray
    size: IdArray
    step: IdArray
    role: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.event)

    @classmethod
    def from_columns(
        cls,
        event: IdArray,
        sender: IdArray,
        receiver: IdArray,
        *,
        size: IdArray | int,
        step: IdArray,
        role: NDArray[np.int8] | MessageRole,
        messages: IdArray | int = 1,
    ) -> Traffic:
        """Return the messages sorted by event; messages from a node to itself are dropped."""
        kept = np.flatnonzero(sender != receiver)
        if len(kept) and np.any(np.diff(event[kept]) < 0):
            kept = kept[np.argsort(event[kept], kind="stable")]
        columns = (np.asarray(one, dtype=np.int64) for one in (messages, size, step))
        counts, sizes, steps = (np.broadcast_to(one, event.shape)[kept] for one in columns)
        roles = np.broadcast_to(np.asarray(role, dtype=np.int8), event.shape)[kept]
        return cls(event[kept], sender[kept], receiver[kept], counts, sizes, steps, roles)

    @classmethod
    def concat(cls, parts: Sequence[Traffic]) -> Traffic:
        """Return the rows of all parts, sorted by event."""
        order = np.argsort(np.concatenate([np.empty(0), *(part.event for part in parts)]), kind="stable")
        return cls(
            *(
                np.concatenate([np.empty(0, dtype), *(getattr(part, name) for part in parts)])[order]
                for name, dtype in zip(cls.__struct_fields__, (*[np.int64] * 6, np.int8), strict=True)
            )
        )


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
        arrays = (getattr(traffic, name) for name in TrafficColumns._fields)
        columns = (np.ascontiguousarray(column, dtype=np.int64) for column in arrays)
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
