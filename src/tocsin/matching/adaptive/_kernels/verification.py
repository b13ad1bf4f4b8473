"""Whether the event at hand satisfies a predicate."""

from __future__ import annotations

import numpy as np

from tocsin.matching.adaptive._kernels.predicates import is_listed, is_present
from tocsin.matching.adaptive.state import INSIDE, OP_BITS, SLOT_MASK, Code, ListRow, State, Top, Value
from tocsin.matching.encoding.codes import Op
from tocsin.structures.jit import helper


@helper
def is_satisfied(state: State, word: int) -> bool:
    """Tell whether the event at hand satisfies a predicate, as a cluster has it: its code, or -1 less it if it is no equality.

    Equalities that hold are marked. Of other predicates it is marked when it is first asked whether they hold.
    """
    marks, true = state.predicates.marks, np.uint16(2 * state.tops[Top.NUMBER])
    if word >= 0:
        return marks[word] == true
    code = -1 - word
    mark = marks[code]
    if mark | np.uint16(1) != true | np.uint16(1):
        mark = true if holds(state, code) else true | np.uint16(1)
        marks[code] = mark
    return mark == true


@helper
def holds(state: State, code: int) -> bool:
    """Tell whether the event at hand satisfies the predicate with a code; of residual ones this is not known."""
    keys, values = state.predicates.entries.keys, state.slots.values
    tag, low, high = keys[code, Code.TAG], keys[code, Code.LOW], keys[code, Code.HIGH]
    slot, op = tag & SLOT_MASK, tag >> OP_BITS
    if (INSIDE >> op) & 1:
        if low <= values[slot, Value.LOW] and values[slot, Value.HIGH] <= high:
            return True
        if values[slot, Value.NEXT] == 0:
            return False
    return _holds_any(state, op, slot, low, high)


@helper
def _holds_any(state: State, op: int, slot: int, low: int, high: int) -> bool:
    """Tell the same where a slot has several values or one between keys, and of all other operators."""
    if op == Op.RESIDUAL:
        return True
    if op == Op.PRESENT:
        return is_present(state, slot)
    if op == Op.MISSING:
        return not is_present(state, slot)
    if op == Op.IN:
        row = state.lists[low]
        for m in range(row[ListRow.FIRST], row[ListRow.FIRST] + row[ListRow.COUNT]):
            of, key = state.members.rows[m, 0], state.members.rows[m, 1]
            if of == slot:  # all members have one kind
                return _has_member(state, slot, low)
            if _has_value(state, of, Op.EQ, key, key):
                return True
        return False
    if not is_present(state, slot):
        return False
    if op == Op.NOT_IN:
        return not _has_member(state, slot, low)
    if op in (Op.NE, Op.NOT_BETWEEN):
        return not _has_value(state, slot, Op.BETWEEN, low, high)
    return _has_value(state, slot, op, low, high)


@helper
def _has_value(state: State, slot: int, op: int, low: int, high: int) -> bool:
    """Tell whether one of a slot's values is in an interval.

    A value between two keys is above the lower one, although the interval of `>` begins at the key after it.
    """
    values, row, found = state.slots.values, slot, False
    more = state.room.more
    least, greatest = values[row, Value.LOW], values[row, Value.HIGH]
    following = values[row, Value.NEXT] >> 1
    while True:
        above = greatest if op == Op.GT else least
        below = least if op == Op.LT else greatest
        found |= low <= above and below <= high
        if found or following == 0:
            return found
        row = following - 1
        least, greatest = more[row, Value.LOW], more[row, Value.HIGH]
        following = more[row, Value.NEXT] >> 1


@helper
def _has_member(state: State, slot: int, code: int) -> bool:
    """Tell whether one of a slot's values is in a list."""
    row, members = state.lists[code], state.members.rows
    values, more = state.slots.values, state.room.more
    key, is_between = values[slot, Value.LOW], values[slot, Value.NEXT] & 1
    following = values[slot, Value.NEXT] >> 1
    while True:
        if is_between == 0 and is_listed(members, row, slot, key):
            return True
        if following == 0:
            return False
        at = np.int64(following - 1)
        key, is_between = more[at, Value.LOW], more[at, Value.NEXT] & 1
        following = more[at, Value.NEXT] >> 1
