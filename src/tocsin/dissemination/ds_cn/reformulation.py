"""What the owner of a change's x makes of the rows that its walks returned: the messages that tell of the change."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.ds_cn.walks import Walked
from tocsin.dissemination.runs import is_first
from tocsin.matching import IdArray
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.extremes import Extremes
from tocsin.views.messages import Messages


def reformulated(walked: Walked) -> Messages:
    """Return the messages of a batch's changes; `value` is a height, NaN for none.

    Each change has a world of its own, made of what came back for it and of nothing else: the old row, and the rows that
    were returned. All worlds are laid side by side on one line, with an x in each for every position that occurs in it,
    and a row lower than all at both ends, so that no search leads from one into the next. One reformulator then follows
    all changes at once.
    """
    places = np.flatnonzero(walked.homes.matters)
    moves, tuples = walked.moves, walked.tuples
    kept = walked.homes.matters[tuples.change]
    was, will = places[moves.old_place[places] >= 0], places[moves.new_place[places] >= 0]
    infinite = np.full(len(places), np.inf)
    line, at = _side_by_side(
        np.concatenate([places, places, was, will, tuples.change[kept]]),
        np.concatenate([-infinite, infinite, moves.old_x[was], moves.new_x[will], tuples.x[kept]]),
    )
    rims, old, new, rows = np.split(at, np.cumsum([2 * len(places), len(was), len(will)]))
    extremes = Extremes()
    extremes.load(
        np.concatenate([rims, old, rows]),
        np.concatenate([-infinite, -infinite, moves.old_height[was], tuples.height[kept]]),
    )
    old_x, new_x = np.full((2, len(moves.old_x)), np.nan)
    old_x[was], new_x[will] = old, new
    messages = extremes.reformulate(
        PointChanges(old_x[places], moves.old_height[places], new_x[places], moves.new_height[places])
    )
    inner_l, inner_r, outer_l, outer_r = (
        line[end.astype(np.int64)]
        for end in (messages.inner_l, messages.inner_r, messages.outer_l, messages.outer_r)
    )
    return Messages(places[messages.change], inner_l, inner_r, outer_l, outer_r, messages.payload)


def _side_by_side(worlds: IdArray, x: Floats) -> tuple[Floats, Floats]:
    """Return every x of every world once, by world, then x, and where among them each one given is."""
    order = np.lexsort((x, worlds))
    worlds, x = worlds[order], x[order]
    first = is_first(worlds, x)
    at = np.empty(len(x))
    at[order] = np.cumsum(first) - 1
    return x[first], at
