"""The best of the forms that an event satisfies, without looking at all (Whang et al., 5).

No entry of a list weighs more than the list's limit. What the lists up to a form can be worth all together is below
the worst of the best so far: then that form is passed over, and so is a whole size if its heaviest lists are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.k_index._kernels.cursors import FORM_SHIFT, LIST, open_lists, skip
from tocsin.matching.k_index._kernels.directory import field_of_place
from tocsin.matching.k_index._kernels.event_keys import unfold
from tocsin.matching.k_index._kernels.matching import clause_of, is_satisfied, tell
from tocsin.matching.k_index.state import (
    ASKED,
    ASKED_FORMS,
    CLAUSE,
    CLAUSES,
    FIRST_MEMBER,
    FORM_FLAGS,
    HIGH,
    MOST_SIZE,
    NEXT_MEMBER,
    NO_CLAUSE,
    PRUNED,
    RECORDS,
    SEEN,
    SILENT,
    STORE,
    WEIGHED,
    WEIGHT_RECORD,
    State,
)
from tocsin.structures.jit import helper, kernel

_MASK: Final = (1 << FIELD_BITS) - 1
_WORD_SHIFT: Final = 32
_NE, _NOT_BETWEEN, _NOT_IN = int(Op.NE), int(Op.NOT_BETWEEN), int(Op.NOT_IN)
_RESIDUAL, _MISSING = int(Op.RESIDUAL), int(Op.MISSING)
_ROUNDED: Final = 1.0 + 1e-9  # a sum may be smaller than another of the same numbers in another order


class Given(NamedTuple):
    """The weights of event i's attributes are those from `offsets[i]` to `offsets[i + 1]`."""

    offsets: NDArray[np.int64]
    attributes: NDArray[np.int64]
    weights: NDArray[np.float64]


class Best(NamedTuple):
    """The best of event i, in any order, are the first `counts[i]` of row i."""

    ids: NDArray[np.int64]  # [events, top]
    scores: NDArray[np.float64]  # [events, top]
    counts: NDArray[np.int64]  # [events]


@kernel
def rank(
    state: State,
    events: EncodedEvents,
    start: int,
    given: Given,
    best: Best,
    unsure: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> tuple[int, bool]:
    """Write the best of each event from `start` on; return as `match` does.

    Members of which Python has the last word are not ranked: they are all in `unsure`, as `match` writes them.
    """
    found, offsets = unsure
    for event in range(start, events.offsets.shape[0] - 1):
        count = offsets[event]
        best.counts[event] = 0
        if unfold(state.directory, state.draft, state.lists, events, event) < 0:
            return event, True
        for j in range(given.offsets[event], given.offsets[event + 1]):
            state.weight[given.attributes[j]] = given.weights[j]
        for k in range(state.draft.tops[MOST_SIZE], -1, -1):
            for clausal in range(2):
                size = 2 * k + clausal
                if count >= 0 and state.lists.counts[size] >= max(k, np.int64(1)):
                    count = _rank_size(state, size, best, event, count, found)
        for j in range(given.offsets[event], given.offsets[event + 1]):
            state.weight[given.attributes[j]] = 1.0
        if count < 0:
            return event, False
        offsets[event + 1] = count
        state.totals[SEEN] += 1.0
    return events.offsets.shape[0] - 1, False


@helper
def _bound(state: State, i: int) -> float:
    """Return the most that an entry of a list can be worth; `i` is its place in `lists.row`."""
    posted, lists = state.directory.posted, state.lists
    row = lists.row[i]
    if posted.headers.rows[row, 1] & SILENT:
        return 0.0
    limit = posted.limits[row] if posted.limits.shape[0] > 0 else 1.0
    return limit * state.weight[_attribute(state, i)]


@helper
def _attribute(state: State, i: int) -> int:
    entry = state.lists.key[state.lists.source[i]]
    return field_of_place(state.directory.keys.keys[entry, 0]) // FIELDS


@helper
def _worst(best: Best, event: int) -> int:
    """Return the place of the worst of those that are the best so far."""
    worst = np.int64(0)
    for i in range(1, best.counts[event]):
        score, lowest = best.scores[event, i], best.scores[event, worst]
        if score < lowest or (score == lowest and best.ids[event, i] > best.ids[event, worst]):
            worst = i
    return worst


@helper
def _enough(state: State, best: Best, event: int) -> float:
    """Return the score below which nothing matters any more; below zero if everything does."""
    if best.counts[event] < best.ids.shape[1] or state.book.tops[ASKED_FORMS] > 0:
        return -1.0
    return best.scores[event, _worst(best, event)]


@helper
def _rank_size(state: State, size: int, best: Best, event: int, count: int, found: NDArray[np.int64]) -> int:
    """Rank the forms of a size; return the new number of members found that are unsure, or -1 if there is no room."""
    lists, posted, packed = state.lists, state.directory.posted, state.lists.packed
    clausal, needed = size & 1 != 0, max(size >> 1, np.int64(1))
    enough = _enough(state, best, event)
    if not clausal and enough >= 0.0 and _heaviest(state, size, needed) * _ROUNDED < enough:
        state.totals[PRUNED] += 1.0
        return count
    left = open_lists(posted, lists, size)
    for n in range(left):
        lists.bound[n] = _bound(state, lists.which[n])
    while left >= needed:
        first = packed[0] >> np.uint64(FORM_SHIFT)
        last = packed[needed - 1] >> np.uint64(FORM_SHIFT)
        is_found = first == last
        moved, worth = np.int64(0), 0.0
        while moved < left and packed[moved] >> np.uint64(FORM_SHIFT) <= last:
            worth += lists.bound[np.int64(packed[moved] & np.uint64(LIST))]
            moved += 1
        if enough >= 0.0 and worth * _ROUNDED < enough:
            state.totals[PRUNED] += 1.0
            left = skip(posted, lists, moved, left, np.int64(last) + 1)
            continue
        if is_found:
            number = np.int64(first)
            if clausal:
                holds = is_satisfied(state, number, moved)
            else:
                holds = (packed[0] >> np.uint64(_WORD_SHIFT)) & np.uint64(1) != 0
            if holds and state.book.forms[number, FORM_FLAGS] & ASKED:
                count = tell(state, number, count, found)
                if count < 0:
                    return count
            elif holds:
                score = _score_clauses(state, number, moved) if clausal else _score(state, number)
                _offer(state, number, score, best, event)
                enough = _enough(state, best, event)
            last += np.uint64(1)
        moved = 0
        while moved < left and packed[moved] >> np.uint64(FORM_SHIFT) < last:
            moved += 1
        left = skip(posted, lists, moved, left, np.int64(last))
    return count


@helper
def _heaviest(state: State, size: int, needed: int) -> float:
    """Return what the heaviest lists of a size are worth, as many as a conjunction must be in."""
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
    """Return what a conjunction that is satisfied is worth: its predicates are added up as they were written."""
    form, rows = state.book.forms[number], state.book.store.rows
    first, total, worth = np.int64(form[STORE]), 0.0, 0.0
    pending, weight = False, 1.0
    for at in range(first, first + form[RECORDS]):
        op = rows[at, 1] >> FIELD_BITS
        if op == WEIGHT_RECORD:
            weight = np.int64(rows[at, 0]).view(np.float64)
        elif op != HIGH:
            total += weight * worth if pending else 0.0
            pending = op not in (_NE, _NOT_BETWEEN, _NOT_IN, _RESIDUAL, _MISSING, CLAUSE)
            worth, weight = state.weight[(rows[at, 1] & _MASK) // FIELDS] if pending else 0.0, 1.0
    return total + (weight * worth if pending else 0.0)


@helper
def _score_clauses(state: State, number: int, entries: int) -> float:
    """Return what a clause form that is satisfied is worth, of which the first cursors stand at so many entries."""
    lists, form, rows = state.lists, state.book.forms[number], state.directory.posted.headers.rows
    clauses = np.int64(form[CLAUSES])
    for clause in range(clauses):
        lists.score[clause] = 0.0
    for e in range(entries):
        i = lists.which[np.int64(lists.packed[e] & np.uint64(LIST))]
        word = rows[lists.row[i], 1]
        clause = clause_of(word)
        if word & SILENT or clause == NO_CLAUSE:
            continue
        attribute = _attribute(state, i)
        weight = 1.0
        if form[FORM_FLAGS] & WEIGHED:
            weight = _weight(state, number, attribute)
        lists.score[clause] = max(lists.score[clause], weight * state.weight[attribute])
    total = 0.0
    for clause in range(clauses):
        total += lists.score[clause]
    return total


@helper
def _weight(state: State, number: int, attribute: int) -> float:
    """Return the weight that a form's predicates on an attribute have: they all have the same."""
    form, rows = state.book.forms[number], state.book.store.rows
    first = np.int64(form[STORE])
    matching = False
    for at in range(first, first + form[RECORDS]):
        op = rows[at, 1] >> FIELD_BITS
        if op == WEIGHT_RECORD:
            if matching:
                return np.int64(rows[at, 0]).view(np.float64)
        elif op not in (HIGH, CLAUSE):
            matching = op != _RESIDUAL and (rows[at, 1] & _MASK) // FIELDS == attribute
    return 1.0


@helper
def _offer(state: State, number: int, score: float, best: Best, event: int) -> None:
    """Let the subscriptions that have a form be among the best, if they are."""
    book = state.book
    member = np.int64(book.forms[number, FIRST_MEMBER])
    while member >= 0:
        id_ = book.ids.keys[book.owner[member], 0]
        member = np.int64(book.members[member, NEXT_MEMBER])
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
