"""The same updates for views that other changes matter to: rows that move, and values that are few."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination.scenarios.ranges import DOMAIN, hundredths
from tocsin.dissemination.scenarios.walks import TablePoints, Updates
from tocsin.views.changes import Floats, PointChanges

_FAR: Final = 100.0  # how far a row moves from where it began, at the most


def mirrored(y: Floats) -> Floats:
    """Return values turned upside down in the domain, so that what is the least becomes the greatest."""
    return hundredths(DOMAIN[1] - y)


def moves(points: TablePoints, updates: Updates, seed: int = 1) -> PointChanges:
    """Return moves of the updated rows in x; their y stay as they were at first."""
    random = np.random.default_rng([seed, 5, len(updates)])
    rows = updates.rows
    away = random.uniform(-_FAR, _FAR, len(rows))
    x = hundredths(np.clip(points.x[rows] + away, *DOMAIN))
    order = np.argsort(rows, kind="stable")
    again = np.flatnonzero(np.diff(rows[order]) == 0)
    before = points.x[rows]
    before[order[again + 1]] = x[order[again]]
    y = points.y[rows]
    return PointChanges(before, y, x, y)


def codes(y: Floats, values: int) -> Floats:
    """Return y as codes of so many values."""
    return np.floor(y) % values


def recoded(updates: Updates, values: int) -> PointChanges:
    """Return updates of values that are few, as codes."""
    return PointChanges(updates.x, codes(updates.old_y, values), updates.x, codes(updates.new_y, values))
