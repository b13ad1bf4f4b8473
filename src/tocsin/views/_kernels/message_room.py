"""Room for the messages that kernels write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import helper


class MessageRoom(NamedTuple):
    """Messages by the change they come of, and the ends of the ranges they concern (`Messages`)."""

    change: Int64s  # [room]
    ends: Float64s  # [4, room] inner_l, inner_r, outer_l and outer_r


def new_message_room(room: int) -> MessageRoom:
    """Return room for so many messages."""
    return MessageRoom(np.empty(room, dtype=np.int64), np.empty((4, room)))


@helper
def write_message(room: MessageRoom, at: int, change: int, ends: tuple[float, float, float, float]) -> None:
    """Write a message with the ends inner_l, inner_r, outer_l and outer_r."""
    room.change[at] = change
    room.ends[0, at], room.ends[1, at], room.ends[2, at], room.ends[3, at] = ends
