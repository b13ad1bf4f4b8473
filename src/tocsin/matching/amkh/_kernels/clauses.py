"""The registry of hashed clauses: each has an id of its own on its attribute (AMKH, 2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.amkh._kernels.classes import enter_class, forget_classes, leave_class
from tocsin.matching.amkh.state import (
    BOUNDS,
    BUCKET_COUNT,
    CLASS_COUNT,
    CLASS_WEIGHT,
    CLAUSE_CLASS,
    CLAUSE_ID,
    CLAUSE_USES,
    CUTS,
    EQUALITIES,
    FIELD,
    FREE_CLASS,
    FREE_COUNT,
    FREE_IDS,
    LARGEST_IDS,
    LIST,
    MET,
    OTHERS,
    PLACE_COLUMNS,
    SPLIT,
    TOP_ID,
    TOP_PLACE,
    WEIGHT,
    Index,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, wrapping_helper

_EQ: Final = int(Op.EQ)


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
    place = index.tops[TOP_PLACE]
    index.tops[TOP_PLACE] += 1
    index.place[field] = place
    row = index.places[place]
    for column in range(PLACE_COLUMNS):
        row[column] = 0
    row[FIELD], row[FREE_IDS], row[BOUNDS], row[LIST], row[MET] = field, -1, -1, -1, -1
    row[CUTS] = field % FIELDS
    buckets = index.settings[BUCKET_COUNT]
    if buckets > 1 and index.settings[SPLIT] == 0:
        row[WEIGHT] = np.int64(_mixed(2 * field) % np.uint64(buckets - 1)) + 1  # no weight is 0 modulo M
        row[CLASS_WEIGHT] = row[WEIGHT]
    else:
        row[WEIGHT] = np.int64(_mixed(2 * field) | np.uint64(1))
        row[CLASS_WEIGHT] = np.int64(_mixed(2 * field + 1) | np.uint64(1))
        if index.settings[SPLIT] == 0:
            row[CLASS_WEIGHT] = row[WEIGHT]
    return place


@wrapping_helper
def equality_addend(index: Index, place: int, id_: int) -> int:
    """Return what an equality adds to a coordinate."""
    return np.uint64(index.places[place, WEIGHT]) * np.uint64(id_)


@wrapping_helper
def class_addend(index: Index, place: int, class_: int) -> int:
    """Return what a clause of a class adds to a coordinate; the paper's class 0 adds nothing."""
    settings = index.settings
    apart = settings[SPLIT] != 0 and settings[CLASS_COUNT] > 0
    return np.uint64(index.places[place, CLASS_WEIGHT]) * np.uint64(class_ + 1 if apart else class_)


@helper
def use_clause(index: Index, place: int, tag: int, low: int, high: int) -> tuple[int, int]:
    """Count one more use of a clause, new or not; return its entry, and what it adds to a coordinate."""
    keys = index.clauses.keys
    entry = hash_index.find(index.clauses, tag, low, high)
    if entry < 0:
        entry = hash_index.insert(index.clauses, tag, low, high)
        keys[entry, CLAUSE_USES] = 0
        keys[entry, CLAUSE_ID] = _new_id(index, place)
        if tag >> FIELD_BITS == _EQ:
            keys[entry, CLAUSE_CLASS] = -1
            index.places[place, EQUALITIES] += 1
        else:
            enter_class(index, place, entry)
            index.places[place, OTHERS] += 1
    keys[entry, CLAUSE_USES] += 1
    if keys[entry, CLAUSE_CLASS] < 0:
        return entry, equality_addend(index, place, keys[entry, CLAUSE_ID])
    return entry, class_addend(index, place, keys[entry, CLAUSE_CLASS])


@helper
def _new_id(index: Index, place: int) -> int:
    """Return an id that no clause of an attribute has, and make sure that all of them can be given back."""
    row = index.places[place]
    if row[FREE_COUNT] > 0:
        row[FREE_COUNT] -= 1
        return index.ids.rows[row[FREE_IDS] + row[FREE_COUNT], 0]
    row[TOP_ID] += 1
    if row[FREE_IDS] < 0 or size_of(row[FREE_CLASS]) < row[TOP_ID]:
        block = class_of(row[TOP_ID])
        first = blocks.take(index.ids, block)
        if row[FREE_IDS] >= 0:
            blocks.give(index.ids, row[FREE_IDS], row[FREE_CLASS])  # it is empty
        row[FREE_IDS], row[FREE_CLASS] = first, block
        index.tops[LARGEST_IDS] = max(index.tops[LARGEST_IDS], size_of(block))
    return row[TOP_ID]


@helper
def release_clause(index: Index, place: int, entry: int) -> None:
    """Count one use less of a clause, and forget it with the last."""
    keys, row = index.clauses.keys, index.places[place]
    keys[entry, CLAUSE_USES] -= 1
    if keys[entry, CLAUSE_USES] > 0:
        return
    if keys[entry, CLAUSE_CLASS] < 0:
        row[EQUALITIES] -= 1
    else:
        leave_class(index, place, entry)
        row[OTHERS] -= 1
    index.ids.rows[row[FREE_IDS] + row[FREE_COUNT], 0] = keys[entry, CLAUSE_ID]
    row[FREE_COUNT] += 1
    hash_index.remove(index.clauses, entry)
    if row[EQUALITIES] + row[OTHERS] == 0:
        _forget_place(index, place)


@helper
def _forget_place(index: Index, place: int) -> None:
    """Give back what an attribute needs that no hashed clause speaks of any more; its row stays its own."""
    row = index.places[place]
    blocks.give(index.ids, row[FREE_IDS], row[FREE_CLASS])
    row[FREE_IDS], row[FREE_COUNT], row[FREE_CLASS], row[TOP_ID] = -1, 0, 0, 0
    forget_classes(index, place)
