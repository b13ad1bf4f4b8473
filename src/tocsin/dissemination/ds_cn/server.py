"""The distributed server: rows at the owners of the diagonal, walks along it, and the reformulation of the returned rows (2.3.2)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.columns import is_run_start
from tocsin.dissemination.ds_cn._kernels.rows import DiagonalMessages, ReturnedRows
from tocsin.dissemination.ds_cn._kernels.walks import Coordinators, Output, Progress, walk_changes
from tocsin.dissemination.ds_cn.state import DiagonalRows, Ended, RowChanges
from tocsin.matching import IdArray
from tocsin.structures.growth import grown
from tocsin.views.aggregates.base import missing_point_error
from tocsin.views.aggregates.extremes import Extremes
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.messages import Messages


def heights_of(kind: str, y: Floats) -> Floats:
    """Return the heights of some y, y for `min` and -y for `max`; its own inverse."""
    plain = np.ascontiguousarray(y, dtype=np.float64) + 0.0  # turns -0.0 into 0.0
    return plain if kind == "min" else 0.0 - plain


def distribute_rows(can: Can, x: Floats, height: Floats) -> DiagonalRows:
    """Return the rows, each at the owner of the zone of (x, x)."""
    order = np.lexsort((height, x))
    x, height = x[order] + 0.0, height[order]
    counts = np.bincount(can.diagonal_positions(x), minlength=len(can.zones.diagonal))
    return _lay_out(counts, x, height)


def with_room(rows: DiagonalRows) -> DiagonalRows:
    """Return the rows with more room at every position."""
    ends = rows.starts[:-1] + rows.counts
    used = np.concatenate([np.arange(begin, end) for begin, end in zip(rows.starts[:-1], ends, strict=True)])
    return _lay_out(rows.counts, rows.x[used], rows.height[used])


def to_row_changes(can: Can, kind: str, changes: PointChanges) -> RowChanges:
    """Return changes with heights, and the positions on the diagonal where they happen."""
    old_x, new_x = (np.ascontiguousarray(x, dtype=np.float64) + 0.0 for x in (changes.old_x, changes.new_x))
    return RowChanges(
        old_x,
        heights_of(kind, changes.old_y),
        new_x,
        heights_of(kind, changes.new_y),
        _diagonal_positions(can, old_x),
        _diagonal_positions(can, new_x),
    )


def _diagonal_positions(can: Can, x: Floats) -> IdArray:
    return np.where(np.isnan(x), -1, can.diagonal_positions(x)).astype(np.int64)


def _lay_out(counts: IdArray, x: Floats, height: Floats) -> DiagonalRows:
    """Return rows, given in the order of positions, with room for half as many again at each position."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts + counts // 2 + 8, out=starts[1:])
    to = np.repeat(starts[:-1] - (np.cumsum(counts) - counts), counts) + np.arange(len(x))
    lowest = np.full(len(counts), np.inf)
    rows = DiagonalRows(starts, counts.astype(np.int64), lowest, *np.zeros((2, starts[-1])))
    rows.x[to], rows.height[to] = x, height
    np.minimum.at(rows.lowest, np.repeat(np.arange(len(counts)), counts), height)
    return rows


class Walked(Struct, frozen=True):
    """The walks of a batch: messages between positions on the diagonal, the rows returned, and the coordinator of each change."""

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
        columns = [*np.zeros((2, number), dtype=np.int64), np.zeros(number, dtype=np.bool_)]
        coordinators = Coordinators._make(columns)
        room = 4 * number + 64
        out = Output(coordinators, new_messages(room), new_rows(room))
        progress = np.zeros(len(Progress), dtype=np.int64)
        while (ended := walk_changes(self.rows, by_row, progress, out)) != Ended.DONE:
            if ended == Ended.ABSENT:
                raise missing_point_error(changes, int(progress[Progress.CHANGES]))
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


def reformulate(walked: Walked) -> Messages:
    """Return the messages of a batch's changes; `value` is a height, NaN for none.

    Each change has a world of its own: its old row, and the rows returned for it, nothing else. All worlds stand side by
    side on one line, with an x in each for every position that occurs in it, and a row lower than all at both ends, so
    that no search leads from one into the next. One reformulator then applies all changes at once.
    """
    relevant = np.flatnonzero(walked.coordinators.is_relevant)
    changes, returned = walked.changes, walked.returned
    kept = walked.coordinators.is_relevant[returned.change]
    was, will = relevant[changes.old_position[relevant] >= 0], relevant[changes.new_position[relevant] >= 0]
    infinite = np.full(len(relevant), np.inf)
    line, at = _side_by_side(
        np.concatenate([relevant, relevant, was, will, returned.change[kept]]),
        np.concatenate([-infinite, infinite, changes.old_x[was], changes.new_x[will], returned.x[kept]]),
    )
    rims, old, new, rows = np.split(at, np.cumsum([2 * len(relevant), len(was), len(will)]))
    extremes = Extremes()
    extremes.load(
        np.concatenate([rims, old, rows]),
        np.concatenate([-infinite, -infinite, changes.old_height[was], returned.height[kept]]),
    )
    old_x, new_x = np.full((2, len(changes.old_x)), np.nan)
    old_x[was], new_x[will] = old, new
    messages = extremes.reformulate(
        PointChanges(
            old_x[relevant], changes.old_height[relevant], new_x[relevant], changes.new_height[relevant]
        )
    )
    inner_l, inner_r, outer_l, outer_r = (
        line[end.astype(np.int64)]
        for end in (messages.inner_l, messages.inner_r, messages.outer_l, messages.outer_r)
    )
    return Messages(relevant[messages.change], inner_l, inner_r, outer_l, outer_r, messages.payload)


def _side_by_side(worlds: IdArray, x: Floats) -> tuple[Floats, Floats]:
    """Return every x of every world once, by world, then x, and the position among them of each x given."""
    order = np.lexsort((x, worlds))
    worlds, x = worlds[order], x[order]
    first = is_run_start(worlds, x)
    at = np.empty(len(x))
    at[order] = np.cumsum(first) - 1
    return x[first], at
