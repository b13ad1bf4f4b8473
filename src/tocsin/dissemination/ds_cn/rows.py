"""Rows distributed to the owners of the diagonal."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.ds_cn.state import DiagonalRows, RowChanges
from tocsin.matching import IdArray
from tocsin.views.changes import Floats, PointChanges


def heights_of(kind: str, y: Floats) -> Floats:
    """Return the heights of some y, y for `min` and -y for `max`; its own inverse."""
    plain = np.ascontiguousarray(y, dtype=np.float64) + 0.0  # turns -0.0 into 0.0
    return plain if kind == "min" else 0.0 - plain


def distribute_rows(can: Can, x: Floats, height: Floats) -> DiagonalRows:
    """Return the rows, each at the owner of the zone of (x, x)."""
    order = np.lexsort((height, x))
    x, height = x[order] + 0.0, height[order]
    counts = np.bincount(can.diagonal_places(x), minlength=len(can.zones.diagonal))
    return _lay_out(counts, x, height)


def with_room(rows: DiagonalRows) -> DiagonalRows:
    """Return the rows with more room at every place."""
    ends = rows.starts[:-1] + rows.counts
    used = np.concatenate([np.arange(begin, end) for begin, end in zip(rows.starts[:-1], ends, strict=True)])
    return _lay_out(rows.counts, rows.x[used], rows.height[used])


def to_row_changes(can: Can, kind: str, changes: PointChanges) -> RowChanges:
    """Return changes with heights, and the places on the diagonal where they happen."""
    old_x, new_x = (np.ascontiguousarray(x, dtype=np.float64) + 0.0 for x in (changes.old_x, changes.new_x))
    return RowChanges(
        old_x,
        heights_of(kind, changes.old_y),
        new_x,
        heights_of(kind, changes.new_y),
        _places(can, old_x),
        _places(can, new_x),
    )


def _places(can: Can, x: Floats) -> IdArray:
    return np.where(np.isnan(x), -1, can.diagonal_places(x)).astype(np.int64)


def _lay_out(counts: IdArray, x: Floats, height: Floats) -> DiagonalRows:
    """Return rows, given in the order of places, with room for half as many again at each place."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts + counts // 2 + 8, out=starts[1:])
    to = np.repeat(starts[:-1] - (np.cumsum(counts) - counts), counts) + np.arange(len(x))
    lowest = np.full(len(counts), np.inf)
    rows = DiagonalRows(starts, counts.astype(np.int64), lowest, *np.zeros((2, starts[-1])))
    rows.x[to], rows.height[to] = x, height
    np.minimum.at(rows.lowest, np.repeat(np.arange(len(counts)), counts), height)
    return rows
