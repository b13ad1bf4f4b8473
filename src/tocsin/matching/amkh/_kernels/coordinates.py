"""The coordinates of a conjunction: of each attribute, one clause that all its predicates on it imply."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh.state import HashedAttribute, Index, Setting, State, Total
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.structures.jit import helper

KNOWN: Final = 1000.0  # events from which on they decide how frequent an attribute is
_MOST: Final = 256  # attributes of a conjunction that are considered
_EVERYTHING: Final = 2


class Draft(IntEnum):
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
    events = state.totals[Total.EVENTS] - state.fields.since[field]
    if events >= KNOWN * state.totals[Total.SHARE]:
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
        while at < count and rows[at, Draft.FIELD] != field:
            at += 1
        if at == count:
            if count == min(np.int64(_MOST), rows.shape[0]):
                continue
            rows[at, Draft.FIELD], rows[at, Draft.KIND], rows[at, Draft.TAKEN] = field, 0, 0
            count += 1
        if kind == _RANGED and rows[at, Draft.KIND] == _RANGED:
            _narrow(state, at, op, low, high)
        elif (
            kind == _EQUAL
            and rows[at, Draft.KIND] == _EQUAL
            and rows[at, Draft.LOW] != low
            and field % FIELDS != Field.TEXT
        ):
            return np.int64(-1)  # two values at once
        elif kind > rows[at, Draft.KIND]:
            rows[at, Draft.KIND], rows[at, Draft.LIST] = kind, list_
            rows[at, Draft.LOW], rows[at, Draft.HIGH] = low, high
            if kind == _RANGED:
                rows[at, Draft.TAG] = 0
                _narrow(state, at, op, low, high)
            else:
                rows[at, Draft.TAG] = op if kind == _LOOSE else np.int64(Op.EQ)
    for at in range(count):
        if rows[at, Draft.KIND] == _RANGED and not _settle_range(state, at):
            return np.int64(-1)
    return count


@helper
def _kind_of(expressions: Expressions, q: int) -> int:
    """Return the kind of a predicate's coordinate."""
    op, field = expressions.tags[q] >> FIELD_BITS, expressions.tags[q] & FIELD_MASK
    if op in (Op.EQ, Op.PRESENT):
        return np.int64(_EQUAL)
    if op == Op.IN:
        first, last = expressions.starts[expressions.which[q]], expressions.starts[expressions.which[q] + 1]
        field = expressions.fields[first]
        for m in range(first, last):
            if expressions.fields[m] != field:
                return np.int64(_EQUAL)
        if last - first <= arrays.MOST_MEMBERS:
            return np.int64(_LISTED)
        return np.int64(_LOOSE if field % FIELDS in (Field.STRING, Field.BIG) else _RANGED)
    if Op.LT <= op <= Op.BETWEEN:
        return np.int64(_RANGED)
    return np.int64(_LOOSE)


@helper
def _constants(expressions: Expressions, q: int, kind: int) -> tuple[int, int, int, int]:
    """Return the field of a predicate's coordinate, its constants, and the list of its values or -1."""
    op, field = expressions.tags[q] >> FIELD_BITS, expressions.tags[q] & FIELD_MASK
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
    flags = row[Draft.TAG]
    if op in (Op.GT, Op.GE, Op.BETWEEN, Op.IN):
        strict = op == Op.GT
        if flags & arrays.HAS_LOWER == 0 or low > row[Draft.LOW] or (low == row[Draft.LOW] and strict):
            row[Draft.LOW] = low
            flags = (flags & ~arrays.LOWER_STRICT) | arrays.HAS_LOWER | (arrays.LOWER_STRICT if strict else 0)
    if op in (Op.LT, Op.LE, Op.BETWEEN, Op.IN):
        strict = op == Op.LT
        if flags & arrays.HAS_UPPER == 0 or high < row[Draft.HIGH] or (high == row[Draft.HIGH] and strict):
            row[Draft.HIGH] = high
            flags = (flags & ~arrays.UPPER_STRICT) | arrays.HAS_UPPER | (arrays.UPPER_STRICT if strict else 0)
    row[Draft.TAG] = flags


@helper
def _settle_range(state: State, at: int) -> bool:
    """Turn a drafted range into its clause; return False if no value is in it."""
    row = state.scratch.draft[at]
    flags, both = row[Draft.TAG], arrays.HAS_LOWER | arrays.HAS_UPPER
    row[Draft.TAG] = arrays.RANGE + flags
    if flags & both != both:
        if flags & arrays.HAS_LOWER:
            row[Draft.HIGH] = 0
        else:
            row[Draft.LOW] = 0
        return True
    if row[Draft.LOW] > row[Draft.HIGH] or (row[Draft.LOW] == row[Draft.HIGH] and flags != both):
        return False
    if row[Draft.LOW] == row[Draft.HIGH] and row[Draft.FIELD] % FIELDS != Field.STRING:
        row[Draft.TAG], row[Draft.KIND], row[Draft.LIST] = np.int64(Op.EQ), _EQUAL, -1
    return True


@helper
def choose(state: State, index: Index, expressions: Expressions, count: int) -> tuple[int, int]:
    """Choose which drafted coordinates are hashed; return how many these are, and the points that they make.

    They are those that fewest events have, as many as the scheme allows, in the order of their attributes.
    """
    rows, chosen = state.scratch.draft, state.scratch.chosen
    width, points = min(index.settings[Setting.WIDTH], np.int64(arrays.MOST_HASHED)), np.int64(1)
    taken = np.int64(0)
    while taken < width:
        best, least = np.int64(-1), np.inf
        for at in range(count):
            if rows[at, Draft.TAKEN] == 0 and _is_hashed(
                index, expressions, rows[at, Draft.FIELD], at, state, points
            ):
                cost = _share(state, index, expressions, at)
                if cost < least:
                    best, least = np.int64(at), cost
        if best < 0:
            break
        rows[best, Draft.TAKEN] = 1
        points *= _values(expressions, rows[best, Draft.LIST])
        at = taken
        while at > 0 and rows[chosen[at - 1], Draft.FIELD] > rows[best, Draft.FIELD]:
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
    """Tell whether the clause at `at` of the draft may be hashed without making too many points."""
    row = state.scratch.draft[at]
    if index.hashing[field] == _EVERYTHING:
        return points * _values(expressions, row[Draft.LIST]) <= arrays.MOST_POINTS
    return (
        index.hashing[field] > 0
        and row[Draft.KIND] >= _LISTED
        and points * _values(expressions, row[Draft.LIST]) <= arrays.MOST_POINTS
    )


@helper
def _share(state: State, index: Index, expressions: Expressions, at: int) -> float:
    """Return about which share of the events leads to a drafted coordinate."""
    row = state.scratch.draft[at]
    share = frequency(state, row[Draft.FIELD])
    if row[Draft.KIND] >= _LISTED:
        place = np.int64(index.row_of_field[row[Draft.FIELD]])
        known = index.attributes[place, HashedAttribute.EQUALITIES] if place >= 0 else np.int64(0)
        any_ = row[Draft.FIELD] % FIELDS == Field.ANY
        return share if any_ else share * _values(expressions, row[Draft.LIST]) / (8.0 + known)
    return share * (0.6 if row[Draft.KIND] == _RANGED else 1.0)
