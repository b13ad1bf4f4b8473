"""The rows along the diagonal: dealt out to owners, and given room."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.ds_cn.state import Moves, Rows
from tocsin.matching import IdArray
from tocsin.views.changes import Floats, PointChanges

Room = TypeVar("Room", bound=tuple[Any, ...])


def filled(larger: Room, smaller: Room) -> Room:
    """Return arrays with more room, with what was written into smaller ones."""
    for old, new in zip(smaller, larger, strict=True):
        new[: len(old)] = old
    return larger


def heights_of(kind: str, y: Floats) -> Floats:
    """Return what is least where `min` or `max` asks for y, or what is y where it is such a height."""
    plain = np.ascontiguousarray(y, dtype=np.float64) + 0.0
    return plain if kind == "min" else 0.0 - plain


def rows_of(can: Can, x: Floats, height: Floats) -> Rows:
    """Return rows, each at the owner of the zone of (x, x)."""
    order = np.lexsort((height, x))
    x, height = x[order] + 0.0, height[order]
    places = len(can.zones.diagonal)
    counts = np.bincount(can.diagonal_places(x), minlength=places)
    return _laid_out(counts, x, height)


def with_room(rows: Rows) -> Rows:
    """Return rows with more room at every place."""
    ends = rows.starts[:-1] + rows.counts
    held = np.concatenate([np.arange(begin, end) for begin, end in zip(rows.starts[:-1], ends, strict=True)])
    return _laid_out(rows.counts, rows.x[held], rows.height[held])


def moves_of(can: Can, kind: str, changes: PointChanges) -> Moves:
    """Return changes by height, with the places on the diagonal that they happen at."""
    old_x, new_x = (np.ascontiguousarray(x, dtype=np.float64) + 0.0 for x in (changes.old_x, changes.new_x))
    return Moves(
        old_x,
        heights_of(kind, changes.old_y),
        new_x,
        heights_of(kind, changes.new_y),
        _places(can, old_x),
        _places(can, new_x),
    )


def _places(can: Can, x: Floats) -> IdArray:
    return np.where(np.isnan(x), -1, can.diagonal_places(x)).astype(np.int64)


def _laid_out(counts: IdArray, x: Floats, height: Floats) -> Rows:
    """Return rows, given place after place, with room for half as many again at each."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts + counts // 2 + 8, out=starts[1:])
    to = np.repeat(starts[:-1] - (np.cumsum(counts) - counts), counts) + np.arange(len(x))
    rows = Rows(
        starts,
        counts.astype(np.int64),
        np.full(len(counts), np.inf),
        np.zeros(starts[-1]),
        np.zeros(starts[-1]),
    )
    rows.x[to], rows.height[to] = x, height
    np.minimum.at(rows.least, np.repeat(np.arange(len(counts)), counts), height)
    return rows
