"""Clusters that many events reach are evaluated for a chunk of events at once, a bit for each event.

A conjunction then costs a few operations on words of 64 events for each of its predicates, and a predicate is evaluated once for
the chunk, however many conjunctions have it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    checks_in,
    code_in,
    length_of,
    place_of_check,
    start_of,
    words_in,
)
from tocsin.matching.adaptive._kernels.expectations import ALONE, BITS, TOGETHER
from tocsin.matching.adaptive._kernels.predicates import float_of, is_listed
from tocsin.matching.adaptive._kernels.sections import share_checked
from tocsin.matching.adaptive.state import (
    BIT_ROWS,
    CHUNK,
    CHUNK_WORDS,
    HOT,
    HOT_BIT,
    INSIDE,
    MOST_COLUMNS,
    OP_BITS,
    RESIDUAL_BIT,
    SLOT_MASK,
    Access,
    Code,
    DenseCount,
    Slot,
    State,
    Top,
    Total,
    Value,
)
from tocsin.matching.encoding.codes import FIELDS, Field, Op
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import first_bit, helper, kernel

_WORD: Final = 64
_FIRST: Final = 64  # conjunctions of a cluster that are looked at
_ONE: Final = np.uint64(1)


@kernel
def heat(state: State, least: int, often: float, least_hits: float) -> int:
    """Mark the clusters of so many words that were noted, if so often reached, as hot; return whether room is wanted."""
    wanted = np.int64(0)
    mend(state)
    _cool(state, often)
    if 2 * state.dense.used[DenseCount.HOT] > HOT:
        _rebuild(state)
    for i in range(state.tops[Top.SUSPECTS]):
        entry = np.int64(state.review.suspects[i])
        row = state.access.keys[entry]
        place = row[Access.PLACE]
        if place & HOT_BIT or words_in(place) < least or 2 * state.dense.used[DenseCount.HOT] > HOT:
            continue
        hits = float_of(row[Access.WORK])
        if hits < often * state.totals[Total.EVENTS] or hits < least_hits * state.totals[Total.WEIGHT]:
            continue
        alone = hits * CHUNK * ALONE * share_checked(state, entry)
        if often > 0 and alone < _cost_of(state, entry) * state.totals[Total.EVENTS]:
            continue
        missing = _give_columns(state, entry)
        if missing == 0:
            row[Access.PLACE] |= HOT_BIT
            _find(state, entry)
        wanted += max(missing, np.int64(0))
    return wanted


@helper
def _cost_of(state: State, entry: int) -> float:
    """Return the nanoseconds that a conjunction of a cluster takes for a chunk, by the first ones: bits that others need are shared."""
    place = state.access.keys[entry, Access.PLACE]
    at, end, count, bits = start_of(place), start_of(place) + words_in(place), np.int64(0), 0.0
    while at < end and count < _FIRST:
        head = np.int64(state.words.rows[at + HEAD])
        for k in range(checks_in(head)):
            code = code_in(np.int64(state.words.rows[place_of_check(head, at, np.int64(k))]))
            bits += 1.0 / max(np.float64(state.predicates.uses[code]), 1.0)
        at += length_of(head)
        count += 1
    return TOGETHER + BITS * bits / max(count, 1)


@helper
def _cool(state: State, often: float) -> None:
    """Take clusters that are reached far less often for hot no longer."""
    for at in range(HOT):
        entry = np.int64(state.dense.hot[at]) - 1
        if entry >= 0:
            row = state.access.keys[entry]
            if float_of(row[Access.WORK]) < 0.25 * often * state.totals[Total.EVENTS]:
                row[Access.PLACE] &= ~np.int64(HOT_BIT)


@helper
def _rebuild(state: State) -> None:
    """Forget which clusters are hot: those that are will be noted again."""
    hot = state.dense.hot
    for i in range(HOT):
        entry = np.int64(hot[i]) - 1
        hot[i] = 0
        if entry >= 0:
            state.access.keys[entry, Access.PLACE] &= ~np.int64(HOT_BIT)
    state.dense.used[DenseCount.HOT] = 0


@helper
def _find(state: State, entry: int) -> int:
    """Return the place of a hot access path in the table, which gets one if it has none."""
    hot, used = state.dense.hot, state.dense.used
    at = (entry * np.int64(0x9E3779B1) >> 16) & (HOT - 1)
    while hot[at] > 0 and hot[at] != entry + 1:
        at = (at + 1) & (HOT - 1)
    if hot[at] == 0:
        hot[at] = entry + 1
        used[DenseCount.HOT] += 1
        for w in range(CHUNK_WORDS):
            state.dense.hits[at, w] = 0
    return at


@helper
def _give_columns(state: State, entry: int) -> int:
    """Give the slots that a cluster asks about columns; return how many there is no room for, -1 if one may have none."""
    place = state.access.keys[entry, Access.PLACE]
    at, end, missing = start_of(place), start_of(place) + words_in(place), np.int64(0)
    while at < end:
        head = np.int64(state.words.rows[at + HEAD])
        for k in range(checks_in(head)):
            code = code_in(np.int64(state.words.rows[place_of_check(head, at, np.int64(k))]))
            given = _give_column(state, code)
            if given < 0:
                return np.int64(-1)
            missing += given
        at += length_of(head)
    return missing


@helper
def _give_column(state: State, code: int) -> int:
    """Give the slot of a predicate a column; return 1 if there is no room for it, -1 if it may have none."""
    tag = state.predicates.entries.keys[code, Code.TAG]
    slot, op, dense = tag & SLOT_MASK, tag >> OP_BITS, state.dense
    row = state.slots.rows[slot]
    kind = row[Slot.FIELD] % FIELDS
    if row[Slot.COLUMN] < 0 or kind == Field.TEXT or (op == Op.IN and kind == Field.ANY):
        return np.int64(-1)
    if row[Slot.COLUMN] == 0:
        column = dense.used[DenseCount.COLUMNS]
        if column >= MOST_COLUMNS:
            return np.int64(-1)
        if column >= dense.columns.shape[0]:
            return np.int64(1)
        dense.slots[column] = slot
        row[Slot.COLUMN] = column + 1
        dense.used[DenseCount.COLUMNS] += 1
    return np.int64(0)


@helper
def begin_chunk(state: State, first: int, events: int) -> None:
    """Begin a chunk of events; hot clusters are put off to its end if that is worth it."""
    dense, used = state.dense, state.dense.used
    used[DenseCount.IS_ON] = np.int64(used[DenseCount.HOT] > 0 and events >= used[DenseCount.LEAST])
    used[DenseCount.FIRST] = first
    if used[DenseCount.IS_ON] == 0:
        return
    for at in range(HOT):
        if dense.hot[at] > 0:
            for w in range(CHUNK_WORDS):
                dense.hits[at, w] = 0
    for column in range(used[DenseCount.COLUMNS]):
        for w in range(CHUNK_WORDS):
            dense.present[column, w] = 0
    used[DenseCount.ROWS] = used[DenseCount.PAIRS] = 0


@helper
def is_dense(state: State) -> bool:
    """Tell whether hot clusters are put off."""
    return state.dense.used[DenseCount.IS_ON] > 0


@helper
def write_columns(state: State, event: int, count: int) -> bool:
    """Write the values of the event at hand into columns; return False if a slot has more than one, or one between keys."""
    dense, bit = state.dense, event - state.dense.used[DenseCount.FIRST]
    for i in range(count):
        slot = np.int64(state.room.touched[i])
        column = state.slots.rows[slot, Slot.COLUMN] - 1
        if column >= 0:
            if state.slots.values[slot, Value.NEXT] != 0:
                dense.used[DenseCount.FAULT] = slot + 1
                return False
            dense.columns[column, bit] = state.slots.values[slot, Value.LOW]
            dense.present[column, bit // _WORD] |= _ONE << np.uint64(bit % _WORD)
    return True


@helper
def mend(state: State) -> None:
    """Remove what stood in the way of a chunk: a slot whose values cannot be a column, or a cluster that asks for such a slot."""
    fault = state.dense.used[DenseCount.FAULT]
    state.dense.used[DenseCount.FAULT] = 0
    if fault < 0:
        state.access.keys[-1 - fault, Access.PLACE] &= ~np.int64(HOT_BIT)
    elif fault > 0:
        column = state.slots.rows[fault - 1, Slot.COLUMN] - 1
        if column >= 0:
            _drop_column(state, fault - 1, column)


@helper
def _drop_column(state: State, slot: int, column: int) -> None:
    """Give a slot no column any more, and let all clusters cool down that may need it."""
    state.slots.rows[slot, Slot.COLUMN] = -1
    used = state.dense.used
    last = used[DenseCount.COLUMNS] - 1
    if column < last:
        moved = state.dense.slots[last]
        state.dense.slots[column] = moved
        state.slots.rows[moved, Slot.COLUMN] = column + 1
    used[DenseCount.COLUMNS] = last
    _rebuild(state)


@helper
def put_off(state: State, entry: int, event: int) -> None:
    """Note that an event reached a hot cluster."""
    bit = event - state.dense.used[DenseCount.FIRST]
    at = _find(state, entry)
    state.dense.hits[at, bit // _WORD] |= _ONE << np.uint64(bit % _WORD)


@helper
def evaluate_chunk(state: State) -> int:
    """Write the matches of the hot clusters as pairs; return how many, or less than 0: the pairs that there has to be room for.

    If a cluster cannot be evaluated so after all, 1 is returned beyond any number of pairs.
    """
    dense, used = state.dense, state.dense.used
    for at in range(HOT):
        entry = np.int64(dense.hot[at]) - 1
        if entry < 0:
            continue
        hits = np.int64(0)
        for w in range(CHUNK_WORDS):
            hits += np.int64(dense.hits[at, w] != 0)
        if hits > 0:
            count = _evaluate(state, entry, at)
            if count != 0:
                return count
    return used[DenseCount.PAIRS]


@helper
def _evaluate(state: State, entry: int, hot: int) -> int:
    """Append the matches of a cluster to the pairs; return 0, or what `evaluate_chunk` returns if that fails."""
    dense, rows, used = state.dense, state.words.rows, state.dense.used
    place, satisfied = state.access.keys[entry, Access.PLACE], dense.satisfied
    at, end = start_of(place), start_of(place) + words_in(place)
    while at < end:
        head, number = np.int64(rows[at + HEAD]), np.int64(rows[at + NUMBER])
        checks, first = checks_in(head), at
        at += length_of(head)
        if number < 0:
            continue
        some = np.uint64(0)
        for w in range(CHUNK_WORDS):
            satisfied[w] = dense.hits[hot, w]
        for k in range(checks):
            row = bits_of(state, code_in(np.int64(rows[place_of_check(head, first, np.int64(k))])))
            if row < 0:
                used[DenseCount.FAULT] = -1 - entry
                return np.int64(1) << 62
            some = np.uint64(0)
            for w in range(CHUNK_WORDS):
                satisfied[w] &= dense.bits[row, w]
                some |= satisfied[w]
            if some == 0:
                break
        if some == 0 and checks > 0:
            continue
        if used[DenseCount.PAIRS] + CHUNK > dense.pairs.shape[0]:
            return -(used[DenseCount.PAIRS] + CHUNK)
        if (head >> RESIDUAL_BIT) & 1:
            number += NEEDS_RESIDUAL
        _emit(state, number)
    return np.int64(0)


@helper
def _emit(state: State, number: int) -> None:
    """Append the pairs of a conjunction and the events that satisfy it."""
    dense, pairs = state.dense, state.dense.pairs
    count = dense.used[DenseCount.PAIRS]
    for w in range(CHUNK_WORDS):
        word = dense.satisfied[w]
        while word != 0:
            event = _WORD * w + first_bit(word)
            word &= word - _ONE
            pairs[count] = (event << 48) | number
            dense.counts[event] += 1
            count += 1
    dense.used[DenseCount.PAIRS] = count


@helper
def bits_of(state: State, code: int) -> int:
    """Return the row of the bits of a predicate, which are found out if they are not known; -1 if they cannot be."""
    dense = state.dense
    row = np.int64(state.predicates.bits[code])
    if row < dense.used[DenseCount.ROWS] and dense.codes[row] == code:
        return row
    key = state.predicates.entries.keys[code]
    op, slot = key[Code.TAG] >> OP_BITS, key[Code.TAG] & SLOT_MASK
    column = state.slots.rows[slot, Slot.COLUMN] - 1
    if column < 0 or (op == Op.IN and state.slots.rows[slot, Slot.FIELD] % FIELDS == Field.ANY):
        return np.int64(-1)
    row = dense.used[DenseCount.ROWS]
    if row < BIT_ROWS:
        dense.codes[row] = code
        state.predicates.bits[code] = row
        dense.used[DenseCount.ROWS] += 1
    if (INSIDE >> op) & 1:
        _compare(state, column, row, key[Code.LOW], key[Code.HIGH])
    elif op in (Op.NE, Op.NOT_BETWEEN):
        _compare(state, column, row, key[Code.LOW], key[Code.HIGH])
        for w in range(CHUNK_WORDS):
            dense.bits[row, w] = dense.present[column, w] & ~dense.bits[row, w]
    elif op == Op.PRESENT:
        for w in range(CHUNK_WORDS):
            dense.bits[row, w] = dense.present[column, w]
    elif op == Op.MISSING:
        for w in range(CHUNK_WORDS):
            dense.bits[row, w] = ~dense.present[column, w]
    else:
        _look_up_members(state, column, row, slot, key[Code.LOW])
        if op == Op.NOT_IN:
            for w in range(CHUNK_WORDS):
                dense.bits[row, w] = dense.present[column, w] & ~dense.bits[row, w]
    return row


@helper
def _compare(state: State, column: int, row: int, low: int, high: int) -> None:
    """Write the bits of the events whose value is in an interval."""
    dense, values = state.dense, state.dense.columns
    for w in range(CHUNK_WORDS):
        word = np.uint64(0)
        for j in range(_WORD):
            value = values[column, _WORD * w + j]
            word |= np.uint64((low <= value) & (value <= high)) << np.uint64(j)
        dense.bits[row, w] = word & dense.present[column, w]


@helper
def _look_up_members(state: State, column: int, row: int, slot: int, code: int) -> None:
    """Write the bits of the events whose value is in a list."""
    dense = state.dense
    for w in range(CHUNK_WORDS):
        left, word = dense.present[column, w], np.uint64(0)
        while left != 0:
            bit = first_bit(left)
            left &= left - _ONE
            if is_listed(state.members.rows, state.lists[code], slot, dense.columns[column, _WORD * w + bit]):
                word |= _ONE << np.uint64(bit)
        dense.bits[row, w] = word


@helper
def merge_pairs(state: State, first: int, last: int, found: Int64s, offsets: Int64s) -> None:
    """Put the pairs of a chunk, from event `first` to `last`, among the matches that were found event by event."""
    dense = state.dense
    more = dense.used[DenseCount.PAIRS]
    for event in range(last - 1, first - 1, -1):  # from behind: each event's matches move towards the end
        begin, end = offsets[event], offsets[event + 1]
        offsets[event + 1] = end + more
        more -= dense.counts[event - first]
        for i in range(end - 1, begin - 1, -1):
            found[i + more] = found[i]
        dense.counts[event - first] = end + more  # where its pairs begin
    for i in range(dense.used[DenseCount.PAIRS]):
        event = dense.pairs[i] >> 48
        found[dense.counts[event]] = dense.pairs[i] & ((np.int64(1) << 48) - 1)
        dense.counts[event] += 1
    for event in range(last - first):
        dense.counts[event] = 0
