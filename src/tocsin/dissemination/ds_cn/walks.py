"""Walks along the diagonal, batch by batch."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.ds_cn._kernels.scans import Tuples
from tocsin.dissemination.ds_cn._kernels.walks import (
    ABSENT,
    CHANGES,
    DONE,
    LINES,
    NO_ROOM_FOR_ROWS,
    TUPLES,
    Homes,
    WalkLines,
    walk_changes,
)
from tocsin.dissemination.ds_cn.rows import filled, heights_of, moves_of, rows_of, with_room
from tocsin.dissemination.ds_cn.state import Moves
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.kind import absent


class Walked(Struct, frozen=True):
    """What came of the walks of a batch: who asked whom, what rows came back, and where each change is reformulated."""

    moves: Moves
    homes: Homes
    lines: WalkLines
    tuples: Tuples


class DiagonalRows:
    """The rows that the owners on the diagonal hold, for the least or the greatest y."""

    def __init__(self, can: Can, kind: str, x: Floats, y: Floats) -> None:
        self._can = can
        self._kind = kind
        self.rows = rows_of(can, x, heights_of(kind, y))

    def __len__(self) -> int:
        return int(self.rows.counts.sum())

    def walk(self, changes: PointChanges) -> Walked:
        """Make changes one after another, each after the walks that tell how far it reaches.

        Raises `PointError` at one that begins at a row that is not held; those before it are made.
        """
        moves = moves_of(self._can, self._kind, changes)
        number = len(changes)
        homes = Homes._make([*np.zeros((2, number), dtype=np.int64), np.zeros(number, dtype=np.bool_)])
        lines, tuples = _lines(4 * number + 64), _tuples(4 * number + 64)
        progress = np.zeros(3, dtype=np.int64)
        while (ended := walk_changes(self.rows, moves, progress, homes, lines, tuples)) != DONE:
            if ended == ABSENT:
                raise absent(changes, int(progress[CHANGES]))
            if ended == NO_ROOM_FOR_ROWS:
                self.rows = with_room(self.rows)
            else:
                lines = filled(_lines(2 * len(lines.change)), lines)
                tuples = filled(_tuples(2 * len(tuples.change)), tuples)
        return Walked(
            moves,
            homes,
            WalkLines._make(column[: progress[LINES]] for column in lines),
            Tuples._make(column[: progress[TUPLES]] for column in tuples),
        )


def _lines(room: int) -> WalkLines:
    return WalkLines._make([*np.empty((5, room), dtype=np.int64), np.empty(room, dtype=np.bool_)])


def _tuples(room: int) -> Tuples:
    return Tuples._make([np.empty(room, dtype=np.int64), *np.empty((2, room))])
