"""Classes of clauses: the extreme constants of a class decide whether an event may satisfy any of its clauses.

An extreme that is too wide costs a probe of a bucket, never a match. So removing a clause leaves the extremes as they are
until many are removed: then they are computed again, at a constant number of steps for each removal.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.amkh.state import (
    BOTH,
    HAS_LOWER,
    HAS_UPPER,
    HIGHEST,
    LOOSE,
    LOWER,
    LOWER_STRICT,
    LOWEST,
    RANGE,
    SHAPES,
    UPPER,
    UPPER_STRICT,
    ChainColumn,
    ClauseColumn,
    HashSetting,
    Index,
    IndexTop,
    PlaceColumn,
)
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper

_FEW: Final = 32  # clauses of a class up to which its extremes are computed at every removal
_PART: Final = 8  # of more, when an eighth is removed


@helper
def _shape(op: int) -> int:
    """Return whether a clause is bounded below, above, on both sides or not at all."""
    if op < RANGE:
        return np.int64(LOOSE)
    flags = op - RANGE
    if flags & HAS_LOWER == 0:
        return np.int64(UPPER)
    return np.int64(BOTH) if flags & HAS_UPPER else np.int64(LOWER)


@helper
def _class_for(index: Index, place: int, entry: int) -> int:
    """Return the class of a clause other than an equality."""
    count, keys = index.settings[HashSetting.CLASS_COUNT], index.clauses.keys
    if count == 0:
        return keys[entry, ClauseColumn.ID]
    if index.settings[HashSetting.RANKED] == 0:
        return keys[entry, ClauseColumn.ID] % count
    shape = _shape(keys[entry, 0] >> FIELD_BITS)
    if shape == LOOSE:
        return LOOSE * count
    low, high = keys[entry, 1], keys[entry, 2]
    constant = low if shape == LOWER else high if shape == UPPER else (low >> 1) + (high >> 1)
    first = (LOOSE * index.places[place, PlaceColumn.CUTS] + shape) * (count - 1)
    rank = np.int64(0)
    while rank < count - 1 and index.cuts[first + rank] < constant:
        rank += 1
    return shape * count + rank


@helper
def _bounds_row(index: Index, place: int, class_: int, shape: int) -> int:
    """Return the row of bounds for the clauses of one shape in a class."""
    first = index.places[place, PlaceColumn.BOUNDS]
    return first + class_ if index.settings[HashSetting.RANKED] else first + SHAPES * class_ + shape


@helper
def _clear(rows: NDArray[np.int64], at: int, shape: int) -> None:
    """Write bounds that no value fulfils."""
    rows[at, 0] = rows[at, 1] = 0
    if shape != LOOSE:
        rows[at, 0] = LOWEST if shape == UPPER else HIGHEST
        rows[at, 1] = HIGHEST if shape == LOWER else LOWEST


@helper
def _make_classes(index: Index, place: int, class_: int) -> None:
    """Make rows for an attribute's classes, up to this one, if there are none."""
    row, settings = index.places[place], index.settings
    old = row[PlaceColumn.CLASSES]
    if class_ < old:
        return
    per_class = np.int64(1 if settings[HashSetting.RANKED] else SHAPES)
    count = settings[HashSetting.CLASS_COUNT]
    if settings[HashSetting.RANKED]:
        count = LOOSE * count + 1
    elif count == 0:
        count = size_of(class_of(class_ + 1))
    chains_class, bounds_class = class_of(count), class_of(per_class * count)
    chains, bounds = blocks.take(index.chains, chains_class), blocks.take(index.bounds, bounds_class)
    for i in range(per_class * count):
        at = bounds + i
        if i < per_class * old:
            index.bounds.rows[at, 0] = index.bounds.rows[row[PlaceColumn.BOUNDS] + i, 0]
            index.bounds.rows[at, 1] = index.bounds.rows[row[PlaceColumn.BOUNDS] + i, 1]
        else:
            _clear(
                index.bounds.rows,
                at,
                i // settings[HashSetting.CLASS_COUNT] if settings[HashSetting.RANKED] else i % SHAPES,
            )
    for i in range(count):
        for column in range(ChainColumn.STALE + 1):
            index.chains.rows[chains + i, column] = 0
            if i < old:
                index.chains.rows[chains + i, column] = index.chains.rows[row[PlaceColumn.CHAINS] + i, column]
        if i >= old:
            index.chains.rows[chains + i, ChainColumn.HEAD] = -1
    forget_classes(index, place)
    row[PlaceColumn.CHAINS], row[PlaceColumn.CHAINS_CLASS], row[PlaceColumn.CLASSES] = (
        chains,
        chains_class,
        count,
    )
    row[PlaceColumn.BOUNDS], row[PlaceColumn.BOUNDS_CLASS] = bounds, bounds_class
    index.tops[IndexTop.LARGEST_CLASSES] = max(index.tops[IndexTop.LARGEST_CLASSES], count)


@helper
def forget_classes(index: Index, place: int) -> None:
    """Give back the rows of an attribute's classes."""
    row = index.places[place]
    if row[PlaceColumn.CLASSES] > 0:
        blocks.give(index.chains, row[PlaceColumn.CHAINS], row[PlaceColumn.CHAINS_CLASS])
        blocks.give(index.bounds, row[PlaceColumn.BOUNDS], row[PlaceColumn.BOUNDS_CLASS])
    row[PlaceColumn.CLASSES], row[PlaceColumn.BOUNDS], row[PlaceColumn.CHAINS] = 0, -1, -1


@helper
def _widen(index: Index, place: int, entry: int) -> None:
    """Extend a class's extremes to a clause with bounds."""
    keys, rows = index.clauses.keys, index.bounds.rows
    op = keys[entry, 0] >> FIELD_BITS
    shape, low, high = _shape(op), keys[entry, 1], keys[entry, 2]
    at = _bounds_row(index, place, keys[entry, ClauseColumn.CLASS], shape)
    if shape == BOTH:
        rows[at, 0], rows[at, 1] = min(rows[at, 0], low), max(rows[at, 1], high)
    elif shape == LOWER:
        column = 1 if op & LOWER_STRICT else 0
        rows[at, column] = min(rows[at, column], low)
    elif shape == UPPER:
        column = 1 if op & UPPER_STRICT else 0
        rows[at, column] = max(rows[at, column], high)


@helper
def _count_loose(index: Index, place: int, entry: int, change: int) -> None:
    keys = index.clauses.keys
    op = keys[entry, 0] >> FIELD_BITS
    if op < RANGE:
        at = _bounds_row(index, place, keys[entry, ClauseColumn.CLASS], np.int64(LOOSE))
        index.bounds.rows[at, 0 if op == Op.NE else 1] += change
        index.places[place, PlaceColumn.UNEQUALS] += change if op == Op.NE else 0


@helper
def enter_class(index: Index, place: int, entry: int) -> None:
    """Add a clause to its class; there must be room."""
    keys = index.clauses.keys
    class_ = _class_for(index, place, entry)
    keys[entry, ClauseColumn.CLASS] = class_
    _make_classes(index, place, class_)
    _widen(index, place, entry)
    _count_loose(index, place, entry, 1)
    chain = index.chains.rows[index.places[place, PlaceColumn.CHAINS] + class_]
    chain[ChainColumn.LIVE] += 1
    keys[entry, ClauseColumn.NEXT] = chain[ChainColumn.HEAD]
    keys[entry, ClauseColumn.BEFORE] = -1
    if chain[ChainColumn.HEAD] >= 0:
        keys[chain[ChainColumn.HEAD], ClauseColumn.BEFORE] = entry
    chain[ChainColumn.HEAD] = entry


@helper
def leave_class(index: Index, place: int, entry: int) -> None:
    """Remove a clause from its class, and compute the class's extremes again if many are removed."""
    keys, class_ = index.clauses.keys, index.clauses.keys[entry, ClauseColumn.CLASS]
    _count_loose(index, place, entry, -1)
    chain = index.chains.rows[index.places[place, PlaceColumn.CHAINS] + class_]
    before, following = keys[entry, ClauseColumn.BEFORE], keys[entry, ClauseColumn.NEXT]
    if before >= 0:
        keys[before, ClauseColumn.NEXT] = following
    else:
        chain[ChainColumn.HEAD] = following
    if following >= 0:
        keys[following, ClauseColumn.BEFORE] = before
    chain[ChainColumn.LIVE] -= 1
    chain[ChainColumn.STALE] += 1
    if chain[ChainColumn.LIVE] > _FEW and chain[ChainColumn.STALE] * _PART < chain[ChainColumn.LIVE]:
        return
    chain[ChainColumn.STALE] = 0
    for shape in range(LOOSE):
        if (
            index.settings[HashSetting.RANKED] == 0
            or class_ // index.settings[HashSetting.CLASS_COUNT] == shape
        ):
            _clear(index.bounds.rows, _bounds_row(index, place, class_, shape), shape)
    other = chain[ChainColumn.HEAD]
    while other >= 0:
        _widen(index, place, other)
        other = keys[other, ClauseColumn.NEXT]


@helper
def is_matched(index: Index, at: int, shape: int, value: tuple[int, int], refuted: int) -> bool:
    """Tell whether a value may satisfy a clause within bounds of a shape, where it refutes so many `!=`."""
    low, high = value
    first, second = index.bounds.rows[at, 0], index.bounds.rows[at, 1]
    if shape == LOWER:
        return low >= first or high > second
    if shape == UPPER:
        return high <= first or low < second
    if shape == BOTH:
        return low <= second and high >= first
    return first > refuted or second > 0


@helper
def is_any_matched(index: Index, at: int, value: tuple[int, int], refuted: int) -> bool:
    """Tell whether a value may satisfy a clause of a class that has a row for each shape."""
    return (
        is_matched(index, at, LOWER, value, refuted)
        or is_matched(index, at + UPPER, UPPER, value, refuted)
        or is_matched(index, at + BOTH, BOTH, value, refuted)
        or is_matched(index, at + LOOSE, LOOSE, value, refuted)
    )
