"""Adding conjunctions under their access paths, moving them to better ones, recalling and removing them."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.access import (
    choose,
    drop_entry,
    entry_of,
    is_implied,
    key_of,
    postings_wanted,
    presence_key,
)
from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    REST,
    add_first_check,
    append,
    code_in,
    copy_codes,
    first_checks_wanted,
    growth,
    head_of,
    is_empty,
    length_of,
    longest,
    size_of_stored,
    start_of,
    take_out,
    words_in,
)
from tocsin.matching.adaptive._kernels.expectations import chance_of_path, cost_of, expected, presence
from tocsin.matching.adaptive._kernels.predicates import decode, intern, release_code
from tocsin.matching.adaptive._kernels.sections import share_checked
from tocsin.matching.adaptive.state import (
    BOUNDS,
    INSIDE,
    OP_BITS,
    SLOT_MASK,
    Access,
    AdaptiveStateAddress,
    Code,
    ListRow,
    State,
    Stored,
    Top,
)
from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_MASK, Op
from tocsin.structures import hash_index
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_SPARSE: Final = 0.5  # events that have a value in a slot, below which it is worth to look there first
BETTER: Final = 0.5  # a conjunction moves if it is then checked so many times as often, or less


@kernel
def keep(store: ConjunctionStore, ids: Int64s, expressions: Expressions) -> None:
    """Give conjunctions numbers under their subscriptions' ids; there must be room."""
    for i in range(ids.shape[0]):
        number = add_number(store, ids[i])
        expressions.numbers[i] = number
    store.counters[StoreCounter.PREDICATES] += expressions.tags.shape[0]


@kernel
def forget(store: ConjunctionStore, expressions: Expressions) -> None:
    """Free the numbers of conjunctions that are taken out."""
    store.counters[StoreCounter.PREDICATES] -= expressions.tags.shape[0]
    for i in range(expressions.numbers.shape[0]):
        free_number(store, expressions.numbers[i])


@kernel
def settle(
    address: AdaptiveStateAddress, expressions: Expressions, start: int, step: int, scratch: Int64s
) -> tuple[int, int]:
    """Put every so many conjunction from `start` on under its best access path.

    Expressions without offsets are placed already: they move if that is worth it. Return the first for which there was no
    room, and how many were put. `scratch` has room for four times the codes of the longest.
    """
    state: State = load(address)
    is_new, count = expressions.offsets.shape[0] > 1, np.int64(0)
    for i in range(start, expressions.numbers.shape[0], step):
        number = expressions.numbers[i]
        old = np.int64(state.store.rows[number, Stored.PATH])
        if is_new == (old >= 0):
            continue
        size, members = np.int64(0), np.int64(0)
        if is_new:
            size = expressions.offsets[i + 1] - expressions.offsets[i]
            members = _members_of(expressions, i)
        else:
            size = copy_codes(state, number, scratch)
            members = _members_in(state, scratch, size)
        if not has_room(state, size, members):
            state.tops[Top.NEEDED_MEMBERS] = 2 * members + 1
            return np.int64(i), count
        if is_new:
            for j in range(size):
                scratch[j] = intern(state, expressions, expressions.offsets[i] + j)
        choice = choose(state, scratch, scratch[size:], size)
        freed = np.int64(0)
        if old >= 0:
            chance = chance_of_path(state, old) * share_checked(state, old)
            before = cost_of(state, chance, scratch, size)
            if cost_of(state, choice[0], scratch, size) >= BETTER * before:
                continue
            freed = words_in(state.access.keys[old, Access.PLACE])
        first, second = key_of(state, scratch, size, choice, True)
        postings = postings_wanted(state, first, second)
        if state.postings.top[0] + postings > state.postings.rows.shape[0]:
            state.tops[Top.NEEDED_POSTINGS] = postings
            _release(state, scratch, size if is_new else np.int64(0))
            return np.int64(i), count
        entry = entry_of(state, first, second, choice[2])
        if entry == old:
            continue
        words, checks = (
            growth(state, entry, longest(size)) + freed,
            first_checks_wanted(state, entry, longest(size)),
        )
        if (
            not has_words(state, words)
            or not _has_checks(state, checks)
            or (old >= 0 and not take_out(state, number))
        ):
            state.tops[Top.NEEDED], state.tops[Top.NEEDED_CHECKS] = words, checks
            if is_empty(state, entry):
                drop_entry(state, entry)
            _release(state, scratch, size if is_new else np.int64(0))
            return np.int64(i), count
        write(state, number, entry, scratch, size)
        if old >= 0 and is_empty(state, old):
            drop_entry(state, old)
        count += 1
    return expressions.numbers.shape[0], count


@helper
def _release(state: State, codes: Int64s, count: int) -> None:
    """Count one use less of each of the first codes."""
    for j in range(count):
        release_code(state, codes[j])


@helper
def _members_of(expressions: Expressions, i: int) -> int:
    """Return how many members the lists of a conjunction have."""
    members = np.int64(0)
    if expressions.which.shape[0] > 0:
        for q in range(expressions.offsets[i], expressions.offsets[i + 1]):
            which = expressions.which[q]
            if which >= 0:
                members += expressions.starts[which + 1] - expressions.starts[which]
    return members


@helper
def _members_in(state: State, codes: Int64s, size: int) -> int:
    """Return how many members the lists of a conjunction have that is placed already."""
    members, keys = np.int64(0), state.predicates.entries.keys
    for j in range(size):
        if keys[codes[j], Code.TAG] >> OP_BITS == Op.IN:
            members += state.lists[keys[codes[j], Code.LOW], ListRow.COUNT]
    return members


@helper
def has_room(state: State, size: int, members: int) -> bool:
    """Tell whether there is room for a conjunction with so many predicates and members of lists, but for its words."""
    more = size + members
    return (
        hash_index.has_room(state.predicates.entries, 2 * more + 4)
        and state.tops[Top.SLOTS] + 2 * more + 4 <= state.slots.rows.shape[0]
        and hash_index.has_room(state.access, np.int64(1))
        and state.members.top[0] + 2 * members + 1 <= state.members.rows.shape[0]
        and state.links.top[0] + 2 * members + 1 <= state.links.rows.shape[0]
    )


@helper
def has_words(state: State, words: int) -> bool:
    """Tell whether there is room for so many words of clusters."""
    return state.words.top[0] + words <= state.words.rows.shape[0]


@helper
def _has_checks(state: State, checks: int) -> bool:
    """Tell whether there is room for so many first checks, and for another large cluster."""
    large = state.large
    return (
        large.checks.top[0] + checks <= large.checks.rows.shape[0] and large.counters[1] < large.rows.shape[0]
    )


@helper
def write(state: State, number: int, entry: int, codes: Int64s, size: int) -> None:
    """Write a conjunction into a cluster; the checks that fail most often come first."""
    first, second = state.access.keys[entry, Access.FIRST], state.access.keys[entry, Access.SECOND]
    keys, rows = state.predicates.entries.keys, state.words.rows
    checks, last, is_residual = np.int64(0), size, False
    chances = codes[size : 2 * size]
    for j in range(size):  # codes that are not checked go to the end, the others in order
        code = codes[j]
        op, slot = keys[code, Code.TAG] >> OP_BITS, keys[code, Code.TAG] & SLOT_MASK
        is_residual |= op == Op.RESIDUAL
        if op == Op.RESIDUAL or is_implied(first, second, code) or _is_presence(first, op, slot):
            last -= 1
            codes[2 * size + last] = code
            continue
        chance = np.int64(expected(state, code) * (1 << 60))
        k = checks
        while k > 0 and chances[k - 1] > chance:
            chances[k] = chances[k - 1]
            codes[2 * size + k] = codes[2 * size + k - 1]
            k -= 1
        chances[k] = chance
        codes[2 * size + k] = code if op == Op.EQ else -1 - code
        checks += 1
    has_bounds = checks > 0 and _is_sparse(state, code_in(codes[2 * size]))
    head = head_of(size, checks, is_residual, has_bounds)
    at = append(state, entry, length_of(head))
    state.store.rows[number, Stored.PATH] = entry
    state.store.rows[number, Stored.OFFSET] = at - start_of(state.access.keys[entry, Access.PLACE])
    rows[at], rows[at + HEAD], rows[at + NUMBER] = (
        codes[2 * size] if checks > 0 else np.int64(0),
        head,
        number,
    )
    rest = at + REST
    for j in range(checks if has_bounds else 0):
        _write_bounds(state, rest, code_in(codes[2 * size + j]))
        rest += BOUNDS
    for j in range(np.int64(checks > 0), size):
        rows[rest] = codes[2 * size + j]
        rest += 1
    add_first_check(state, entry, at)


@helper
def _write_bounds(state: State, at: int, code: int) -> None:
    """Write the slot of a predicate, and the upper halves of its bounds; where it has none, bounds that never decide."""
    row, rows = state.predicates.entries.keys[code], state.words.rows
    op, slot = row[Code.TAG] >> OP_BITS, row[Code.TAG] & SLOT_MASK
    rows[at], rows[at + 1], rows[at + 2] = slot if op != Op.MISSING else np.int64(-1), 1, 0
    if (INSIDE >> op) & 1:
        rows[at + 1], rows[at + 2] = row[Code.LOW] >> 32, row[Code.HIGH] >> 32


@helper
def _is_sparse(state: State, code: int) -> bool:
    """Tell whether few events have a value that a predicate asks about."""
    return presence(state, state.predicates.entries.keys[code, Code.TAG] & SLOT_MASK) < _SPARSE


@helper
def _is_presence(first: int, op: int, slot: int) -> bool:
    """Tell whether a predicate asks no more than the access path by presence does."""
    return op == Op.PRESENT and first >= 0 and first == presence_key(slot)


@kernel
def withdraw(address: AdaptiveStateAddress, numbers: Int64s, start: int, scratch: Int64s) -> int:
    """Take conjunctions from `start` on out of their clusters; return how many there was room for.

    One that is not placed is passed over. `scratch` has room for the codes of the longest.
    """
    state: State = load(address)
    for i in range(start, numbers.shape[0]):
        entry = np.int64(state.store.rows[numbers[i], Stored.PATH])
        if entry < 0:
            continue
        size = copy_codes(state, numbers[i], scratch)
        if not take_out(state, numbers[i]):
            return np.int64(i)
        if is_empty(state, entry):
            drop_entry(state, entry)
        _release(state, scratch, size)
    return numbers.shape[0]


@helper
def _sink(into: Expressions, first: int, last: int) -> None:
    """Move the last predicate among those before it, which are in the order of fields and operators."""
    tags, lows, highs = into.tags, into.lows, into.highs
    tag, low, high = tags[last], lows[last], highs[last]
    order, k = (tag & FIELD_MASK, tag, low, high), last
    while k > first and (tags[k - 1] & FIELD_MASK, tags[k - 1], lows[k - 1], highs[k - 1]) > order:
        tags[k], lows[k], highs[k] = tags[k - 1], lows[k - 1], highs[k - 1]
        k -= 1
    tags[k], lows[k], highs[k] = tag, low, high


@kernel
def recall(
    address: AdaptiveStateAddress, numbers: Int64s, begin: int, into: Expressions, scratch: Int64s
) -> int:
    """Read conjunctions from `begin` on, in the order of fields and operators; return where it stopped for want of room."""
    state: State = load(address)
    into.offsets[0] = into.bounds[0] = 0
    count, predicates = np.int64(0), np.int64(0)
    for i in range(begin, numbers.shape[0]):
        if (
            count == into.numbers.shape[0]
            or predicates + size_of_stored(state, numbers[i]) > into.tags.shape[0]
        ):
            return np.int64(i)
        size = copy_codes(state, numbers[i], scratch)
        for j in range(size):
            decode(state, scratch[j], into, predicates)
            _sink(into, into.offsets[count], predicates)
            predicates += 1
            into.bounds[predicates] = predicates
        into.numbers[count] = numbers[i]
        count += 1
        into.offsets[count] = predicates
    return numbers.shape[0]
