"""Which posting lists a form is to be in (Whang et al., 2.2 and 4.1).

An `in` is an entry under each of its values, and so are an equality, a value that is there, and a range of whole
numbers. A range that cannot be expanded into values is a key of its own. A negation is an entry that refuses the
form under each value it names, and one under the key that any value of its kind has: where the attribute is
absent, a negation does not hold. The paper's does; the option `absence` leaves the second entry out.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.matching.k_index._kernels.whole_numbers import is_whole, key_of_whole, whole_of
from tocsin.matching.k_index.state import (
    ABSENCE,
    CLAUSAL,
    CLAUSE_SHIFT,
    CLAUSES,
    DRAFTED,
    DUP_BITS,
    EXPANDED,
    EXPANDING,
    EXPANSION,
    FLAGS,
    FORM_FLAGS,
    FRACTIONAL,
    HIGHEST,
    KIND_BITS,
    LOOSE,
    LOW,
    MOST_CLAUSES,
    MOST_SIZE,
    NEEDED,
    NO_CLAUSE,
    NOTHING,
    PLACE,
    RUN,
    SILENT,
    SIZE,
    STAMP,
    VALUE,
    WORD,
    Directory,
    Draft,
    Expressions,
)
from tocsin.structures import hash_index
from tocsin.structures.jit import helper, kernel

_MASK: Final = (1 << FIELD_BITS) - 1
_NUMBER, _ANY = int(Field.NUMBER), int(Field.ANY)
_EQ, _NE, _LT, _LE, _GT, _GE = (int(op) for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE))
_BETWEEN, _NOT_BETWEEN, _IN, _NOT_IN = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Op.IN), int(Op.NOT_IN)
_PRESENT, _RESIDUAL, _MISSING = int(Op.PRESENT), int(Op.RESIDUAL), int(Op.MISSING)


@helper
def place_of(field: int, kind: int, dup: int) -> int:
    """Return the place of a key."""
    return (((field << KIND_BITS) | kind) << DUP_BITS) | dup


@kernel
def draft_forms(
    directory: Directory, into: Draft, rows: NDArray[np.int32], forms: Expressions, start: int
) -> int:
    """Write the entries of forms from `start` on behind what is drafted; return how many forms were done.

    Those whose number is negative are passed over. If there is no room, `tops[NEEDED]` entries are wanted.
    """
    for i in range(start, forms.numbers.shape[0]):
        if forms.numbers[i] >= 0 and not _draft(into, directory, rows, forms, i):
            return i
    return forms.numbers.shape[0]


@helper
def _draft(into: Draft, directory: Directory, rows: NDArray[np.int32], forms: Expressions, i: int) -> bool:
    """Write the entries of a form; return whether there was room.

    Its size is the number of clauses that an entry must be found for: those that no absent attribute satisfies.
    """
    tops = into.tops
    before = tops[DRAFTED]
    number = forms.numbers[i]
    first, last = forms.offsets[i], forms.offsets[i + 1]
    clausal = _is_clausal(forms, first, last)
    size, clauses = np.int64(0), np.int64(0)
    loose = False
    tops[STAMP] += 1
    for clause in range(first, last):
        begin, end = forms.bounds[clause], forms.bounds[clause + 1]
        if _has_residual(forms, begin, end):
            continue  # Python tells about the whole clause
        if clausal:
            tops[STAMP] += 1
        absent = np.int64(0)
        for q in range(begin, end):
            absent += _emit_predicate(directory, into, forms, q, clauses if clausal else np.int64(0), number)
        size += absent == 0
        loose |= absent > 0
        clauses += 1
    if size == 0:
        where = np.int64(NO_CLAUSE if clausal else 0) << CLAUSE_SHIFT
        emit(into, place_of(0, NOTHING, 0), (0, 0, 0), where | SILENT, 2 * number + 1, 0.0)
    if tops[DRAFTED] > into.rows.shape[0]:
        tops[NEEDED] = tops[DRAFTED] - before
        tops[DRAFTED] = before
        return False
    size_word = size | (CLAUSAL if clausal else 0)
    for e in range(before, tops[DRAFTED]):
        into.rows[e, SIZE] |= size_word
    rows[number, CLAUSES] = clauses if clausal else 0
    if clausal and loose:
        rows[number, FORM_FLAGS] |= LOOSE
    tops[MOST_SIZE] = max(tops[MOST_SIZE], size)
    tops[MOST_CLAUSES] = max(tops[MOST_CLAUSES], clauses)
    return True


@helper
def _is_clausal(forms: Expressions, first: int, last: int) -> bool:
    """Tell whether a form is kept in clauses: it has one of several predicates, or a list of several kinds.

    Text that reads as a timestamp may be two members of such a list, which only clauses count once.
    """
    found = forms.bounds[last] - forms.bounds[first] != last - first
    for q in range(forms.bounds[first], forms.bounds[last]):
        if forms.tags[q] >> FIELD_BITS == _IN:
            begin, end = forms.starts[forms.which[q]], forms.starts[forms.which[q] + 1]
            for m in range(begin + 1, end):
                found |= forms.fields[m] != forms.fields[begin]
    return found


@helper
def _has_residual(forms: Expressions, begin: int, end: int) -> bool:
    found = False
    for q in range(begin, end):
        found |= forms.tags[q] >> FIELD_BITS == _RESIDUAL
    return found


@helper
def _dup(into: Draft, field: int) -> int:
    """Return how many predicates of the form or clause at hand have spoken of an attribute already."""
    attribute = field // FIELDS
    if into.stamp[attribute] != into.tops[STAMP]:
        into.stamp[attribute] = into.tops[STAMP]
        into.spoken[attribute] = 0
    into.spoken[attribute] += 1
    return np.int64(into.spoken[attribute]) - 1


@helper
def emit(into: Draft, place: int, key: tuple[int, int, int], where: int, word: int, weight: float) -> None:
    """Write an entry, and whether its key is an expanded range; count it if there is no room."""
    e = into.tops[DRAFTED]
    if e < into.rows.shape[0]:
        row = into.rows[e]
        row[PLACE], row[LOW], row[HIGHEST], row[EXPANDING] = place, key[0], key[1], key[2]
        row[SIZE], row[WORD] = where, word
        into.weights[e] = weight
    into.tops[DRAFTED] += 1


@helper
def _emit_predicate(
    directory: Directory, into: Draft, forms: Expressions, q: int, clause: int, number: int
) -> int:
    """Write the entries of a predicate; return 1 if an absent attribute satisfies it, else 0."""
    op, field = forms.tags[q] >> FIELD_BITS, forms.tags[q] & _MASK
    low, high = forms.lows[q], forms.highs[q]
    where, dup = clause << CLAUSE_SHIFT, _dup(into, field)
    holds, refuses = 2 * number + 1, 2 * number
    weight = forms.weights[q] if forms.weights.shape[0] > 0 else 1.0
    absence = into.settings[ABSENCE] != 0 and op in (_NE, _NOT_IN, _NOT_BETWEEN)
    silent = where | SILENT
    if op in (_EQ, _PRESENT):
        emit(into, place_of(field, VALUE, dup), (low, 0, 0), where, holds, weight)
    elif op == _NE:
        emit(into, place_of(field, VALUE, dup), (low, 0, 0), silent, refuses, 0.0)
    elif op == _MISSING:
        emit(into, place_of(field, VALUE, dup), (0, 0, 0), silent, refuses, 0.0)
    elif op in (_IN, _NOT_IN):
        for m in range(forms.starts[forms.which[q]], forms.starts[forms.which[q] + 1]):
            place = place_of(forms.fields[m], VALUE, dup)
            if op == _IN:
                emit(into, place, (forms.keys[m], 0, 0), where, holds, weight)
            else:
                emit(into, place, (forms.keys[m], 0, 0), silent, refuses, 0.0)
    # One place where ranges are written: it is inlined, and large.
    ranges, kind, bound, to, word = np.int64(0), op, low, np.int64(0), holds
    if _LT <= op <= _GE:
        ranges = np.int64(1)
    elif op == _BETWEEN:
        ranges, to = np.int64(low <= high), high
    elif op == _NOT_BETWEEN and low <= high:
        ranges, kind = np.int64(2), np.int64(_LT)
        where, weight = silent, 0.0
        if absence:
            ranges, kind, to, word = np.int64(1), np.int64(_BETWEEN), high, refuses
    for turn in range(ranges):
        if turn == 1:
            kind, bound = np.int64(_GT), high
        _emit_range(directory, into, (field, kind, dup), (bound, to), where, word, weight)
    if (op in (_NE, _NOT_IN) or (op == _NOT_BETWEEN and low > high)) and not absence:
        emit(into, place_of(field, RUN, dup), (0, 0, 0), silent, holds, 0.0)
    return np.int64(absence or op == _MISSING)


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
    field, kind, dup = what
    place = place_of(field, kind, dup)
    expanded = _is_expanded(directory, field, kind, place, bounds, into.settings[EXPANSION])
    emit(into, place, (bounds[0], bounds[1], np.int64(expanded)), where, word, weight)
    if not expanded:
        return
    constant = whole_of(bounds[0])
    low, high = directory.fields.low[field], directory.fields.high[field]
    if kind == _BETWEEN:
        low, high = constant, whole_of(bounds[1])
    elif kind in (_LT, _LE):
        high = min(high, constant - (kind == _LT))
    else:
        low = max(low, constant + (kind == _GT))
    value = place_of(field, VALUE, dup)
    for number in range(low, high + 1):
        emit(into, value, (key_of_whole(number), 0, 0), where, word, weight)


@helper
def _is_expanded(
    directory: Directory, field: int, kind: int, place: int, bounds: tuple[int, int], widest: int
) -> bool:
    """Tell whether a range is posted under its values: as it was before, or as it is now decided."""
    if field % FIELDS != _NUMBER:
        return False
    entry = hash_index.find(directory.keys, place, bounds[0], bounds[1])
    if entry >= 0:
        return (directory.key_rows[entry, FLAGS] & EXPANDED) != 0
    if not is_whole(bounds[0]):
        return False
    if kind == _BETWEEN:
        if not is_whole(bounds[1]) or directory.fields.flags[field] & FRACTIONAL:
            return False
        return whole_of(bounds[1]) - whole_of(bounds[0]) < widest
    return directory.fields.flags[field] == 0 and directory.fields.low[field] <= directory.fields.high[field]
