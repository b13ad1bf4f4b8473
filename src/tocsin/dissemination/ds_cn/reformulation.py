"""Reformulation at the owner of a change's x, from the rows that its walks returned."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.columns import is_run_start
from tocsin.dissemination.ds_cn.walks import Walked
from tocsin.matching import IdArray
from tocsin.views.aggregates.extremes import Extremes
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.messages import Messages


def reformulate(walked: Walked) -> Messages:
    """Return the messages of a batch's changes; `value` is a height, NaN for none.

    Each change has a world of its own: its old row, and the rows returned for it, nothing else. All worlds stand side by
    side on one line, with an x in each for every position that occurs in it, and a row lower than all at both ends, so
    that no search leads from one into the next. One reformulator then applies all changes at once.
    """
    relevant = np.flatnonzero(walked.coordinators.is_relevant)
    changes, returned = walked.changes, walked.returned
    kept = walked.coordinators.is_relevant[returned.change]
    was, will = relevant[changes.old_place[relevant] >= 0], relevant[changes.new_place[relevant] >= 0]
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
