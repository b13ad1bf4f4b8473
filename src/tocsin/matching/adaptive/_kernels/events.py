"""The event at hand: its values by slot, and the access paths that it reaches."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.grids import cell_tag, count_value, position
from tocsin.matching.adaptive._kernels.predicates import float_of, with_float
from tocsin.matching.adaptive.state import (
    ABSENT,
    ALWAYS,
    CODE_BITS,
    EVERY_EVENT,
    HIGHEST,
    LOWEST,
    MOST_EVENTS,
    NO_CODE,
    OP_BITS,
    ORDER,
    VALUES,
    Code,
    GridRow,
    Posting,
    Slot,
    State,
    Top,
    Total,
    Value,
)
from tocsin.matching.encoding.codes import FIELDS, Field, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures import hash_index
from tocsin.structures.jit import helper, prefetch

_LOW_HALF: Final = 0xFFFFFFFF
TOUCHED: Final = 0  # places in `Room.used`
MORE: Final = 1
REACHED: Final = 2
PROBES: Final = 3


@helper
def load_event(state: State, events: EncodedEvents, event: int) -> None:
    """Write an event's values into their slots, and look up the codes of equalities with them."""
    slots, used, of = state.slots, state.room.used, state.slots.of
    for i in range(used.shape[0]):
        used[i] = 0
    _number_event(state)
    begin, end = events.offsets[event], events.offsets[event + 1]
    for j in range(begin, end):
        prefetch(of, np.int64(events.fields[j]))
    for j in range(begin, end):
        field = np.int64(events.fields[j])
        kind = field % FIELDS
        base, key, low, high = field - kind, events.keys[j], events.lows[j], events.highs[j]
        slot = np.int64(of[base + Field.ANY]) - 1
        if slot >= 0 and slots.values[slot, Value.CODE] == ABSENT:
            put(state, slot, np.int64(0), np.int64(0), np.int64(-1))
        if kind == Field.OPAQUE:
            continue
        slot = np.int64(of[field]) - 1
        if slot >= 0:
            if kind in (Field.STRING, Field.BIG, Field.TEXT):
                put(state, slot, key, key, np.int64(-1))
            else:
                put(state, slot, low, high, np.int64(-1))
        if kind == Field.STRING:
            slot = np.int64(of[base + ORDER]) - 1
            if slot >= 0:
                put(state, slot, low, high, np.int64(-1))
        elif kind == Field.BIG:
            slot = np.int64(of[base + Field.NUMBER]) - 1
            if slot >= 0:
                put(state, slot, low, high, np.int64(-1))
    _look_up(state)
    _look_up_cells(state)


@helper
def _number_event(state: State) -> None:
    """Give the event at hand a number; when there are no more, marks of earlier events are wiped out."""
    state.tops[Top.NUMBER] += 1
    if state.tops[Top.NUMBER] > MOST_EVENTS:
        marks = state.predicates.marks
        for code in range(marks.shape[0]):
            marks[code] = 0
        state.tops[Top.NUMBER] = 1
    state.predicates.marks[0] = 2 * state.tops[Top.NUMBER]


@helper
def is_counted(state: State) -> bool:
    """Tell whether the event at hand is counted: one of several is."""
    return state.tops[Top.NUMBER] & state.tops[Top.UNCOUNTED] == 0


@helper
def put(state: State, slot: int, low: int, high: int, code: int) -> None:
    """Add a value to a slot."""
    values, more, used = state.slots.values, state.room.more, state.room.used
    is_between = np.int64(low != high)
    if values[slot, Value.CODE] == ABSENT:
        values[slot, Value.LOW], values[slot, Value.HIGH] = low, high
        values[slot, Value.CODE], values[slot, Value.NEXT] = code, is_between
        state.room.touched[used[TOUCHED]] = slot
        used[TOUCHED] += 1
        return
    row = used[MORE]
    used[MORE] += 1
    following = values[slot, Value.NEXT]
    more[row, Value.LOW], more[row, Value.HIGH] = low, high
    more[row, Value.CODE], more[row, Value.NEXT] = code, (following & ~np.int64(1)) | is_between
    values[slot, Value.NEXT] = (2 * (row + 1)) | (following & 1)


@helper
def forget_event(state: State) -> None:
    """Empty the slots of the event at hand."""
    values = state.slots.values
    for i in range(state.room.used[TOUCHED]):
        slot = np.int64(state.room.touched[i])
        values[slot, Value.LOW], values[slot, Value.HIGH] = LOWEST, HIGHEST
        values[slot, Value.CODE], values[slot, Value.NEXT] = ABSENT, 0


@helper
def _look_up(state: State) -> None:
    """Find the codes of equalities with the event's values. Each look-up waits for memory: all are asked for before any."""
    values, touched, used = state.slots.values, state.room.touched, state.room.used
    entries, probes, count = state.predicates.entries, state.room.probes, np.int64(0)
    weight = state.totals[Total.WEIGHT]
    for i in range(used[TOUCHED]):
        slot = np.int64(touched[i])
        if is_counted(state):
            state.slots.seen[slot] += weight
            drawn = np.int64(state.totals[Total.COUNTED]) & (VALUES - 1)
            state.slots.drawn[slot, drawn] = values[slot, Value.LOW]
        if state.slots.rows[slot, Slot.EQUALITIES] == 0:
            continue
        if values[slot, Value.LOW] == values[slot, Value.HIGH]:
            _ask_for(state, slot, np.int64(-1), values[slot, Value.LOW], count)
            count += 1
        following = values[slot, Value.NEXT] >> 1
        while following > 0:
            row = np.int64(following - 1)
            if state.room.more[row, Value.LOW] == state.room.more[row, Value.HIGH]:
                _ask_for(state, slot, row, state.room.more[row, Value.LOW], count)
                count += 1
            following = state.room.more[row, Value.NEXT] >> 1
    for i in range(count):
        entry = np.int64(entries.heads[probes[i, 2]])
        if entry >= 0:
            prefetch(entries.keys, entry * entries.keys.shape[1])
    for i in range(count):
        slot, row, bucket = probes[i, 0], probes[i, 1], probes[i, 2]
        low = values[slot, Value.LOW] if row < 0 else state.room.more[row, Value.LOW]
        code = hash_index.find_in(entries, bucket, (np.int64(Op.EQ) << OP_BITS) | slot, low, low)
        if code >= 0:
            if is_counted(state):
                use = entries.keys[code, Code.USE]
                entries.keys[code, Code.USE] = with_float(use, float_of(use) + weight)
            state.predicates.marks[code] = 2 * state.tops[Top.NUMBER]
            if row < 0:
                values[slot, Value.CODE] = code
            else:
                state.room.more[row, Value.CODE] = code


@helper
def _ask_for(state: State, slot: int, row: int, key: int, count: int) -> None:
    """Note that the equality of a slot with a key is to be looked up."""
    probes, entries = state.room.probes, state.predicates.entries
    probes[count, 0], probes[count, 1] = slot, row
    probes[count, 2] = hash_index.bucket_of(entries, (np.int64(Op.EQ) << OP_BITS) | slot, key, key)
    prefetch(entries.heads, probes[count, 2])


@helper
def _look_up_cells(state: State) -> None:
    """Find the cells that the event's values are in."""
    slots, used = state.slots, state.room.used
    weight = state.totals[Total.WEIGHT]
    for i in range(used[TOUCHED]):
        slot = np.int64(state.room.touched[i])
        grid = slots.rows[slot, Slot.GRID] - 1
        if grid < 0 or (state.grids.rows[grid, GridRow.LEVELS] == 0 and not is_counted(state)):
            continue
        low, high, following = (
            slots.values[slot, Value.LOW], slots.values[slot, Value.HIGH], slots.values[slot, Value.NEXT] >> 1
        )  # fmt: skip
        while True:
            at = position(state, grid, low)
            if is_counted(state):
                count_value(state, grid, at, weight)
            _put_cells(state, grid, at, weight)
            if low != high:  # between two keys, and maybe at the edge of two cells
                other = position(state, grid, high)
                if other != at:
                    _put_cells(state, grid, other, weight)
            if following == 0:
                break
            row = np.int64(following - 1)
            low, high, following = (
                state.room.more[row, Value.LOW],
                state.room.more[row, Value.HIGH],
                state.room.more[row, Value.NEXT] >> 1,
            )


@helper
def _put_cells(state: State, grid: int, at: int, weight: float) -> None:
    """Put the cells around a position into the slots of their levels."""
    levels, level, entries = state.grids.rows[grid, GridRow.LEVELS], np.int64(0), state.predicates.entries
    while levels >> level:
        if (levels >> level) & 1:
            slot = np.int64(state.grids.levels[grid, level]) - 1
            cell = at if level == 0 else at >> (level - 1)
            for which in range(2 if level > 0 and cell > 0 else 1):
                code = hash_index.find(entries, cell_tag(slot), cell - which, np.int64(0))
                if code >= 0:
                    if is_counted(state):
                        use = entries.keys[code, Code.USE]
                        entries.keys[code, Code.USE] = with_float(use, float_of(use) + weight)
                    put(state, slot, cell, cell, code)
        level += 1


@helper
def reach(state: State) -> None:
    """Write the entries of all access paths that the event at hand reaches."""
    slots, used, entries = state.slots, state.room.used, state.predicates.entries
    _reach(state, np.int64(ALWAYS))
    for i in range(used[TOUCHED]):
        slot = np.int64(state.room.touched[i])
        cluster = slots.rows[slot, Slot.CLUSTER]
        if cluster > 0:
            _reach(state, cluster - 1)
        code, following = slots.values[slot, Value.CODE], slots.values[slot, Value.NEXT] >> 1
        while True:
            if code >= 0:
                cluster = entries.keys[code, Code.USE] & _LOW_HALF
                if cluster > 0:
                    _reach(state, cluster - 1)
                if slots.rows[slot, Slot.LISTS] > 0:
                    _reach_lists(state, code)
            if following == 0:
                break
            row = np.int64(following - 1)
            code, following = state.room.more[row, Value.CODE], state.room.more[row, Value.NEXT] >> 1
    _probe_tables(state)


@helper
def _reach(state: State, entry: int) -> None:
    """Write an access path that is reached, if there is room; count it in any case."""
    used, reached = state.room.used, state.room.reached
    if used[REACHED] < reached.shape[0]:
        reached[used[REACHED]] = entry
        prefetch(state.access.keys, entry * state.access.keys.shape[1])
    used[REACHED] += 1


@helper
def has_reached_all(state: State) -> bool:
    """Tell whether there was room for all that the event at hand reaches."""
    room, used = state.room, state.room.used
    return used[REACHED] <= room.reached.shape[0] and used[PROBES] <= room.probes.shape[0]


@helper
def _reach_lists(state: State, point: int) -> None:
    """Reach the access paths by lists that have a value."""
    rows, begin = state.postings.rows, np.int64(state.predicates.linked[point]) - 1
    if begin >= 0:
        for at in range(begin + 1, begin + 1 + rows[begin, Posting.ENTRY]):
            _reach(state, rows[at, Posting.ENTRY])


@helper
def _probe_tables(state: State) -> None:
    """Look up the keys that the event has in tables."""
    access, probes, used = state.access, state.room.probes, state.room.used
    for table in range(state.tops[Top.TABLES]):
        if state.tables.width[table] > 0:
            _ask(state, table)
    count = min(used[PROBES], np.int64(probes.shape[0]))
    for i in range(count):
        entry = np.int64(access.heads[probes[i, 2]])
        if entry >= 0:
            prefetch(access.keys, entry * access.keys.shape[1])
    for i in range(count):
        entry = hash_index.find_in(access, probes[i, 2], probes[i, 0], probes[i, 1], np.int64(0))
        if entry >= 0:
            _reach(state, entry)
    if is_counted(state):
        state.totals[Total.PROBES] += used[PROBES]


@helper
def _first(state: State, slot: int) -> tuple[int, int]:
    """Return the code of a slot's first value and where the next one is."""
    return state.slots.values[slot, Value.CODE], state.slots.values[slot, Value.NEXT] >> 1


@helper
def _next(state: State, following: int) -> tuple[int, int]:
    row = following - 1
    return state.room.more[row, Value.CODE], state.room.more[row, Value.NEXT] >> 1


@helper
def _ask(state: State, table: int) -> None:
    """Write the keys that the event has in a table: one for each combination of its values there."""
    slots, width = state.tables.slots[table], np.int64(state.tables.width[table])
    for which in range(width):
        if state.slots.values[slots[which], Value.CODE] == ABSENT:
            return
    a, following = _first(state, np.int64(slots[0]))
    while True:
        if a >= 0:
            _ask_second(state, table, width, a)
        if following == 0:
            break
        a, following = _next(state, following)


@helper
def _ask_second(state: State, table: int, width: int, a: int) -> None:
    b, following = _first(state, np.int64(state.tables.slots[table, 1]))
    while True:
        if b >= 0:
            if width > 2:
                _ask_third(state, table, width, (a << CODE_BITS) | b)
            else:
                _write_probe(state, (a << CODE_BITS) | b, np.int64(EVERY_EVENT))
        if following == 0:
            break
        b, following = _next(state, following)


@helper
def _ask_third(state: State, table: int, width: int, first: int) -> None:
    c, following = _first(state, np.int64(state.tables.slots[table, 2]))
    while True:
        if c >= 0:
            if width > 3:
                d, after = _first(state, np.int64(state.tables.slots[table, 3]))
                while True:
                    if d >= 0:
                        _write_probe(state, first, (c << CODE_BITS) | d)
                    if after == 0:
                        break
                    d, after = _next(state, after)
            else:
                _write_probe(state, first, (c << CODE_BITS) | NO_CODE)
        if following == 0:
            break
        c, following = _next(state, following)


@helper
def _write_probe(state: State, first: int, second: int) -> None:
    """Write a key to be looked up, if there is room; count it in any case."""
    probes, used = state.room.probes, state.room.used
    row = used[PROBES]
    used[PROBES] += 1
    if row < probes.shape[0]:
        probes[row, 0], probes[row, 1] = first, second
        probes[row, 2] = hash_index.bucket_of(state.access, first, second, np.int64(0))
        prefetch(state.access.heads, probes[row, 2])
