"""The registry of hashed clauses: each has an id of its own on its attribute (AMKH, 2)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.amkh._kernels.classes import enter_class, forget_classes, leave_class
from tocsin.matching.amkh.state import PLACE_COLUMNS, Clause, Index, IndexTop, Place, Setting
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, wrapping_helper


@wrapping_helper
def _mixed(number: int) -> int:
    mixed = (np.uint64(number) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


@helper
def place_of(index: Index, field: int) -> int:
    """Return the row of a hashed attribute, making one if it has none; there must be room."""
    place = np.int64(index.place[field])
    if place >= 0:
        return place
    place = index.tops[IndexTop.TOP_PLACE]
    index.tops[IndexTop.TOP_PLACE] += 1
    index.place[field] = place
    row = index.places[place]
    for column in range(PLACE_COLUMNS):
        row[column] = 0
    row[Place.FIELD] = field
    row[Place.FREE_IDS] = row[Place.BOUNDS] = row[Place.LIST] = row[Place.MET] = -1
    row[Place.CUTS] = field % FIELDS
    buckets = index.settings[Setting.BUCKET_COUNT]
    if buckets > 1 and index.settings[Setting.SPLIT] == 0:
        # No weight is 0 modulo M
        row[Place.WEIGHT] = np.int64(_mixed(2 * field) % np.uint64(buckets - 1)) + 1
        row[Place.CLASS_WEIGHT] = row[Place.WEIGHT]
    else:
        row[Place.WEIGHT] = np.int64(_mixed(2 * field) | np.uint64(1))
        row[Place.CLASS_WEIGHT] = np.int64(_mixed(2 * field + 1) | np.uint64(1))
        if index.settings[Setting.SPLIT] == 0:
            row[Place.CLASS_WEIGHT] = row[Place.WEIGHT]
    return place


@wrapping_helper
def equality_addend(index: Index, place: int, id_: int) -> int:
    """Return the addend of an equality to a coordinate."""
    return np.uint64(index.places[place, Place.WEIGHT]) * np.uint64(id_)


@wrapping_helper
def class_addend(index: Index, place: int, class_: int) -> int:
    """Return the addend of a class's clauses to a coordinate; the paper's class 0 adds nothing."""
    settings = index.settings
    apart = settings[Setting.SPLIT] != 0 and settings[Setting.CLASS_COUNT] > 0
    return np.uint64(index.places[place, Place.CLASS_WEIGHT]) * np.uint64(class_ + 1 if apart else class_)


@helper
def use_clause(index: Index, place: int, tag: int, low: int, high: int) -> tuple[int, int]:
    """Count one more use of a clause, new or not; return its entry, and its addend to a coordinate."""
    keys = index.clauses.keys
    entry = hash_index.find(index.clauses, tag, low, high)
    if entry < 0:
        entry = hash_index.insert(index.clauses, tag, low, high)
        keys[entry, Clause.USES] = 0
        keys[entry, Clause.ID] = _new_id(index, place)
        if tag >> FIELD_BITS == Op.EQ:
            keys[entry, Clause.CLASS] = -1
            index.places[place, Place.EQUALITIES] += 1
        else:
            enter_class(index, place, entry)
            index.places[place, Place.OTHERS] += 1
    keys[entry, Clause.USES] += 1
    if keys[entry, Clause.CLASS] < 0:
        return entry, equality_addend(index, place, keys[entry, Clause.ID])
    return entry, class_addend(index, place, keys[entry, Clause.CLASS])


@helper
def _new_id(index: Index, place: int) -> int:
    """Return an id that no clause of an attribute has, and make room to give all of them back."""
    row = index.places[place]
    if row[Place.FREE_COUNT] > 0:
        row[Place.FREE_COUNT] -= 1
        return index.ids.rows[row[Place.FREE_IDS] + row[Place.FREE_COUNT], 0]
    row[Place.TOP_ID] += 1
    if row[Place.FREE_IDS] < 0 or size_of(row[Place.FREE_CLASS]) < row[Place.TOP_ID]:
        block = class_of(row[Place.TOP_ID])
        first = blocks.take(index.ids, block)
        if row[Place.FREE_IDS] >= 0:
            blocks.give(index.ids, row[Place.FREE_IDS], row[Place.FREE_CLASS])  # it is empty
        row[Place.FREE_IDS], row[Place.FREE_CLASS] = first, block
        index.tops[IndexTop.LARGEST_IDS] = max(index.tops[IndexTop.LARGEST_IDS], size_of(block))
    return row[Place.TOP_ID]


@helper
def release_clause(index: Index, place: int, entry: int) -> None:
    """Count one use less of a clause, and forget it with the last."""
    keys, row = index.clauses.keys, index.places[place]
    keys[entry, Clause.USES] -= 1
    if keys[entry, Clause.USES] > 0:
        return
    if keys[entry, Clause.CLASS] < 0:
        row[Place.EQUALITIES] -= 1
    else:
        leave_class(index, place, entry)
        row[Place.OTHERS] -= 1
    index.ids.rows[row[Place.FREE_IDS] + row[Place.FREE_COUNT], 0] = keys[entry, Clause.ID]
    row[Place.FREE_COUNT] += 1
    hash_index.remove(index.clauses, entry)
    if row[Place.EQUALITIES] + row[Place.OTHERS] == 0:
        _forget_place(index, place)


@helper
def _forget_place(index: Index, place: int) -> None:
    """Free the blocks of an attribute without hashed clauses; it keeps its row."""
    row = index.places[place]
    blocks.give(index.ids, row[Place.FREE_IDS], row[Place.FREE_CLASS])
    (row[Place.FREE_IDS], row[Place.FREE_COUNT], row[Place.FREE_CLASS], row[Place.TOP_ID]) = -1, 0, 0, 0
    forget_classes(index, place)
