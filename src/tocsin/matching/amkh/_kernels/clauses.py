"""The registry of hashed clauses: each has an id of its own on its attribute (AMKH, 2)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.amkh._kernels.classes import enter_class, forget_classes, leave_class
from tocsin.matching.amkh.state import HASHED_COLUMNS, Clause, HashedAttribute, Index, IndexTop, Setting
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.hashing import hashed
from tocsin.structures.jit import helper, wrapping_helper


@helper
def attribute_of(index: Index, field: int) -> int:
    """Return the row of a hashed attribute, making one if it has none; there must be room."""
    place = np.int64(index.row_of_field[field])
    if place >= 0:
        return place
    place = index.tops[IndexTop.TOP_ATTRIBUTE]
    index.tops[IndexTop.TOP_ATTRIBUTE] += 1
    index.row_of_field[field] = place
    row = index.attributes[place]
    for column in range(HASHED_COLUMNS):
        row[column] = 0
    row[HashedAttribute.FIELD] = field
    row[HashedAttribute.FREE_IDS] = row[HashedAttribute.BOUNDS] = row[HashedAttribute.LIST] = row[
        HashedAttribute.MET
    ] = -1
    row[HashedAttribute.CUTS] = field % FIELDS
    buckets = index.settings[Setting.BUCKET_COUNT]
    if buckets > 1 and index.settings[Setting.SPLIT] == 0:
        # No weight is 0 modulo M
        row[HashedAttribute.WEIGHT] = np.int64(hashed(2 * field) % np.uint64(buckets - 1)) + 1
        row[HashedAttribute.CLASS_WEIGHT] = row[HashedAttribute.WEIGHT]
    else:
        row[HashedAttribute.WEIGHT] = np.int64(hashed(2 * field) | np.uint64(1))
        row[HashedAttribute.CLASS_WEIGHT] = np.int64(hashed(2 * field + 1) | np.uint64(1))
        if index.settings[Setting.SPLIT] == 0:
            row[HashedAttribute.CLASS_WEIGHT] = row[HashedAttribute.WEIGHT]
    return place


@wrapping_helper
def equality_addend(index: Index, place: int, id_: int) -> int:
    """Return the addend of an equality to a coordinate."""
    return np.uint64(index.attributes[place, HashedAttribute.WEIGHT]) * np.uint64(id_)


@wrapping_helper
def class_addend(index: Index, place: int, class_: int) -> int:
    """Return the addend of a class's clauses to a coordinate; the paper's class 0 adds nothing."""
    settings = index.settings
    apart = settings[Setting.SPLIT] != 0 and settings[Setting.CLASS_COUNT] > 0
    return np.uint64(index.attributes[place, HashedAttribute.CLASS_WEIGHT]) * np.uint64(
        class_ + 1 if apart else class_
    )


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
            index.attributes[place, HashedAttribute.EQUALITIES] += 1
        else:
            enter_class(index, place, entry)
            index.attributes[place, HashedAttribute.OTHERS] += 1
    keys[entry, Clause.USES] += 1
    if keys[entry, Clause.CLASS] < 0:
        return entry, equality_addend(index, place, keys[entry, Clause.ID])
    return entry, class_addend(index, place, keys[entry, Clause.CLASS])


@helper
def _new_id(index: Index, place: int) -> int:
    """Return an id that no clause of an attribute has, and make room to give all of them back."""
    row = index.attributes[place]
    if row[HashedAttribute.FREE_COUNT] > 0:
        row[HashedAttribute.FREE_COUNT] -= 1
        return index.ids.rows[row[HashedAttribute.FREE_IDS] + row[HashedAttribute.FREE_COUNT], 0]
    row[HashedAttribute.TOP_ID] += 1
    if (
        row[HashedAttribute.FREE_IDS] < 0
        or size_of(row[HashedAttribute.FREE_CLASS]) < row[HashedAttribute.TOP_ID]
    ):
        block = class_of(row[HashedAttribute.TOP_ID])
        first = blocks.take(index.ids, block)
        if row[HashedAttribute.FREE_IDS] >= 0:
            blocks.give(
                index.ids, row[HashedAttribute.FREE_IDS], row[HashedAttribute.FREE_CLASS]
            )  # it is empty
        row[HashedAttribute.FREE_IDS], row[HashedAttribute.FREE_CLASS] = first, block
        index.tops[IndexTop.LARGEST_IDS] = max(index.tops[IndexTop.LARGEST_IDS], size_of(block))
    return row[HashedAttribute.TOP_ID]


@helper
def release_clause(index: Index, place: int, entry: int) -> None:
    """Count one use less of a clause, and forget it with the last."""
    keys, row = index.clauses.keys, index.attributes[place]
    keys[entry, Clause.USES] -= 1
    if keys[entry, Clause.USES] > 0:
        return
    if keys[entry, Clause.CLASS] < 0:
        row[HashedAttribute.EQUALITIES] -= 1
    else:
        leave_class(index, place, entry)
        row[HashedAttribute.OTHERS] -= 1
    index.ids.rows[row[HashedAttribute.FREE_IDS] + row[HashedAttribute.FREE_COUNT], 0] = keys[
        entry, Clause.ID
    ]
    row[HashedAttribute.FREE_COUNT] += 1
    hash_index.remove(index.clauses, entry)
    if row[HashedAttribute.EQUALITIES] + row[HashedAttribute.OTHERS] == 0:
        _forget_place(index, place)


@helper
def _forget_place(index: Index, place: int) -> None:
    """Free the blocks of an attribute without hashed clauses; it keeps its row."""
    row = index.attributes[place]
    blocks.give(index.ids, row[HashedAttribute.FREE_IDS], row[HashedAttribute.FREE_CLASS])
    (
        row[HashedAttribute.FREE_IDS],
        row[HashedAttribute.FREE_COUNT],
        row[HashedAttribute.FREE_CLASS],
        row[HashedAttribute.TOP_ID],
    ) = -1, 0, 0, 0
    forget_classes(index, place)
