"""The posting entries of an expression (Whang et al., §2.2 and §4.1).

A predicate has an entry under each of its values: of an equality, of a list, of presence, of a range of whole numbers. A
range that cannot be expanded into values has a key of its own. A negation has an entry that refuses the expression under
each value it names, and one under the key that any value of its kind has. In the paper, a negation over an absent
attribute holds; the option `absence` leaves the second entry out.
"""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.number_keys import is_whole, key_of_number, whole_of
from tocsin.matching._kernels.predicates import has_residual, is_mixed
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.packing import slot_of
from tocsin.matching.k_index.state import Directory, Draft, DraftTop, Entry, Expression, KeyRow, Setting
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int32s
from tocsin.structures.jit import helper, kernel


@kernel
def draft_expressions(directory: Directory, into: Draft, rows: Int32s, batch: Expressions, start: int) -> int:
    """Append the entries of expressions from `start` on to the draft; return the number of expressions done.

    Expressions with a negative number are skipped. If an expression does not fit, it has `tops[DraftTop.NEEDED]` entries.
    """
    for i in range(start, batch.numbers.shape[0]):
        if batch.numbers[i] >= 0 and not _draft(into, directory, rows, batch, i):
            return i
    return batch.numbers.shape[0]


@helper
def _draft(into: Draft, directory: Directory, rows: Int32s, batch: Expressions, i: int) -> bool:
    """Draft the entries of an expression; return whether they fit.

    Its size K is the number of clauses that no absent attribute satisfies, each of which needs an entry.
    """
    tops = into.tops
    before = tops[DraftTop.DRAFTED]
    number = batch.numbers[i]
    first, last = batch.offsets[i], batch.offsets[i + 1]
    clausal = _is_clausal(batch, first, last)
    size, clauses = np.int64(0), np.int64(0)
    loose = False
    tops[DraftTop.STAMP] += 1
    for clause in range(first, last):
        begin, end = batch.bounds[clause], batch.bounds[clause + 1]
        if has_residual(batch, begin, end):
            continue  # the whole clause is evaluated in Python
        if clausal:
            tops[DraftTop.STAMP] += 1
        absent = np.int64(0)
        for q in range(begin, end):
            absent += _emit_predicate(directory, into, batch, q, clauses if clausal else np.int64(0), number)
        size += absent == 0
        loose |= absent > 0
        clauses += 1
    if size == 0:
        where = np.int64(arrays.NO_CLAUSE if clausal else 0) << arrays.CLAUSE_SHIFT
        emit(into, slot_of(0, arrays.ALWAYS, 0), (0, 0, 0), where | arrays.SILENT, 2 * number + 1, 0.0)
    if tops[DraftTop.DRAFTED] > into.rows.shape[0]:
        tops[DraftTop.NEEDED] = tops[DraftTop.DRAFTED] - before
        tops[DraftTop.DRAFTED] = before
        return False
    size_word = size | (arrays.CLAUSAL if clausal else 0)
    for e in range(before, tops[DraftTop.DRAFTED]):
        into.rows[e, Entry.SIZE] |= size_word
    rows[number, Expression.CLAUSES] = clauses if clausal else 0
    if clausal and loose:
        rows[number, Expression.FLAGS] |= arrays.LOOSE
    tops[DraftTop.MOST_SIZE] = max(tops[DraftTop.MOST_SIZE], size)
    tops[DraftTop.MOST_CLAUSES] = max(tops[DraftTop.MOST_CLAUSES], clauses)
    return True


@helper
def _is_clausal(batch: Expressions, first: int, last: int) -> bool:
    """Tell whether an expression is posted by clause: one has several predicates, or a list has several kinds.

    Text that reads as a timestamp may be two members of such a list, which only clauses count once.
    """
    found = batch.bounds[last] - batch.bounds[first] != last - first
    for q in range(batch.bounds[first], batch.bounds[last]):
        found |= is_mixed(batch, q)
    return found


@helper
def _occurrence(into: Draft, field: int) -> int:
    """Return how many earlier predicates of the current expression or clause are on the same attribute."""
    attribute = field // FIELDS
    if into.stamp[attribute] != into.tops[DraftTop.STAMP]:
        into.stamp[attribute] = into.tops[DraftTop.STAMP]
        into.spoken[attribute] = 0
    into.spoken[attribute] += 1
    return np.int64(into.spoken[attribute]) - 1


@helper
def emit(into: Draft, slot: int, key: tuple[int, int, int], where: int, word: int, weight: float) -> None:
    """Write an entry, and whether its key is an expanded range; count it if there is no room."""
    e = into.tops[DraftTop.DRAFTED]
    if e < into.rows.shape[0]:
        row = into.rows[e]
        row[Entry.SLOT], row[Entry.LOW], row[Entry.HIGH], row[Entry.EXPANDING] = slot, key[0], key[1], key[2]
        row[Entry.SIZE], row[Entry.WORD] = where, word
        into.weights[e] = weight
    into.tops[DraftTop.DRAFTED] += 1


@helper
def _emit_predicate(
    directory: Directory, into: Draft, batch: Expressions, q: int, clause: int, number: int
) -> int:
    """Write the entries of a predicate; return 1 if an absent attribute satisfies it, else 0."""
    op, field = batch.tags[q] >> FIELD_BITS, batch.tags[q] & FIELD_MASK
    low, high = batch.lows[q], batch.highs[q]
    where, nth = clause << arrays.CLAUSE_SHIFT, _occurrence(into, field)
    holds, refuses = 2 * number + 1, 2 * number
    weight = batch.weights[q] if batch.weights.shape[0] > 0 else 1.0
    absence = into.settings[Setting.ABSENCE] != 0 and op in (Op.NE, Op.NOT_IN, Op.NOT_BETWEEN)
    silent = where | arrays.SILENT
    if op in (Op.EQ, Op.PRESENT):
        emit(into, slot_of(field, arrays.VALUE, nth), (low, 0, 0), where, holds, weight)
    elif op == Op.NE:
        emit(into, slot_of(field, arrays.VALUE, nth), (low, 0, 0), silent, refuses, 0.0)
    elif op == Op.MISSING:
        emit(into, slot_of(field, arrays.VALUE, nth), (0, 0, 0), silent, refuses, 0.0)
    elif op in (Op.IN, Op.NOT_IN):
        for m in range(batch.starts[batch.which[q]], batch.starts[batch.which[q] + 1]):
            slot = slot_of(batch.fields[m], arrays.VALUE, nth)
            if op == Op.IN:
                emit(into, slot, (batch.keys[m], 0, 0), where, holds, weight)
            else:
                emit(into, slot, (batch.keys[m], 0, 0), silent, refuses, 0.0)
    # One call of `_emit_range`, since it is inlined and large.
    ranges, kind, bound, to, word = np.int64(0), op, low, np.int64(0), holds
    if Op.LT <= op <= Op.GE:
        ranges = np.int64(1)
    elif op == Op.BETWEEN:
        ranges, to = np.int64(low <= high), high
    elif op == Op.NOT_BETWEEN and low <= high:
        ranges, kind = np.int64(2), np.int64(Op.LT)
        where, weight = silent, 0.0
        if absence:
            ranges, kind, to, word = np.int64(1), np.int64(Op.BETWEEN), high, refuses
    for turn in range(ranges):
        if turn == 1:
            kind, bound = np.int64(Op.GT), high
        _emit_range(directory, into, (field, kind, nth), (bound, to), where, word, weight)
    if (op in (Op.NE, Op.NOT_IN) or (op == Op.NOT_BETWEEN and low > high)) and not absence:
        emit(into, slot_of(field, arrays.ANY_VALUE, nth), (0, 0, 0), silent, holds, 0.0)
    return np.int64(absence or op == Op.MISSING)


@helper
def _emit_range(
    directory: Directory,
    into: Draft,
    what: tuple[int, int, int],
    bounds: tuple[int, int],
    where: int,
    word: int,
    weight: float,
) -> None:
    """Write the entry of a range under its own key, and those under its values if it is expanded."""
    field, kind, nth = what
    slot = slot_of(field, kind, nth)
    expanded = _is_expanded(directory, field, kind, slot, bounds, into.settings[Setting.EXPANSION])
    emit(into, slot, (bounds[0], bounds[1], np.int64(expanded)), where, word, weight)
    if not expanded:
        return
    constant = whole_of(bounds[0])
    low, high = directory.fields.low[field], directory.fields.high[field]
    if kind == Op.BETWEEN:
        low, high = constant, whole_of(bounds[1])
    elif kind in (Op.LT, Op.LE):
        high = min(high, constant - (kind == Op.LT))
    else:
        low = max(low, constant + (kind == Op.GT))
    value = slot_of(field, arrays.VALUE, nth)
    for number in range(low, high + 1):
        emit(into, value, (key_of_number(number), 0, 0), where, word, weight)


@helper
def _is_expanded(
    directory: Directory, field: int, kind: int, slot: int, bounds: tuple[int, int], widest: int
) -> bool:
    """Tell whether a range is posted under its values: as its key says, or for a new key, as the domain allows."""
    if field % FIELDS != Field.NUMBER:
        return False
    entry = hash_index.find(directory.keys, slot, bounds[0], bounds[1])
    if entry >= 0:
        return (directory.key_rows[entry, KeyRow.FLAGS] & arrays.EXPANDED) != 0
    if not is_whole(bounds[0]):
        return False
    if kind == Op.BETWEEN:
        if not is_whole(bounds[1]) or directory.fields.flags[field] & arrays.FRACTIONAL:
            return False
        return whole_of(bounds[1]) - whole_of(bounds[0]) < widest
    return directory.fields.flags[field] == 0 and directory.fields.low[field] <= directory.fields.high[field]
