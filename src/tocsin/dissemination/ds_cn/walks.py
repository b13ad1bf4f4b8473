"""Walks along the diagonal, batch by batch."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.ds_cn._kernels.diagonal import DiagonalMessages, ReturnedRows
from tocsin.dissemination.ds_cn._kernels.walks import Coordinators, Output, Progress, walk_changes
from tocsin.dissemination.ds_cn.rows import distribute_rows, heights_of, to_row_changes, with_room
from tocsin.dissemination.ds_cn.state import Ended, RowChanges
from tocsin.structures.growth import grown
from tocsin.views.aggregates.base import absent
from tocsin.views.changes import Floats, PointChanges


class Walked(Struct, frozen=True):
    """The walks of a batch: messages between places on the diagonal, the rows returned, and the coordinator of each change."""

    changes: RowChanges
    coordinators: Coordinators
    messages: DiagonalMessages
    returned: ReturnedRows


class DistributedServer:
    """The rows that the owners on the diagonal store, for the lowest or the highest y."""

    def __init__(self, can: Can, kind: str, x: Floats, y: Floats) -> None:
        self._can = can
        self._kind = kind
        self.rows = distribute_rows(can, x, heights_of(kind, y))

    def __len__(self) -> int:
        return int(self.rows.counts.sum())

    def walk(self, changes: PointChanges) -> Walked:
        """Apply changes in order, each after the walks that find how far it reaches.

        Raises `PointError` at a change whose old row is not stored; the changes before it are applied.
        """
        by_row = to_row_changes(self._can, self._kind, changes)
        number = len(changes)
        coordinators = Coordinators._make(
            [*np.zeros((2, number), dtype=np.int64), np.zeros(number, dtype=np.bool_)]
        )
        room = 4 * number + 64
        out = Output(coordinators, new_messages(room), new_rows(room))
        progress = np.zeros(len(Progress), dtype=np.int64)
        while (ended := walk_changes(self.rows, by_row, progress, out)) != Ended.DONE:
            if ended == Ended.ABSENT:
                raise absent(changes, int(progress[Progress.CHANGES]))
            if ended == Ended.NO_ROOM_FOR_ROWS:
                self.rows = with_room(self.rows)
            else:
                room *= 2
                messages = grown(out.messages, DiagonalMessages._fields, room)
                returned = grown(out.returned, ReturnedRows._fields, room)
                out = Output(coordinators, messages, returned)
        return Walked(
            by_row,
            coordinators,
            DiagonalMessages._make(column[: progress[Progress.MESSAGES]] for column in out.messages),
            ReturnedRows._make(column[: progress[Progress.ROWS]] for column in out.returned),
        )


def new_messages(room: int) -> DiagonalMessages:
    """Return room for messages along the diagonal."""
    return DiagonalMessages._make([*np.empty((5, room), dtype=np.int64), np.empty(room, dtype=np.bool_)])


def new_rows(room: int) -> ReturnedRows:
    """Return room for returned rows."""
    return ReturnedRows(np.empty(room, dtype=np.int64), *np.empty((2, room)))
