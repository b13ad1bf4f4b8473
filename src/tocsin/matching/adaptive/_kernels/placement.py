"""Adding conjunctions under their access paths, moving them to better ones, recalling and removing them."""

from __future__ import annotations

import numpy as np

from tocsin.matching.adaptive._kernels.access import choose, drop_entry, entry_of, is_implied, presence_key
from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    REST,
    append,
    copy_codes,
    growth,
    head_of,
    is_empty,
    length_of,
    longest,
    size_of_stored,
    start_of,
    take_out,
)
from tocsin.matching.adaptive._kernels.expectations import expected
from tocsin.matching.adaptive._kernels.predicates import decode, intern, release_code
from tocsin.matching.adaptive.state import (
    OP_BITS,
    SLOT_MASK,
    Access,
    Code,
    State,
    Stored,
    Top,
)
from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_MASK, Op
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel


@kernel
def keep(state: State, ids: Int64s, expressions: Expressions) -> None:
    """Give conjunctions numbers under their subscriptions' ids; there must be room."""
    for i in range(ids.shape[0]):
        number = add_number(state.store, ids[i])
        expressions.numbers[i] = number
    state.store.counters[StoreCounter.PREDICATES] += expressions.tags.shape[0]


@kernel
def forget(state: State, expressions: Expressions) -> None:
    """Free the numbers of conjunctions that are taken out."""
    state.store.counters[StoreCounter.PREDICATES] -= expressions.tags.shape[0]
    for i in range(expressions.numbers.shape[0]):
        free_number(state.store, expressions.numbers[i])


@kernel
def place(state: State, expressions: Expressions, start: int, step: int, scratch: Int64s) -> int:
    """Put every so many conjunction from `start` on into its cluster, unless it is there; return the first without room.

    `scratch` has room for four times the codes of the longest.
    """
    for i in range(start, expressions.numbers.shape[0], step):
        if state.store.rows[expressions.numbers[i], Stored.PATH] >= 0:
            continue
        begin, end = expressions.offsets[i], expressions.offsets[i + 1]
        size, members = end - begin, np.int64(0)
        for q in range(begin, end):
            if expressions.which.shape[0] > 0 and expressions.which[q] >= 0:
                members += (
                    expressions.starts[expressions.which[q] + 1] - expressions.starts[expressions.which[q]]
                )
        if not has_room(state, size, members):
            return np.int64(i)
        for q in range(begin, end):
            scratch[q - begin] = intern(state, expressions, q)
        first, second, _ = choose(state, scratch, scratch[size:], size, True)
        entry = entry_of(state, first, second)
        words = growth(state, entry, longest(size))
        if not has_words(state, words):
            state.tops[Top.NEEDED] = words
            if is_empty(state, entry):
                drop_entry(state, entry)
            for j in range(size):
                release_code(state, scratch[j])
            return np.int64(i)
        write(state, expressions.numbers[i], entry, scratch, size)
    return expressions.numbers.shape[0]


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
    head = head_of(size, checks, is_residual)
    at = append(state, entry, length_of(head))
    state.store.rows[number, Stored.PATH] = entry
    state.store.rows[number, Stored.OFFSET] = at - start_of(state.access.keys[entry, Access.PLACE])
    first_rest = np.int64(checks > 0)
    rows[at], rows[at + HEAD], rows[at + NUMBER] = (
        codes[2 * size] if checks > 0 else np.int64(0),
        head,
        number,
    )
    for j in range(first_rest, size):
        rows[at + REST + j - first_rest] = codes[2 * size + j]


@helper
def _is_presence(first: int, op: int, slot: int) -> bool:
    """Tell whether a predicate asks no more than the access path by presence does."""
    return op == Op.PRESENT and first >= 0 and first == presence_key(slot)


@kernel
def withdraw(state: State, numbers: Int64s, start: int, scratch: Int64s) -> int:
    """Take conjunctions from `start` on out of their clusters; return how many there was room for.

    One that is not placed is passed over. `scratch` has room for the codes of the longest.
    """
    for i in range(start, numbers.shape[0]):
        entry = np.int64(state.store.rows[numbers[i], Stored.PATH])
        if entry < 0:
            continue
        size = copy_codes(state, numbers[i], scratch)
        if not take_out(state, numbers[i]):
            return np.int64(i)
        if is_empty(state, entry):
            drop_entry(state, entry)
        for j in range(size):
            release_code(state, scratch[j])
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
def recall(state: State, numbers: Int64s, begin: int, into: Expressions, scratch: Int64s) -> int:
    """Read conjunctions from `begin` on, in the order of fields and operators; return where it stopped for want of room."""
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
