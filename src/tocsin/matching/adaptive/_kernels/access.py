"""Access paths: which there are for a conjunction, what they cost, and the clusters they lead to."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.expectations import code_at, expected, presence
from tocsin.matching.adaptive._kernels.grids import cell_of, cell_tag, grid_of, level_slot
from tocsin.matching.adaptive._kernels.predicates import release_code, retain_code
from tocsin.matching.adaptive.state import (
    CELL,
    CODE_BITS,
    EVERY_EVENT,
    INSIDE,
    NO_CODE,
    OP_BITS,
    PRESENCE,
    SLOT_MASK,
    WIDEST,
    Access,
    Code,
    GridRow,
    Link,
    ListRow,
    Posting,
    Slot,
    State,
    Top,
)
from tocsin.matching.encoding.codes import Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper

_LOW_HALF: Final = 0xFFFFFFFF
_EVERY: Final = -1  # how a conjunction is reached: by every event,
_BY_CODE: Final = 0  # or by one of its codes, or a cell around it,
_BY_PRESENCE: Final = 1  # or by the presence of a value
_KINDS: Final = 2
_NEVER_PRESENT: Final = (Op.MISSING, Op.RESIDUAL)


@helper
def single_key(code: int) -> int:
    """Return the first half of the key of an access path by one code."""
    return (code << CODE_BITS) | NO_CODE


@helper
def presence_key(slot: int) -> int:
    """Return the first half of the key of an access path by the presence of a value."""
    return (slot << CODE_BITS) | PRESENCE


@helper
def key_of_codes(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """Return the key of an access path by up to four codes; -1 is none."""
    first = (a << CODE_BITS) | (b if b >= 0 else np.int64(NO_CODE))
    if c < 0:
        return first, np.int64(EVERY_EVENT)
    return first, (c << CODE_BITS) | (d if d >= 0 else np.int64(NO_CODE))


@helper
def is_implied(first: int, second: int, code: int) -> bool:
    """Tell whether every event that reaches an access path satisfies one of its codes."""
    found = False
    for which in range(WIDEST):
        found |= code_at(first, second, which) == code
    return found


@helper
def dimension(state: State, code: int) -> tuple[int, int]:
    """Return the slot in which a code can be a part of a key, and the code there: its own, or that of a cell.

    The slot is -1 if there is none. A cell that has no code yet is -2 - its number.
    """
    keys = state.predicates.entries.keys
    tag = keys[code, Code.TAG]
    op, slot = tag >> OP_BITS, tag & SLOT_MASK
    if op == Op.EQ:
        return slot, code
    grid = grid_of(state, slot) if (INSIDE >> op) & 1 else np.int64(-1)
    if grid < 0:
        return np.int64(-1), code
    level, cell = cell_of(state, grid, keys[code, Code.LOW], keys[code, Code.HIGH])
    if level < 0:
        return np.int64(-1), code
    slot = level_slot(state, grid, level)
    found = hash_index.find(state.predicates.entries, cell_tag(slot), cell, np.int64(0))
    return slot, found if found >= 0 else -2 - cell


@helper
def chance_of(state: State, code: int, slot: int, part: int) -> float:
    """Return the probability that an event has a part of a key that stands for a code: itself, or a cell around it."""
    if part == code:
        return expected(state, code)
    if part >= 0:
        return min(max(expected(state, part), expected(state, code)), 1.0)
    return min(2.0 * expected(state, code), presence(state, -1 - state.slots.rows[slot, Slot.FIELD]))


@helper
def choose(state: State, codes: Int64s, parts: Int64s, size: int) -> tuple[float, int, int]:
    """Return the share of events that reach the best access path of a conjunction, and which path it is: see `key_of`.

    `parts` is room for three times as many numbers as the conjunction has codes.
    """
    which, table = np.int64(_EVERY), np.int64(-1)
    best, chances = 2.0, parts[2 * size : 3 * size]
    for i in range(size):
        code = codes[i]
        tag = state.predicates.entries.keys[code, Code.TAG]
        op = tag >> OP_BITS
        slot, part = dimension(state, code)
        parts[i], parts[size + i] = slot, part
        chance, kind = 2.0, np.int64(_BY_CODE)
        if slot >= 0:
            chance = chance_of(state, code, slot, part)
        elif op == Op.IN:
            chance = expected(state, code)
        elif op not in _NEVER_PRESENT:
            chance, kind = presence(state, tag & SLOT_MASK), np.int64(_BY_PRESENCE)
        chances[i] = np.int64(min(chance, 1.0) * (1 << 60))
        if chance < best:
            best, which = chance, _KINDS * i + kind
    for t in range(state.tops[Top.TABLES]):
        width = np.int64(state.tables.width[t])
        if width > 0 and width <= size:
            chance = _chance_in(state, t, parts, size)
            if chance < best and chance < 1.0:
                best, table = chance, np.int64(t)
    return min(best, 1.0), which, table


@helper
def key_of(
    state: State, codes: Int64s, size: int, choice: tuple[float, int, int], is_final: bool
) -> tuple[int, int]:
    """Return the key of the access path that was chosen for a conjunction; its parts are behind its codes.

    A cell in it that is no code yet becomes one if the choice is final; else no access path has the key that is returned.
    """
    _, which, table = choice
    parts, none = codes[size:], np.int64(EVERY_EVENT)
    if table >= 0:
        if is_final or _has_codes(state, table, parts, size):
            a, b, c, d = _codes_in(state, table, parts, size)
            return key_of_codes(a, b, c, d)
        return np.int64(EVERY_EVENT - 1), none
    if which == _EVERY:
        return none, none
    i = which // _KINDS
    if which % _KINDS == _BY_PRESENCE:
        return presence_key(state.predicates.entries.keys[codes[i], Code.TAG] & SLOT_MASK), none
    if parts[i] < 0:
        return single_key(codes[i]), none
    if parts[size + i] < 0 and not is_final:
        return np.int64(EVERY_EVENT - 1), none
    return single_key(_with_cell(state, parts, size, i)), none


@helper
def _place_in(state: State, table: int, which: int, parts: Int64s, size: int) -> int:
    """Return the position of the conjunction's code in one of a table's slots, or -1."""
    wanted = state.tables.slots[table, which]
    for i in range(size):
        if parts[i] == wanted:
            return np.int64(i)
    return np.int64(-1)


@helper
def _chance_in(state: State, table: int, parts: Int64s, size: int) -> float:
    """Return the probability that an event has the key of a conjunction in a table; 1 if it has none."""
    chance, least = state.tables.correlation[table], 1.0
    for which in range(state.tables.width[table]):
        i = _place_in(state, table, which, parts, size)
        if i < 0:
            return 1.0
        one = parts[2 * size + i] * (1.0 / (1 << 60))
        chance *= one
        least = min(least, one)
    return min(chance, least)


@helper
def _has_codes(state: State, table: int, parts: Int64s, size: int) -> bool:
    """Tell whether all parts of a conjunction's key in a table are codes already."""
    found = True
    for which in range(state.tables.width[table]):
        found &= parts[size + _place_in(state, table, which, parts, size)] >= 0
    return found


@helper
def _codes_in(state: State, table: int, parts: Int64s, size: int) -> tuple[int, int, int, int]:
    """Return the codes of a conjunction's key in a table; cells get codes."""
    a, b, c, d = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1)
    for which in range(state.tables.width[table]):
        i = _place_in(state, table, which, parts, size)
        code = _with_cell(state, parts, size, i)
        if which == 0:
            a = code
        elif which == 1:
            b = code
        elif which == 2:
            c = code
        else:
            d = code
    return a, b, c, d


@helper
def _with_cell(state: State, parts: Int64s, size: int, i: int) -> int:
    """Return the code of a part; a cell that has none gets one, without a use yet."""
    part = parts[size + i]
    if part < 0:
        part = retain_code(state, cell_tag(parts[i]), -2 - part, np.int64(0))
        state.predicates.uses[part] -= 1
        parts[size + i] = part
    return part


@helper
def entry_of(state: State, first: int, second: int, table: int) -> int:
    """Return the entry of an access path, in a table or -1, which is made if there is none; there must be room."""
    entry = hash_index.find(state.access, first, second, np.int64(0))
    if entry >= 0:
        return entry
    entry = hash_index.insert(state.access, first, second, np.int64(0))
    state.access.keys[entry, Access.PLACE] = 0
    state.access.keys[entry, Access.WORK] = 0
    if table >= 0:
        state.tables.members[table] += 1
    if first >= 0 and first & _LOW_HALF == PRESENCE:
        state.slots.rows[first >> CODE_BITS, Slot.CLUSTER] = entry + 1
    for which in range(WIDEST):
        code = code_at(first, second, which)
        if code >= 0:
            _retain_part(state, code)
    code = code_at(first, second, np.int64(0))
    if code >= 0 and first & _LOW_HALF == NO_CODE and second < 0:
        _set_cluster(state, code, entry + 1)
        if state.predicates.entries.keys[code, Code.TAG] >> OP_BITS == Op.IN:
            _link(state, code, entry)
    return entry


@helper
def drop_entry(state: State, entry: int) -> None:
    """Remove an access path without conjunctions."""
    first, second = state.access.keys[entry, Access.FIRST], state.access.keys[entry, Access.SECOND]
    if first >= 0 and first & _LOW_HALF == PRESENCE:
        state.slots.rows[first >> CODE_BITS, Slot.CLUSTER] = 0
    code = code_at(first, second, np.int64(0))
    if code >= 0 and first & _LOW_HALF == NO_CODE and second < 0:
        _set_cluster(state, code, np.int64(0))
        if state.predicates.entries.keys[code, Code.TAG] >> OP_BITS == Op.IN:
            _unlink(state, code)
    table = _table_of(state, first, second)
    if table >= 0:
        state.tables.members[table] -= 1
    hash_index.remove(state.access, entry)
    for which in range(WIDEST):
        code = code_at(first, second, which)
        if code >= 0:
            _release_part(state, code)


@helper
def _table_of(state: State, first: int, second: int) -> int:
    """Return the table that an access path is in, or -1."""
    if code_at(first, second, np.int64(1)) < 0:
        return np.int64(-1)
    for table in range(state.tops[Top.TABLES]):
        width, same = np.int64(state.tables.width[table]), True
        for which in range(WIDEST):
            code = code_at(first, second, np.int64(which))
            slot = state.predicates.entries.keys[code, Code.TAG] & SLOT_MASK if code >= 0 else np.int64(-1)
            same &= (code >= 0) == (which < width) and (code < 0 or state.tables.slots[table, which] == slot)
        if same and width > 0:
            return np.int64(table)
    return np.int64(-1)


@helper
def _set_cluster(state: State, code: int, cluster: int) -> None:
    use = state.predicates.entries.keys[code, Code.USE]
    state.predicates.entries.keys[code, Code.USE] = (use & ~np.int64(_LOW_HALF)) | cluster


@helper
def _retain_part(state: State, code: int) -> None:
    """Count a use of a code by an access path; the first one of a cell has events look for cells of its level."""
    state.predicates.uses[code] += 1
    tag = state.predicates.entries.keys[code, Code.TAG]
    if tag >> OP_BITS == CELL and state.predicates.uses[code] == 1:
        _count_cell(state, tag & SLOT_MASK, np.int64(1))


@helper
def _release_part(state: State, code: int) -> None:
    tag = state.predicates.entries.keys[code, Code.TAG]
    if tag >> OP_BITS == CELL and state.predicates.uses[code] == 1:
        _count_cell(state, tag & SLOT_MASK, np.int64(-1))
    release_code(state, code)


@helper
def _count_cell(state: State, slot: int, change: int) -> None:
    """Count the cells of a level that are in use."""
    rows = state.slots.rows
    rows[slot, Slot.EQUALITIES] += change
    grid = grid_of(state, -1 - rows[slot, Slot.FIELD])
    for level in range(state.grids.levels.shape[1]):
        if state.grids.levels[grid, level] == slot + 1:
            bit = np.int64(1) << level
            levels = state.grids.rows[grid, GridRow.LEVELS]
            state.grids.rows[grid, GridRow.LEVELS] = (
                levels | bit if rows[slot, Slot.EQUALITIES] > 0 else levels & ~bit
            )


@helper
def postings_wanted(state: State, first: int, second: int) -> int:
    """Return how many rows of postings it takes to make an access path, if that is by a list."""
    code = code_at(first, second, np.int64(0))
    keys, wanted = state.predicates.entries.keys, np.int64(0)
    if code < 0 or second >= 0 or keys[code, Code.TAG] >> OP_BITS != Op.IN:
        return wanted
    row = state.lists[keys[code, Code.LOW]]
    for m in range(row[ListRow.FIRST], row[ListRow.FIRST] + row[ListRow.COUNT]):
        slot, key = state.members.rows[m, 0], state.members.rows[m, 1]
        point = hash_index.find(state.predicates.entries, (np.int64(Op.EQ) << OP_BITS) | slot, key, key)
        count = np.int64(0)
        if point >= 0 and state.predicates.linked[point] > 0:
            count = state.postings.rows[state.predicates.linked[point] - 1, Posting.ENTRY]
        wanted += size_of(class_of(count + 2))
    return wanted


@helper
def _link(state: State, code: int, entry: int) -> None:
    """Have the members of a list that is an access path lead to it."""
    row, links = state.lists[state.predicates.entries.keys[code, Code.LOW]], state.links.rows
    first = blocks.take(state.links, class_of(row[ListRow.COUNT]))
    row[ListRow.LINKS] = first
    for m in range(row[ListRow.COUNT]):
        at = row[ListRow.FIRST] + m
        slot, key = state.members.rows[at, 0], state.members.rows[at, 1]
        point = retain_code(state, (np.int64(Op.EQ) << OP_BITS) | slot, key, key)
        state.slots.rows[slot, Slot.LISTS] += 1
        links[first + m, Link.POINT], links[first + m, Link.POSITION] = (
            point,
            _post(state, point, entry, first + m),
        )


@helper
def _post(state: State, point: int, entry: int, link: int) -> int:
    """Append an access path to the postings of a value; return its position."""
    rows, begin = state.postings.rows, np.int64(state.predicates.linked[point]) - 1
    if begin < 0:
        class_ = class_of(np.int64(2))
        begin = blocks.take(state.postings, class_)
        rows[begin, Posting.ENTRY], rows[begin, Posting.LINK] = 0, class_
    position, class_ = rows[begin, Posting.ENTRY] + 1, rows[begin, Posting.LINK]
    if position + 1 > size_of(class_):
        begin = blocks.moved(state.postings, begin, class_, position, class_of(position + 1))
        rows[begin, Posting.LINK] = class_of(position + 1)
    rows[begin, Posting.ENTRY] = position
    rows[begin + position, Posting.ENTRY], rows[begin + position, Posting.LINK] = entry, link
    state.predicates.linked[point] = begin + 1
    return position


@helper
def _unlink(state: State, code: int) -> None:
    """Have the members of a list lead to it no longer; the last of a value's postings takes the place of the one that goes."""
    row, links, rows = (
        state.lists[state.predicates.entries.keys[code, Code.LOW]],
        state.links.rows,
        state.postings.rows,
    )
    first = row[ListRow.LINKS]
    for m in range(row[ListRow.COUNT]):
        point, position = links[first + m, Link.POINT], links[first + m, Link.POSITION]
        begin = np.int64(state.predicates.linked[point]) - 1
        last = rows[begin, Posting.ENTRY]
        for column in range(rows.shape[1]):
            rows[begin + position, column] = rows[begin + last, column]
        links[rows[begin + position, Posting.LINK], Link.POSITION] = position
        rows[begin, Posting.ENTRY] = last - 1
        if last == 1:
            blocks.give(state.postings, begin, rows[begin, Posting.LINK])
            state.predicates.linked[point] = 0
        state.slots.rows[state.members.rows[row[ListRow.FIRST] + m, 0], Slot.LISTS] -= 1
        release_code(state, point)
    blocks.give(state.links, first, class_of(row[ListRow.COUNT]))
    row[ListRow.LINKS] = -1
