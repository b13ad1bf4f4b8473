"""Reformulated changes: messages that name the ranges they concern (database/network interface, §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.structures.array_types import Bools, Int64s
from tocsin.views.changes import Floats

if TYPE_CHECKING:
    from tocsin.views._kernels.message_room import MessageRoom


class Messages(Struct, frozen=True):
    """Messages in the order of the changes that they come of, as columns of equal length.

    One concerns the subscriptions of a range [x1, x2], both ends included, with outer_l < x1 <= inner_l and
    inner_r <= x2 < outer_r. Those of one change are disjoint, and together they reach each subscription whose
    answer changes. `payload` has the further columns of an aggregate, by name.
    """

    change: IdArray  # int64[messages] the position of the change
    inner_l: Floats
    inner_r: Floats
    outer_l: Floats  # -inf if no row limits it
    outer_r: Floats  # inf if no row limits it
    payload: Mapping[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.change)

    @classmethod
    def of(cls, room: MessageRoom, count: int, **payload: NDArray[Any]) -> Messages:
        """Return the first `count` messages of a room, with the columns of their payload."""
        kept = {name: column[:count] for name, column in payload.items()}
        inner_l, inner_r, outer_l, outer_r = room.ends[:, :count]
        return cls(room.change[:count], inner_l, inner_r, outer_l, outer_r, kept)

    def take(self, positions: Int64s | Bools) -> Messages:
        """Return some of the messages, given by their positions or by a mask."""
        columns: dict[str, Any] = {name: getattr(self, name)[positions] for name in _COLUMNS}
        return Messages(**columns, payload={name: column[positions] for name, column in self.payload.items()})

    @classmethod
    def together(cls, parts: Sequence[Messages]) -> Messages:
        """Return all messages of several, at least one, which have the same payload, one after another."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        payload = {name: np.concatenate([part.payload[name] for part in parts]) for name in parts[0].payload}
        return cls(**columns, payload=payload)


_COLUMNS = ("change", "inner_l", "inner_r", "outer_l", "outer_r")
