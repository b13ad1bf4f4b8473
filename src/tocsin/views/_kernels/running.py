"""Counts, sums and means that run along: what changes become, and what those who hear of them make of it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import helper, kernel, prefetch
from tocsin.structures.sorted_blocks import PairChanges
from tocsin.structures.tallies import COUNT, add_number, add_tally, rounded

NUMBER: Final = 0  # what is made of a tally: the count, the sum or the mean
TOTAL: Final = 1
MEAN: Final = 2
MOST: Final = 3  # messages of one change
_AHEAD: Final = 8  # subscriptions whose tallies are asked for before they are needed


class Comings(NamedTuple):
    """Messages: whom they concern, and the number that goes and the one that comes there, NaN for none."""

    change: NDArray[np.int64]
    inner_l: NDArray[np.float64]
    inner_r: NDArray[np.float64]
    outer_l: NDArray[np.float64]
    outer_r: NDArray[np.float64]
    old_y: NDArray[np.float64]
    new_y: NDArray[np.float64]


class Heard(NamedTuple):
    """Which subscriptions hear each message, by places in their tallies, and what it tells."""

    change: NDArray[np.int64]
    old_y: NDArray[np.float64]
    new_y: NDArray[np.float64]
    offsets: NDArray[np.int64]
    places: NDArray[np.int64]


class Outcome(NamedTuple):
    """Answers that changed."""

    change: NDArray[np.int64]
    places: NDArray[np.int64]
    old: NDArray[np.float64]
    new: NDArray[np.float64]


@kernel
def reformulate_running(changes: PairChanges, rule: int, out: Comings) -> int:
    """Write the messages of changes of points, at most MOST of each, and return how many there are.

    Ranges with the old x alone, the new x alone, and both are three rectangles. Those with both are told only if y
    changes, which counts do not look at.
    """
    count = np.int64(0)
    for i in range(changes.old_first.shape[0]):
        old, new = changes.old_first[i], changes.new_first[i]
        gone, come = changes.old_second[i], changes.new_second[i]
        if old == new:
            if gone != come and rule != NUMBER:
                count = _write(out, count, i, (old, old, -np.inf, np.inf), gone, come)
            continue
        if not np.isnan(old):
            left = new if new < old else -np.inf
            right = new if new > old else np.inf
            count = _write(out, count, i, (old, old, left, right), gone, np.nan)
        if not np.isnan(new):
            left = old if old < new else -np.inf
            right = old if old > new else np.inf
            count = _write(out, count, i, (new, new, left, right), np.nan, come)
            if not np.isnan(old) and gone != come and rule != NUMBER:
                both = (min(old, new), max(old, new), -np.inf, np.inf)
                count = _write(out, count, i, both, gone, come)
    return count


@helper
def _write(
    out: Comings, at: int, change: int, ends: tuple[float, float, float, float], gone: float, come: float
) -> int:
    out.change[at] = change
    out.inner_l[at], out.inner_r[at], out.outer_l[at], out.outer_r[at] = ends
    out.old_y[at], out.new_y[at] = gone, come
    return at + 1


@helper
def _value(rows: NDArray[np.int64], row: int, bottom: int, rule: int) -> float:
    """Return what a tally tells: the count, or the sum or the mean of at least one number, else NaN."""
    count = rows[row, COUNT]
    if rule == NUMBER:
        return np.float64(count)
    if count == 0:
        return np.nan
    sum_ = rounded(rows, row, bottom)
    return sum_ if rule == TOTAL else sum_ / np.float64(count)


@kernel
def values_of(rows: NDArray[np.int64], bottom: int, rule: int, values: NDArray[np.float64]) -> None:
    """Write what each tally tells."""
    for i in range(rows.shape[0]):
        values[i] = _value(rows, i, bottom, rule)


@kernel
def tell_running(
    rows: NDArray[np.int64],
    bottom: int,
    rule: int,
    heard: Heard,
    difference: NDArray[np.int64],
    out: Outcome,
) -> int:
    """Follow messages in the tallies of those that hear them, and return how many answers changed.

    `difference` is one tally, written over. There must be room for every subscription that hears a message.
    """
    count = np.int64(0)
    for i in range(heard.change.shape[0]):
        begin, end = heard.offsets[i], heard.offsets[i + 1]
        if begin == end:
            continue
        for j in range(difference.shape[1]):
            difference[0, j] = 0
        for sign, number in ((-1, heard.old_y[i]), (1, heard.new_y[i])):
            if not np.isnan(number):
                add_number(difference, 0, bottom, number, sign)
        for j in range(begin, end):
            if j + _AHEAD < end:
                prefetch(rows, heard.places[j + _AHEAD] * rows.shape[1])
            place = heard.places[j]
            old = _value(rows, place, bottom, rule)
            add_tally(rows, place, difference, 0, 1)
            new = _value(rows, place, bottom, rule)
            if old != new and not (np.isnan(old) and np.isnan(new)):
                out.change[count], out.places[count] = heard.change[i], place
                out.old[count], out.new[count] = old, new
                count += 1
    return count
