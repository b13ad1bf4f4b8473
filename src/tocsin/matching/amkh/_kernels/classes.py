"""Classes of clauses: the extreme constants of a class decide whether an event may satisfy any of its clauses.

An extreme that is too wide costs a probe of a bucket, never a match. So removing a clause leaves the extremes as they are
until many are removed: then they are computed again, at a constant number of steps for each removal.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh.state import Chain, Clause, HashedAttribute, Index, IndexTop, Setting
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.structures import blocks, linked_lists
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of, copy_row, size_of
from tocsin.structures.jit import helper

_HEAD: Final = int(Chain.HEAD)
_FEW: Final = 32  # clauses of a class up to which its extremes are computed at every removal
_PART: Final = 8  # of more, when an eighth is removed


@helper
def _shape(op: int) -> int:
    """Return whether a clause is bounded below, above, on both sides or not at all."""
    if op < arrays.RANGE:
        return np.int64(arrays.LOOSE)
    flags = op - arrays.RANGE
    if flags & arrays.HAS_LOWER == 0:
        return np.int64(arrays.UPPER)
    return np.int64(arrays.BOTH) if flags & arrays.HAS_UPPER else np.int64(arrays.LOWER)


@helper
def _class_for(index: Index, place: int, entry: int) -> int:
    """Return the class of a clause other than an equality."""
    count, keys = index.settings[Setting.CLASS_COUNT], index.clauses.keys
    if count == 0:
        return keys[entry, Clause.ID]
    if index.settings[Setting.RANKED] == 0:
        return keys[entry, Clause.ID] % count
    shape = _shape(keys[entry, 0] >> FIELD_BITS)
    if shape == arrays.LOOSE:
        return arrays.LOOSE * count
    low, high = keys[entry, 1], keys[entry, 2]
    constant = low if shape == arrays.LOWER else high if shape == arrays.UPPER else (low >> 1) + (high >> 1)
    first = (arrays.LOOSE * index.attributes[place, HashedAttribute.CUTS] + shape) * (count - 1)
    rank = np.int64(0)
    while rank < count - 1 and index.cuts[first + rank] < constant:
        rank += 1
    return shape * count + rank


@helper
def _bounds_row(index: Index, place: int, class_: int, shape: int) -> int:
    """Return the row of bounds for the clauses of one shape in a class."""
    first = index.attributes[place, HashedAttribute.BOUNDS]
    return first + class_ if index.settings[Setting.RANKED] else first + arrays.SHAPES * class_ + shape


@helper
def _clear(rows: Int64s, at: int, shape: int) -> None:
    """Write bounds that no value fulfils."""
    rows[at, 0] = rows[at, 1] = 0
    if shape != arrays.LOOSE:
        rows[at, 0] = arrays.LOWEST if shape == arrays.UPPER else arrays.HIGHEST
        rows[at, 1] = arrays.HIGHEST if shape == arrays.LOWER else arrays.LOWEST


@helper
def _make_classes(index: Index, place: int, class_: int) -> None:
    """Make rows for an attribute's classes, up to this one, if there are none."""
    row, settings = index.attributes[place], index.settings
    old = row[HashedAttribute.CLASSES]
    if class_ < old:
        return
    per_class = np.int64(1 if settings[Setting.RANKED] else arrays.SHAPES)
    count = settings[Setting.CLASS_COUNT]
    if settings[Setting.RANKED]:
        count = arrays.LOOSE * count + 1
    elif count == 0:
        count = size_of(class_of(class_ + 1))
    chains_class, bounds_class = class_of(count), class_of(per_class * count)
    chains, bounds = blocks.take(index.chains, chains_class), blocks.take(index.bounds, bounds_class)
    for i in range(per_class * count):
        at = bounds + i
        if i < per_class * old:
            copy_row(index.bounds.rows, row[HashedAttribute.BOUNDS] + i, at)
        else:
            _clear(
                index.bounds.rows,
                at,
                i // settings[Setting.CLASS_COUNT] if settings[Setting.RANKED] else i % arrays.SHAPES,
            )
    for i in range(count):
        for column in range(Chain.STALE + 1):
            index.chains.rows[chains + i, column] = 0
            if i < old:
                index.chains.rows[chains + i, column] = index.chains.rows[
                    row[HashedAttribute.CHAINS] + i, column
                ]
        if i >= old:
            index.chains.rows[chains + i, Chain.HEAD] = -1
    forget_classes(index, place)
    row[HashedAttribute.CHAINS], row[HashedAttribute.CHAINS_CLASS], row[HashedAttribute.CLASSES] = (
        chains,
        chains_class,
        count,
    )
    row[HashedAttribute.BOUNDS], row[HashedAttribute.BOUNDS_CLASS] = bounds, bounds_class
    index.tops[IndexTop.LARGEST_CLASSES] = max(index.tops[IndexTop.LARGEST_CLASSES], count)


@helper
def forget_classes(index: Index, place: int) -> None:
    """Give back the rows of an attribute's classes."""
    row = index.attributes[place]
    if row[HashedAttribute.CLASSES] > 0:
        blocks.give(index.chains, row[HashedAttribute.CHAINS], row[HashedAttribute.CHAINS_CLASS])
        blocks.give(index.bounds, row[HashedAttribute.BOUNDS], row[HashedAttribute.BOUNDS_CLASS])
    row[HashedAttribute.CLASSES], row[HashedAttribute.BOUNDS], row[HashedAttribute.CHAINS] = 0, -1, -1


@helper
def _widen(index: Index, place: int, entry: int) -> None:
    """Extend a class's extremes to a clause with bounds."""
    keys, rows = index.clauses.keys, index.bounds.rows
    op = keys[entry, 0] >> FIELD_BITS
    shape, low, high = _shape(op), keys[entry, 1], keys[entry, 2]
    at = _bounds_row(index, place, keys[entry, Clause.CLASS], shape)
    if shape == arrays.BOTH:
        rows[at, 0], rows[at, 1] = min(rows[at, 0], low), max(rows[at, 1], high)
    elif shape == arrays.LOWER:
        column = 1 if op & arrays.LOWER_STRICT else 0
        rows[at, column] = min(rows[at, column], low)
    elif shape == arrays.UPPER:
        column = 1 if op & arrays.UPPER_STRICT else 0
        rows[at, column] = max(rows[at, column], high)


@helper
def _count_loose(index: Index, place: int, entry: int, change: int) -> None:
    keys = index.clauses.keys
    op = keys[entry, 0] >> FIELD_BITS
    if op < arrays.RANGE:
        at = _bounds_row(index, place, keys[entry, Clause.CLASS], np.int64(arrays.LOOSE))
        index.bounds.rows[at, 0 if op == Op.NE else 1] += change
        index.attributes[place, HashedAttribute.UNEQUALS] += change if op == Op.NE else 0


@helper
def enter_class(index: Index, place: int, entry: int) -> None:
    """Add a clause to its class; there must be room."""
    keys = index.clauses.keys
    class_ = _class_for(index, place, entry)
    keys[entry, Clause.CLASS] = class_
    _make_classes(index, place, class_)
    _widen(index, place, entry)
    _count_loose(index, place, entry, 1)
    chain = index.chains.rows[index.attributes[place, HashedAttribute.CHAINS] + class_]
    chain[Chain.LIVE] += 1
    linked_lists.push(keys[:, Clause.NEXT], keys[:, Clause.BEFORE], chain, _HEAD, entry)


@helper
def leave_class(index: Index, place: int, entry: int) -> None:
    """Remove a clause from its class, and compute the class's extremes again if many are removed."""
    keys, class_ = index.clauses.keys, index.clauses.keys[entry, Clause.CLASS]
    _count_loose(index, place, entry, -1)
    chain = index.chains.rows[index.attributes[place, HashedAttribute.CHAINS] + class_]
    linked_lists.unlink(keys[:, Clause.NEXT], keys[:, Clause.BEFORE], chain, _HEAD, entry)
    chain[Chain.LIVE] -= 1
    chain[Chain.STALE] += 1
    if chain[Chain.LIVE] > _FEW and chain[Chain.STALE] * _PART < chain[Chain.LIVE]:
        return
    chain[Chain.STALE] = 0
    for shape in range(arrays.LOOSE):
        if index.settings[Setting.RANKED] == 0 or class_ // index.settings[Setting.CLASS_COUNT] == shape:
            _clear(index.bounds.rows, _bounds_row(index, place, class_, shape), shape)
    other = chain[Chain.HEAD]
    while other >= 0:
        _widen(index, place, other)
        other = keys[other, Clause.NEXT]


@helper
def is_matched(index: Index, at: int, shape: int, value: tuple[int, int], refuted: int) -> bool:
    """Tell whether a value may satisfy a clause within bounds of a shape, where it refutes so many `!=`."""
    low, high = value
    first, second = index.bounds.rows[at, 0], index.bounds.rows[at, 1]
    if shape == arrays.LOWER:
        return low >= first or high > second
    if shape == arrays.UPPER:
        return high <= first or low < second
    if shape == arrays.BOTH:
        return low <= second and high >= first
    return first > refuted or second > 0


@helper
def is_any_matched(index: Index, at: int, value: tuple[int, int], refuted: int) -> bool:
    """Tell whether a value may satisfy a clause of a class that has a row for each shape."""
    return (
        is_matched(index, at, arrays.LOWER, value, refuted)
        or is_matched(index, at + arrays.UPPER, arrays.UPPER, value, refuted)
        or is_matched(index, at + arrays.BOTH, arrays.BOTH, value, refuted)
        or is_matched(index, at + arrays.LOOSE, arrays.LOOSE, value, refuted)
    )
