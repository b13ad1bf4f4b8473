"""Messages between overlay nodes, as columns: what every strategy is charged for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray


class Role(IntEnum):
    """What a message is sent for."""

    ROUTE = 0  # on its way to where it spreads from
    SPREAD = 1  # to those whom it concerns, or who hand it on
    ASK = 2  # for rows that another node holds
    REPLY = 3


class Traffic(Struct, frozen=True):
    """Messages from an overlay node to another, as columns of equal length, by event.

    A line stands for `messages` of one sort that go the same way at once; `size` is the bytes of all of them. Within an
    event, one that is sent because of another has a greater `step`, counted from 0.
    """

    event: IdArray  # int64 the place of the change in its batch; ascending
    sender: IdArray  # int64 overlay nodes; never the receiver
    receiver: IdArray
    messages: IdArray
    size: IdArray
    step: IdArray
    role: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.event)

    @classmethod
    def of(
        cls,
        event: IdArray,
        sender: IdArray,
        receiver: IdArray,
        *,
        size: IdArray | int,
        step: IdArray,
        role: Role,
        messages: IdArray | int = 1,
    ) -> Traffic:
        """Return lines, in the order of their events; those from a node to itself are left out."""
        kept = np.flatnonzero(sender != receiver)
        if len(kept) and np.any(np.diff(event[kept]) < 0):
            kept = kept[np.argsort(event[kept], kind="stable")]
        count, total, wave = (
            np.broadcast_to(np.asarray(one, dtype=np.int64), event.shape)[kept]
            for one in (messages, size, step)
        )
        roles = np.full(len(kept), role, dtype=np.int8)
        return cls(event[kept], sender[kept], receiver[kept], count, total, wave, roles)

    @classmethod
    def together(cls, parts: Sequence[Traffic]) -> Traffic:
        """Return all lines of several, in the order of their events."""
        event = np.concatenate([np.empty(0, dtype=np.int64), *(part.event for part in parts)])
        order = np.argsort(event, kind="stable")
        others = (
            np.concatenate([np.empty(0, dtype=type_), *(getattr(part, name) for part in parts)])[order]
            for name, type_ in (*((name, np.int64) for name in _NUMBERS), ("role", np.int8))
        )
        return cls(event[order], *others)


_NUMBERS = ("sender", "receiver", "messages", "size", "step")
