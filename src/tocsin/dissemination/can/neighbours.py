"""Which zones border on which, and which lie on the diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.matching import IdArray
from tocsin.views.changes import Floats


class Bounds(NamedTuple):
    """The sides of zones, low <= x < high in both dimensions."""

    low1: Floats
    high1: Floats
    low2: Floats
    high2: Floats


def neighbours_of(bounds: Bounds) -> tuple[IdArray, IdArray]:
    """Return where each zone's neighbours begin, and these, ascending: all with whom it shares a border of some length."""
    low1, high1, low2, high2 = bounds
    sides = (_touching(low1, high1, low2, high2), _touching(low2, high2, low1, high1))
    here = np.concatenate([one for pair in sides for one in pair])
    there = np.concatenate([one for pair in sides for one in reversed(pair)])
    order = np.lexsort((there, here))
    starts = np.zeros(len(low1) + 1, dtype=np.int64)
    np.cumsum(np.bincount(here, minlength=len(low1)), out=starts[1:])
    return starts, there[order]


def diagonal_of(bounds: Bounds) -> tuple[IdArray, Floats]:
    """Return the zones that hold some (x, x), in the order of x, and the least such x of each."""
    begins = np.maximum(bounds.low1, bounds.low2)
    zones = np.flatnonzero(begins < np.minimum(bounds.high1, bounds.high2))
    zones = zones[np.argsort(begins[zones])]
    return zones, begins[zones]


def _touching(low: Floats, high: Floats, start: Floats, end: Floats) -> tuple[IdArray, IdArray]:
    """Return pairs of zones, the second beginning in one dimension where the first ends, that overlap in the other.

    Those that begin at one place do not overlap each other, so the ones that a zone touches stand side by side. Bounds are
    replaced by their ranks, and a place and a bound make one whole number.
    """
    count = len(low)
    ranks = np.unique(np.concatenate([low, high, start, end]), return_inverse=True)[1].reshape(4, count)
    most = 4 * count
    by_place = np.lexsort((ranks[2], ranks[0]))
    places, starts, ends = ranks[0][by_place] * most, ranks[2][by_place], ranks[3][by_place]
    first = np.searchsorted(places + ends, ranks[1] * most + ranks[2], side="right")
    last = np.searchsorted(places + starts, ranks[1] * most + ranks[3], side="left")
    zones = np.repeat(np.arange(count), last - first)
    return zones, by_place[_ranges(first, last)]


def _ranges(first: IdArray, last: IdArray) -> IdArray:
    """Return the whole numbers from each first to before each last, one range after another."""
    sizes = last - first
    shifts: IdArray = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    return shifts + np.arange(len(shifts))
