"""The top k of the expressions that an event satisfies, without evaluating all (Whang et al., §5).

No entry of a list weighs more than the list's limit. An expression is skipped if the limits of its lists add up to less
than the worst of the top k so far, and so is a whole size if its heaviest lists do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store.state import CLAUSE_ROW, HIGH_ROW, WEIGHT_ROW
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.cursors import EXPRESSION_SHIFT, LIST, open_lists, skip
from tocsin.matching.k_index._kernels.event_keys import find_lists
from tocsin.matching.k_index._kernels.matching import holds, write_members
from tocsin.matching.k_index._kernels.packing import clause_of, field_of_slot
from tocsin.matching.k_index.state import DraftTop, Expression, Key, Member, State, TableTop, Total
from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import helper, kernel

_ROUNDED: Final = 1.0 + 1e-9  # sums of the same numbers in another order may differ


class Given(NamedTuple):
    """The weights of event i's attributes are those from `offsets[i]` to `offsets[i + 1]`."""

    offsets: Int64s
    attributes: Int64s
    weights: Float64s


class Best(NamedTuple):
    """The best of event i, in any order, are the first `counts[i]` of row i."""

    ids: Int64s  # [events, top]
    scores: Float64s  # [events, top]
    counts: Int64s  # [events]


@kernel
def rank(
    state: State, events: EncodedEvents, start: int, given: Given, best: Best, residual: tuple[Int64s, Int64s]
) -> tuple[int, bool]:
    """Write the top k of each event from `start` on; return as `match` does.

    Members with residual predicates are not ranked: all of them are written into `residual`, as `match` writes them.
    """
    found, offsets = residual
    for event in range(start, events.offsets.shape[0] - 1):
        count = offsets[event]
        best.counts[event] = 0
        if find_lists(state.directory, state.draft, state.lists, events, event) < 0:
            return event, True
        for j in range(given.offsets[event], given.offsets[event + 1]):
            state.weight[given.attributes[j]] = given.weights[j]
        for k in range(state.draft.tops[DraftTop.MOST_SIZE], -1, -1):
            for size in range(2 * k, 2 * k + 2):
                if count >= 0 and state.lists.counts[size] >= max(k, np.int64(1)):
                    count = _rank_size(state, size, best, event, count, found)
        for j in range(given.offsets[event], given.offsets[event + 1]):
            state.weight[given.attributes[j]] = 1.0
        if count < 0:
            return event, False
        offsets[event + 1] = count
        state.totals[Total.SEEN] += 1.0
    return events.offsets.shape[0] - 1, False


@helper
def _bound(state: State, i: int) -> float:
    """Return the highest score of an entry of a list; `i` is its position in `lists.row`."""
    posted, lists = state.directory.posted, state.lists
    row = lists.row[i]
    if posted.headers.rows[row, 1] & arrays.SILENT:
        return 0.0
    limit = posted.limits[row] if posted.limits.shape[0] > 0 else 1.0
    return limit * state.weight[_attribute(state, i)]


@helper
def _attribute(state: State, i: int) -> int:
    entry = state.lists.key[state.lists.source[i]]
    return field_of_slot(state.directory.keys.keys[entry, Key.SLOT]) // FIELDS


@helper
def _worst(best: Best, event: int) -> int:
    """Return the position of the worst of the top k so far."""
    worst = np.int64(0)
    for i in range(1, best.counts[event]):
        score, lowest = best.scores[event, i], best.scores[event, worst]
        if score < lowest or (score == lowest and best.ids[event, i] > best.ids[event, worst]):
            worst = i
    return worst


@helper
def _enough(state: State, best: Best, event: int) -> float:
    """Return the score below which an expression cannot enter the top k; negative if any can."""
    if best.counts[event] < best.ids.shape[1] or state.table.tops[TableTop.RESIDUAL_EXPRESSIONS] > 0:
        return -1.0
    return best.scores[event, _worst(best, event)]


@helper
def _rank_size(state: State, size: int, best: Best, event: int, count: int, found: Int64s) -> int:
    """Rank the expressions of a size; return the new number of residual members, or -1 if there is no room."""
    lists, posted, packed = state.lists, state.directory.posted, state.lists.packed
    is_clausal, needed = size & 1 != 0, max(size >> 1, np.int64(1))
    enough = _enough(state, best, event)
    if not is_clausal and enough >= 0.0 and _heaviest(state, size, needed) * _ROUNDED < enough:
        state.totals[Total.PRUNED] += 1.0
        return count
    left = open_lists(posted, lists, size)
    for n in range(left):
        lists.bound[n] = _bound(state, lists.which[n])
    while left >= needed:
        first = packed[0] >> np.uint64(EXPRESSION_SHIFT)
        last = packed[needed - 1] >> np.uint64(EXPRESSION_SHIFT)
        is_found = first == last
        moved, worth = np.int64(0), 0.0
        while moved < left and packed[moved] >> np.uint64(EXPRESSION_SHIFT) <= last:
            worth += lists.bound[np.int64(packed[moved] & np.uint64(LIST))]
            moved += 1
        if enough >= 0.0 and worth * _ROUNDED < enough:
            state.totals[Total.PRUNED] += 1.0
            left = skip(posted, lists, moved, left, np.int64(last) + 1)
            continue
        if is_found:
            number = np.int64(first)
            is_satisfied = holds(state, number, moved, is_clausal)
            if is_satisfied and state.table.rows[number, Expression.FLAGS] & arrays.HAS_RESIDUAL:
                count = write_members(state, number, count, found)
                if count < 0:
                    return count
            elif is_satisfied:
                score = _score_clauses(state, number, moved) if is_clausal else _score(state, number)
                _offer(state, number, score, best, event)
                enough = _enough(state, best, event)
            last += np.uint64(1)
        moved = 0
        while moved < left and packed[moved] >> np.uint64(EXPRESSION_SHIFT) < last:
            moved += 1
        left = skip(posted, lists, moved, left, np.int64(last))
    return count


@helper
def _heaviest(state: State, size: int, needed: int) -> float:
    """Return the sum of the highest scores of a size's heaviest lists, as many as a conjunction must be in."""
    lists = state.lists
    kept, i = np.int64(0), lists.head[size]
    while i >= 0:
        bound, k = _bound(state, i), kept
        if kept < needed:
            kept += 1
        elif lists.bound[kept - 1] >= bound:
            i = lists.following[i]
            continue
        else:
            k = kept - 1
        while k > 0 and lists.bound[k - 1] < bound:
            lists.bound[k] = lists.bound[k - 1]
            k -= 1
        lists.bound[k] = bound
        i = lists.following[i]
    total = 0.0
    for k in range(kept):
        total += lists.bound[k]
    return total


@helper
def _score(state: State, number: int) -> float:
    """Return the score of a satisfied conjunction, adding up its predicates in the order they were written."""
    row, rows = state.table.rows[number], state.table.records.rows
    first, total, worth = np.int64(row[Expression.RECORD]), 0.0, 0.0
    pending, weight = False, 1.0
    for at in range(first, first + abs(row[Expression.LENGTH])):
        op = rows[at, 1] >> FIELD_BITS
        if op == WEIGHT_ROW:
            weight = np.int64(rows[at, 0]).view(np.float64)
        elif op != HIGH_ROW:
            total += weight * worth if pending else 0.0
            pending = op not in (Op.NE, Op.NOT_BETWEEN, Op.NOT_IN, Op.RESIDUAL, Op.MISSING)
            worth, weight = state.weight[(rows[at, 1] & FIELD_MASK) // FIELDS] if pending else 0.0, 1.0
    return total + (weight * worth if pending else 0.0)


@helper
def _score_clauses(state: State, number: int, entries: int) -> float:
    """Return the score of a satisfied clausal expression, to which the first `entries` cursors point."""
    lists, row, rows = state.lists, state.table.rows[number], state.directory.posted.headers.rows
    clauses = np.int64(row[Expression.CLAUSES])
    for clause in range(clauses):
        lists.score[clause] = 0.0
    for e in range(entries):
        i = lists.which[np.int64(lists.packed[e] & np.uint64(LIST))]
        word = rows[lists.row[i], 1]
        clause = clause_of(word)
        if word & arrays.SILENT or clause == arrays.NO_CLAUSE:
            continue
        attribute = _attribute(state, i)
        weight = 1.0
        if row[Expression.FLAGS] & arrays.WEIGHED:
            weight = _weight(state, number, attribute)
        lists.score[clause] = max(lists.score[clause], weight * state.weight[attribute])
    total = 0.0
    for clause in range(clauses):
        total += lists.score[clause]
    return total


@helper
def _weight(state: State, number: int, attribute: int) -> float:
    """Return the weight of an expression's predicates on an attribute, which all have the same."""
    row, rows = state.table.rows[number], state.table.records.rows
    first = np.int64(row[Expression.RECORD])
    matching = False
    for at in range(first, first + abs(row[Expression.LENGTH])):
        op = rows[at, 1] >> FIELD_BITS
        if op == WEIGHT_ROW:
            if matching:
                return np.int64(rows[at, 0]).view(np.float64)
        elif op not in (HIGH_ROW, CLAUSE_ROW):
            matching = op != Op.RESIDUAL and (rows[at, 1] & FIELD_MASK) // FIELDS == attribute
    return 1.0


@helper
def _offer(state: State, number: int, score: float, best: Best, event: int) -> None:
    """Enter the subscriptions of an expression into the top k, if their score is high enough."""
    store = state.store
    member = np.int64(state.table.rows[number, Expression.FIRST_MEMBER])
    while member >= 0:
        id_ = store.ids.keys[store.owner[member], 0]
        member = np.int64(store.rows[member, Member.NEXT])
        count = best.counts[event]
        at = np.int64(-1)
        for i in range(count):
            if best.ids[event, i] == id_:
                at = i
        if at >= 0:
            best.scores[event, at] = max(best.scores[event, at], score)
        elif count < best.ids.shape[1]:
            best.ids[event, count], best.scores[event, count] = id_, score
            best.counts[event] += 1
        else:
            at = _worst(best, event)
            worst = best.scores[event, at]
            if score > worst or (score == worst and id_ < best.ids[event, at]):
                best.ids[event, at], best.scores[event, at] = id_, score
