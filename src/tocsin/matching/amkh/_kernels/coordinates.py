"""The coordinates of a conjunction: of each attribute, one clause that all its predicates on it imply."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from tocsin.matching.amkh.state import (
    HAS_LOWER,
    HAS_UPPER,
    LOWER_STRICT,
    MOST_HASHED,
    MOST_MEMBERS,
    MOST_POINTS,
    RANGE,
    UPPER_STRICT,
    HashSetting,
    HashTotal,
    Index,
    PlaceColumn,
    State,
)
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.structures.jit import helper

KNOWN: Final = 1000.0  # events from which on they decide how frequent an attribute is
_MOST: Final = 256  # attributes of a conjunction that are considered
_MASK: Final = (1 << FIELD_BITS) - 1
_EVERYTHING: Final = 2


class DraftColumn(IntEnum):
    """Columns of a drafted coordinate."""

    FIELD = 0
    KIND = 1  # the larger, the fewer values it lets pass
    TAG = 2
    LOW = 3
    HIGH = 4
    LIST = 5  # the list whose members are its values, or -1
    TAKEN = 6


_LOOSE: Final = 1
_RANGED: Final = 2
_LISTED: Final = 3
_EQUAL: Final = 4


@helper
def frequency(state: State, field: int) -> float:
    """Return the share of events with a field since it is in use; while these are few, of conjunctions."""
    events = state.totals[HashTotal.EVENTS] - state.fields.since[field]
    if events >= KNOWN * state.totals[HashTotal.SHARE]:
        return state.fields.seen[field] / events
    return min(state.fields.uses[field] / max(state.store.counters[StoreCounter.LIVE], np.int64(1)), 1.0)


@helper
def draft(state: State, expressions: Expressions, i: int) -> int:
    """Write the coordinates that a conjunction may have, one for each attribute; return how many, -1 if it is never true.

    Several bounds on an attribute become one range, and a range of one value an equality.
    """
    count = np.int64(0)
    rows = state.scratch.draft
    for q in range(expressions.offsets[i], expressions.offsets[i + 1]):
        op = expressions.tags[q] >> FIELD_BITS
        if op in (Op.RESIDUAL, Op.MISSING):
            continue
        kind = _kind_of(expressions, q)
        field, low, high, list_ = _constants(expressions, q, kind)
        at = np.int64(0)
        while at < count and rows[at, DraftColumn.FIELD] != field:
            at += 1
        if at == count:
            if count == min(np.int64(_MOST), rows.shape[0]):
                continue
            rows[at, DraftColumn.FIELD], rows[at, DraftColumn.KIND], rows[at, DraftColumn.TAKEN] = field, 0, 0
            count += 1
        if kind == _RANGED and rows[at, DraftColumn.KIND] == _RANGED:
            _narrow(state, at, op, low, high)
        elif (
            kind == _EQUAL
            and rows[at, DraftColumn.KIND] == _EQUAL
            and rows[at, DraftColumn.LOW] != low
            and field % FIELDS != Field.TEXT
        ):
            return np.int64(-1)  # two values at once
        elif kind > rows[at, DraftColumn.KIND]:
            rows[at, DraftColumn.KIND], rows[at, DraftColumn.LIST] = kind, list_
            rows[at, DraftColumn.LOW], rows[at, DraftColumn.HIGH] = low, high
            if kind == _RANGED:
                rows[at, DraftColumn.TAG] = 0
                _narrow(state, at, op, low, high)
            else:
                rows[at, DraftColumn.TAG] = op if kind == _LOOSE else np.int64(Op.EQ)
    for at in range(count):
        if rows[at, DraftColumn.KIND] == _RANGED and not _settle_range(state, at):
            return np.int64(-1)
    return count


@helper
def _kind_of(expressions: Expressions, q: int) -> int:
    """Return the kind of a predicate's coordinate."""
    op, field = expressions.tags[q] >> FIELD_BITS, expressions.tags[q] & _MASK
    if op in (Op.EQ, Op.PRESENT):
        return np.int64(_EQUAL)
    if op == Op.IN:
        first, last = expressions.starts[expressions.which[q]], expressions.starts[expressions.which[q] + 1]
        field = expressions.fields[first]
        for m in range(first, last):
            if expressions.fields[m] != field:
                return np.int64(_EQUAL)
        if last - first <= MOST_MEMBERS:
            return np.int64(_LISTED)
        return np.int64(_LOOSE if field % FIELDS in (Field.STRING, Field.BIG) else _RANGED)
    if Op.LT <= op <= Op.BETWEEN:
        return np.int64(_RANGED)
    return np.int64(_LOOSE)


@helper
def _constants(expressions: Expressions, q: int, kind: int) -> tuple[int, int, int, int]:
    """Return the field of a predicate's coordinate, its constants, and the list of its values or -1."""
    op, field = expressions.tags[q] >> FIELD_BITS, expressions.tags[q] & _MASK
    if op != Op.IN:
        return field, expressions.lows[q], expressions.highs[q], np.int64(-1)
    if kind == _EQUAL:  # a list of several kinds: that there is a value
        return field, np.int64(0), np.int64(0), np.int64(-1)
    list_ = expressions.which[q]
    field = expressions.fields[expressions.starts[list_]]
    if kind == _RANGED:
        low, high = _hull(expressions, list_)
        return field, low, high, np.int64(-1)
    return field, expressions.lows[q], expressions.highs[q], list_ if kind == _LISTED else np.int64(-1)


@helper
def _hull(expressions: Expressions, list_: int) -> tuple[int, int]:
    low = high = expressions.keys[expressions.starts[list_]]
    for m in range(expressions.starts[list_], expressions.starts[list_ + 1]):
        low, high = min(low, expressions.keys[m]), max(high, expressions.keys[m])
    return low, high


@helper
def _narrow(state: State, at: int, op: int, low: int, high: int) -> None:
    """Narrow a drafted range to one more predicate."""
    row = state.scratch.draft[at]
    flags = row[DraftColumn.TAG]
    if op in (Op.GT, Op.GE, Op.BETWEEN, Op.IN):
        strict = op == Op.GT
        if flags & HAS_LOWER == 0 or low > row[DraftColumn.LOW] or (low == row[DraftColumn.LOW] and strict):
            row[DraftColumn.LOW] = low
            flags = (flags & ~LOWER_STRICT) | HAS_LOWER | (LOWER_STRICT if strict else 0)
    if op in (Op.LT, Op.LE, Op.BETWEEN, Op.IN):
        strict = op == Op.LT
        if (
            flags & HAS_UPPER == 0
            or high < row[DraftColumn.HIGH]
            or (high == row[DraftColumn.HIGH] and strict)
        ):
            row[DraftColumn.HIGH] = high
            flags = (flags & ~UPPER_STRICT) | HAS_UPPER | (UPPER_STRICT if strict else 0)
    row[DraftColumn.TAG] = flags


@helper
def _settle_range(state: State, at: int) -> bool:
    """Turn a drafted range into its clause; return False if no value is in it."""
    row = state.scratch.draft[at]
    flags, both = row[DraftColumn.TAG], HAS_LOWER | HAS_UPPER
    row[DraftColumn.TAG] = RANGE + flags
    if flags & both != both:
        if flags & HAS_LOWER:
            row[DraftColumn.HIGH] = 0
        else:
            row[DraftColumn.LOW] = 0
        return True
    if row[DraftColumn.LOW] > row[DraftColumn.HIGH] or (
        row[DraftColumn.LOW] == row[DraftColumn.HIGH] and flags != both
    ):
        return False
    if row[DraftColumn.LOW] == row[DraftColumn.HIGH] and row[DraftColumn.FIELD] % FIELDS != Field.STRING:
        row[DraftColumn.TAG], row[DraftColumn.KIND], row[DraftColumn.LIST] = np.int64(Op.EQ), _EQUAL, -1
    return True


@helper
def choose(state: State, index: Index, expressions: Expressions, count: int) -> tuple[int, int]:
    """Choose which drafted coordinates are hashed; return how many these are, and the points that they make.

    They are those that fewest events have, as many as the scheme allows, in the order of their attributes.
    """
    rows, chosen = state.scratch.draft, state.scratch.chosen
    width, points = min(index.settings[HashSetting.WIDTH], np.int64(MOST_HASHED)), np.int64(1)
    taken = np.int64(0)
    while taken < width:
        best, least = np.int64(-1), np.inf
        for at in range(count):
            if rows[at, DraftColumn.TAKEN] == 0 and _is_hashed(
                index, expressions, rows[at, DraftColumn.FIELD], at, state, points
            ):
                cost = _share(state, index, expressions, at)
                if cost < least:
                    best, least = np.int64(at), cost
        if best < 0:
            break
        rows[best, DraftColumn.TAKEN] = 1
        points *= _values(expressions, rows[best, DraftColumn.LIST])
        at = taken
        while at > 0 and rows[chosen[at - 1], DraftColumn.FIELD] > rows[best, DraftColumn.FIELD]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = best
        taken += 1
    return taken, points


@helper
def _values(expressions: Expressions, list_: int) -> int:
    return expressions.starts[list_ + 1] - expressions.starts[list_] if list_ >= 0 else np.int64(1)


@helper
def _is_hashed(
    index: Index, expressions: Expressions, field: int, at: int, state: State, points: int
) -> bool:
    row = state.scratch.draft[at]
    if index.hashing[field] == _EVERYTHING:
        return points * _values(expressions, row[DraftColumn.LIST]) <= MOST_POINTS
    return (
        index.hashing[field] > 0
        and row[DraftColumn.KIND] >= _LISTED
        and points * _values(expressions, row[DraftColumn.LIST]) <= MOST_POINTS
    )


@helper
def _share(state: State, index: Index, expressions: Expressions, at: int) -> float:
    """Return about which share of the events leads to a drafted coordinate."""
    row = state.scratch.draft[at]
    share = frequency(state, row[DraftColumn.FIELD])
    if row[DraftColumn.KIND] >= _LISTED:
        place = np.int64(index.place[row[DraftColumn.FIELD]])
        known = index.places[place, PlaceColumn.EQUALITIES] if place >= 0 else np.int64(0)
        any_ = row[DraftColumn.FIELD] % FIELDS == Field.ANY
        return share if any_ else share * _values(expressions, row[DraftColumn.LIST]) / (8.0 + known)
    return share * (0.6 if row[DraftColumn.KIND] == _RANGED else 1.0)
