"""Placing conjunctions as points of the hash table, and removing them (AMKH, 2)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels import table
from tocsin.matching.amkh._kernels.clauses import attribute_of, release_clause, use_clause
from tocsin.matching.amkh._kernels.coordinates import Draft, choose, draft
from tocsin.matching.amkh.state import (
    HashedAttribute,
    Index,
    IndexTop,
    Point,
    Schema,
    Setting,
    State,
    StoredColumn,
)
from tocsin.matching.conjunction_store.state import HIGH_ROW, Expressions, StoreColumn
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Keys, Op
from tocsin.structures import blocks, free_lists
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel, wrapping_helper

_NEXT, _FREE, _TOP = int(Point.NEXT), int(IndexTop.FREE_POINT), int(IndexTop.TOP_POINT)


@kernel
def place(state: State, index: Index, expressions: Expressions, start: int) -> int:
    """Hash conjunctions from `start` on; return how many were done: fewer than all if there was no room.

    Of the one that there was no room for, some points may be in the table: RESUME counts them, and what was drafted
    for the others must be left as it is.
    """
    tops = index.tops
    for i in range(start, expressions.numbers.shape[0]):
        if tops[IndexTop.RESUME] == 0:
            count = draft(state, expressions, i)
            if count < 0:
                continue
            tops[IndexTop.DRAFTED], tops[IndexTop.POINTS] = choose(state, index, expressions, count)
            _foresee_classes(state, index, tops[IndexTop.DRAFTED])
        width, points = tops[IndexTop.DRAFTED], tops[IndexTop.POINTS]
        signature = _signature(state, expressions.numbers[i])
        for number in range(tops[IndexTop.RESUME], points):
            if not _has_room(index, width):
                tops[IndexTop.RESUME] = number
                return i
            _add_point(state, index, expressions, i, (width, number), signature)
        tops[IndexTop.RESUME] = 0
    return expressions.numbers.shape[0]


@kernel
def prepare(index: Index, field: int, weight: int, cuts: int) -> None:
    """Set the constants that divide a field's classes, and its weight unless that is 0."""
    row = index.attributes[attribute_of(index, field)]
    if cuts >= 0:
        row[HashedAttribute.CUTS] = cuts
    if weight != 0:
        row[HashedAttribute.WEIGHT] = row[HashedAttribute.CLASS_WEIGHT] = weight


@helper
def _foresee_classes(state: State, index: Index, width: int) -> None:
    """Where every id is a class, note how many classes a clause other than an equality makes.

    The first one on an attribute makes a class for each id that its equalities were given.
    """
    if index.settings[Setting.CLASS_COUNT] > 0:
        return
    for k in range(width):
        row = state.scratch.draft[state.scratch.chosen[k]]
        place_ = np.int64(index.row_of_field[row[Draft.FIELD]])
        if row[Draft.TAG] != Op.EQ and place_ >= 0:
            index.tops[IndexTop.LARGEST_CLASSES] = max(
                index.tops[IndexTop.LARGEST_CLASSES], index.attributes[place_, HashedAttribute.TOP_ID]
            )


@helper
def _has_room(index: Index, width: int) -> bool:
    """Tell whether there is room for one more point, whatever has to grow for it."""
    tops = index.tops
    classes = width * (3 * tops[IndexTop.LARGEST_CLASSES] + 4 * index.settings[Setting.CLASS_COUNT] + 8)
    return (
        tops[IndexTop.TOP_ATTRIBUTE] + width <= index.attributes.shape[0]
        and tops[IndexTop.TOP_POINT] < index.points.shape[0]
        and index.clauses.counters[1] + width < index.clauses.chain.shape[0]
        and index.ids.top[0] + width * (3 * tops[IndexTop.LARGEST_IDS] + 4) <= index.ids.rows.shape[0]
        and index.bounds.top[0] + arrays.SHAPES * classes <= index.bounds.rows.shape[0]
        and index.chains.top[0] + classes <= index.chains.rows.shape[0]
        and index.schemas.counters[1] + 1 < index.schemas.chain.shape[0]
        and index.schema_attributes.top[0] + 2 * width + 2 <= index.schema_attributes.rows.shape[0]
        and index.schema_lists.top[0] + 3 * tops[IndexTop.LARGEST_LIST] + 4
        <= index.schema_lists.rows.shape[0]
        and index.buckets.counters[1] + 1 < index.buckets.chain.shape[0]
        and index.members.top[0] + 3 * tops[IndexTop.LARGEST_BUCKET] + 4 <= index.members.rows.shape[0]
        and index.coordinates.top[0] + 2 * width + 2 <= index.coordinates.rows.shape[0]
    )


@helper
def _signature(state: State, number: int) -> int:
    """Return a bit for each attribute that an event must have to satisfy a conjunction."""
    rows, at = state.records.rows, np.int64(state.store.rows[number, StoreColumn.RECORD])
    signature = np.uint64(0)
    for record in range(at + 1, at + 1 + rows[at, 1]):
        op = rows[record, 1] >> FIELD_BITS
        if op not in (Op.RESIDUAL, Op.MISSING) and op != HIGH_ROW:
            signature |= table.bit_of((rows[record, 1] & FIELD_MASK) // FIELDS)
    return np.int64(signature)


@wrapping_helper
def _add_point(
    state: State, index: Index, expressions: Expressions, i: int, which: tuple[int, int], signature: int
) -> None:
    """Put one of a conjunction's points into the table: the one with that number, of all that its lists make."""
    width, number = which
    draft_, chosen, clauses = state.scratch.draft, state.scratch.chosen, state.scratch.clauses
    places = state.scratch.digits
    coordinate = np.uint64(0)
    for k in range(width):
        row = draft_[chosen[k]]
        low, high = row[Draft.LOW], row[Draft.HIGH]
        if row[Draft.LIST] >= 0:
            first, last = (expressions.starts[row[Draft.LIST]], expressions.starts[row[Draft.LIST] + 1])
            low = high = expressions.keys[first + number % (last - first)]
            number //= last - first
        places[k] = attribute_of(index, row[Draft.FIELD])
        clauses[k], addend = use_clause(
            index, places[k], (row[Draft.TAG] << FIELD_BITS) | row[Draft.FIELD], low, high
        )
        coordinate += addend
    _sort(places, clauses, width)
    schema = table.use_schema(state, index, places, width)
    coordinate += table.schema_addend(index, schema)
    point = free_lists.take(index.points[:, _NEXT], index.tops, _FREE, _TOP)
    index.tops[IndexTop.LIVE_POINTS] += 1
    conjunction = state.store.rows[expressions.numbers[i]]
    word = (np.int64(conjunction[StoreColumn.RECORD]) << 32) | point
    bucket, position = table.put_member(index, schema, table.bucket_key(index, coordinate), signature, word)
    row_ = index.points[point]
    row_[Point.BUCKET], row_[Point.POSITION], row_[Point.SCHEMA] = (bucket, position, schema)
    row_[Point.NEXT], row_[Point.COORDINATES] = conjunction[StoredColumn.POINT], -1
    conjunction[StoredColumn.POINT] = point
    if width == 1:
        row_[Point.COORDINATES] = clauses[0]
    elif width > 1:
        at = blocks.take(index.coordinates, class_of(width))
        row_[Point.COORDINATES] = at
        for k in range(width):
            index.coordinates.rows[at + k, 0] = clauses[k]


@helper
def _sort(places: Keys, clauses: Keys, width: int) -> None:
    """Sort a point's attributes, and its clauses with them."""
    for i in range(1, width):
        place_, clause, k = places[i], clauses[i], i
        while k > 0 and places[k - 1] > place_:
            places[k], clauses[k] = places[k - 1], clauses[k - 1]
            k -= 1
        places[k], clauses[k] = place_, clause


@kernel
def withdraw(state: State, index: Index, numbers: Keys) -> None:
    """Remove all points of conjunctions from the table."""
    for i in range(numbers.shape[0]):
        point = np.int64(state.store.rows[numbers[i], StoredColumn.POINT])
        while point >= 0:
            _drop_point(index, point)
            following = np.int64(index.points[point, Point.NEXT])
            free_lists.give(index.points[:, _NEXT], index.tops, _FREE, point)
            index.tops[IndexTop.LIVE_POINTS] -= 1
            point = following
        state.store.rows[numbers[i], StoredColumn.POINT] = -1


@helper
def _drop_point(index: Index, point: int) -> None:
    """Remove a point from its bucket, and release its clauses, its coordinates and its schema."""
    table.drop_member(index, point)
    row = index.points[point]
    schema = np.int64(row[Point.SCHEMA])
    width, first = (index.schemas.keys[schema, Schema.SIZE], index.schemas.keys[schema, Schema.PLACES])
    at = np.int64(row[Point.COORDINATES])
    for k in range(width):
        clause = at if width == 1 else index.coordinates.rows[at + k, 0]
        release_clause(index, index.schema_attributes.rows[first + k, 0], clause)
    if width > 1:
        blocks.give(index.coordinates, at, class_of(width))
    table.release_schema(index, schema)
