"""Two tables to be joined, and their changes: rows of R move along the attribute that ranges look at, values of S walk."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinRows, JoinSide
from tocsin.dissemination.scenarios.ranges import DOMAIN, hundredths
from tocsin.views.changes import Floats

_PER_KEY: Final = 2  # rows of each table that have the same key, on average
_FAR: Final = 100.0  # how far a value goes with one change, at the most


def draw_rows(rows: int, table: JoinSide, seed: int = 1) -> JoinRows:
    """Return rows with values uniform in the domain, and keys of which each table has some twice and some not at all."""
    random = np.random.default_rng([seed, 7, table, rows])
    key = random.integers(0, max(rows // _PER_KEY, 1), rows).astype(np.float64)
    return JoinRows(np.arange(rows, dtype=np.int64), key, hundredths(random.uniform(*DOMAIN, rows)))


def draw_changes(r: JoinRows, s: JoinRows, count: int, seed: int = 1) -> JoinChanges:
    """Return changes of values, half of them R's and half S's: a random row's goes up or down a little."""
    random = np.random.default_rng([seed, 8, len(r), len(s), count])
    table = random.integers(0, 2, count).astype(np.int8)
    rows = np.where(table == JoinSide.R, random.integers(0, len(r), count), random.integers(0, len(s), count))
    ways = random.uniform(-_FAR, _FAR, count).tolist()
    now = (r.value.copy(), s.value.copy())
    old, new = np.empty(count), np.empty(count)
    for place_, (which, row, way) in enumerate(zip(table.tolist(), rows.tolist(), ways, strict=True)):
        old[place_] = now[which][row]
        now[which][row] = new[place_] = round(min(max(old[place_] + way, DOMAIN[0]), DOMAIN[1]), 2)
    key: Floats = np.where(table == JoinSide.R, r.key[rows % len(r)], s.key[rows % len(s)])
    return JoinChanges(table, rows, key, old, key, new)
