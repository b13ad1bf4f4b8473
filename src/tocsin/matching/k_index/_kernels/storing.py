"""What forms say, and whose they are: a form that several subscriptions have is kept once."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import enter, free_number, new_number
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.matching.k_index.state import (
    ASKED,
    ASKED_FORMS,
    CLAUSE,
    CLAUSES,
    FIRST_MEMBER,
    FORM,
    FORM_FLAGS,
    FREE_FORM,
    FREE_MEMBER,
    HIGH,
    IN_CLAUSES,
    LIVE_FORMS,
    LIVE_MEMBERS,
    NEXT_MEMBER,
    PREDICATE_COUNT,
    PREDICATES,
    PREVIOUS_MEMBER,
    RECORDS,
    STORE,
    TOP_FORM,
    TOP_MEMBER,
    TWIN,
    WEIGHED,
    WEIGHT_RECORD,
    Book,
    Expressions,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel, wrapping_helper

_BETWEEN, _NOT_BETWEEN, _RESIDUAL = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Op.RESIDUAL)
_DIGEST: Final = 0x7FFFFFFFFFFFFFFF


@kernel
def store(book: Book, ids: NDArray[np.int64], forms: Expressions, members: NDArray[np.int64]) -> None:
    """Give subscriptions their forms, and write the members; there must be room.

    `forms.numbers` becomes the number of a form that is new, or -1 if it was there before.
    """
    for i in range(ids.shape[0]):
        count, flags = _write_records(book, forms, i)
        digest = _digest(book, count)
        number = _twin(book, digest, count)
        forms.numbers[i] = -1
        if number < 0:
            number = _new_form(book, digest, count, flags)
            clauses = forms.bounds[forms.offsets[i] : forms.offsets[i + 1] + 1]
            book.forms[number, PREDICATE_COUNT] = clauses[-1] - clauses[0]
            forms.numbers[i] = number
        members[i] = _new_member(book, ids[i], number)


@helper
def _write_records(book: Book, forms: Expressions, i: int) -> tuple[int, int]:
    """Write what a form says into `records`; return how many there are, and the form's flags."""
    rows = book.records
    first, last = forms.offsets[i], forms.offsets[i + 1]
    in_clauses = forms.bounds[last] - forms.bounds[first] != last - first
    flags = np.int64(IN_CLAUSES if in_clauses else 0)
    at = np.int64(0)
    for clause in range(first, last):
        begin, end = forms.bounds[clause], forms.bounds[clause + 1]
        if in_clauses:
            rows[at, 0] = end - begin
            rows[at, 1] = np.int64(CLAUSE) << FIELD_BITS
            at += 1
        for q in range(begin, end):
            op = forms.tags[q] >> FIELD_BITS
            rows[at, 0] = forms.lows[q]
            rows[at, 1] = forms.tags[q]
            at += 1
            if op in (_BETWEEN, _NOT_BETWEEN):
                rows[at, 0] = forms.highs[q]
                rows[at, 1] = np.int64(HIGH) << FIELD_BITS
                at += 1
            if op == _RESIDUAL:
                flags |= ASKED
            if forms.weights.shape[0] > 0 and forms.weights[q] != 1.0:
                rows[at, 0] = np.float64(forms.weights[q]).view(np.int64)
                rows[at, 1] = np.int64(WEIGHT_RECORD) << FIELD_BITS
                at += 1
                flags |= WEIGHED
    return at, flags


@wrapping_helper
def _digest(book: Book, count: int) -> int:
    mixed = np.uint64(count)
    for at in range(count):
        mixed = (mixed ^ np.uint64(book.records[at, 0])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed = (mixed ^ np.uint64(book.records[at, 1])) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(_DIGEST))


@helper
def _twin(book: Book, digest: int, count: int) -> int:
    """Return the form that says just what `records` say, or -1."""
    entry = hash_index.find(book.digests, digest, 0, 0)
    if entry < 0:
        return np.int64(-1)
    number = book.digests.keys[entry, 1]
    while number >= 0:
        form = book.forms[number]
        if form[RECORDS] == count:
            same, first = True, np.int64(form[STORE])
            for at in range(count):
                same &= book.store.rows[first + at, 0] == book.records[at, 0]
                same &= book.store.rows[first + at, 1] == book.records[at, 1]
            if same:
                return number
        number = np.int64(form[TWIN])
    return np.int64(-1)


@helper
def _new_form(book: Book, digest: int, count: int, flags: int) -> int:
    number = book.tops[FREE_FORM]
    if number >= 0:
        book.tops[FREE_FORM] = book.forms[number, STORE]
    else:
        number = book.tops[TOP_FORM]
        book.tops[TOP_FORM] += 1
    book.tops[LIVE_FORMS] += 1
    form = book.forms[number]
    entry = hash_index.find(book.digests, digest, 0, 0)
    form[TWIN] = -1
    if entry < 0:
        entry = hash_index.insert(book.digests, digest, 0, 0)
    else:
        form[TWIN] = book.digests.keys[entry, 1]
    book.digests.keys[entry, 1] = number
    first = blocks.take(book.store, class_of(count))
    for at in range(count):
        book.store.rows[first + at, 0] = book.records[at, 0]
        book.store.rows[first + at, 1] = book.records[at, 1]
    form[STORE], form[RECORDS], form[FIRST_MEMBER], form[CLAUSES] = first, count, -1, 0
    form[FORM_FLAGS] = flags
    book.tops[ASKED_FORMS] += flags & ASKED
    return number


@helper
def _new_member(book: Book, id_: int, number: int) -> int:
    member = new_number(book.members, book.tops, FREE_MEMBER, TOP_MEMBER)
    enter(book.ids, book.first, book.members, book.owner, id_, member)
    row, following = book.members[member], book.forms[number, FIRST_MEMBER]
    row[FORM], row[NEXT_MEMBER], row[PREVIOUS_MEMBER] = number, following, -1
    if following >= 0:
        book.members[following, PREVIOUS_MEMBER] = member
    book.forms[number, FIRST_MEMBER] = member
    book.tops[LIVE_MEMBERS] += 1
    book.tops[PREDICATES] += book.forms[number, PREDICATE_COUNT]
    return member


@kernel
def drop_members(book: Book, members: NDArray[np.int64], gone: NDArray[np.int64]) -> int:
    """Give up members; write the forms that nobody has any more into `gone`, and return how many.

    Those are to be taken out of their lists, and then given up with `free_expressions`.
    """
    count = np.int64(0)
    for i in range(members.shape[0]):
        member = members[i]
        row = book.members[member]
        number, following, previous = row[FORM], row[NEXT_MEMBER], row[PREVIOUS_MEMBER]
        if following >= 0:
            book.members[following, PREVIOUS_MEMBER] = previous
        if previous >= 0:
            book.members[previous, NEXT_MEMBER] = following
        else:
            book.forms[number, FIRST_MEMBER] = following
            if following < 0:
                gone[count] = number
                count += 1
        free_number(book.members, book.tops, FREE_MEMBER, member)
        book.owner[member] = -1
        book.tops[LIVE_MEMBERS] -= 1
        book.tops[PREDICATES] -= book.forms[number, PREDICATE_COUNT]
    return count


@kernel
def free_expressions(book: Book, numbers: NDArray[np.int64]) -> None:
    """Give up forms that nobody has any more, and what was kept of them."""
    for i in range(numbers.shape[0]):
        number = numbers[i]
        form = book.forms[number]
        first, count = np.int64(form[STORE]), np.int64(form[RECORDS])
        for at in range(count):
            book.records[at, 0] = book.store.rows[first + at, 0]
            book.records[at, 1] = book.store.rows[first + at, 1]
        entry = hash_index.find(book.digests, _digest(book, count), 0, 0)
        if book.digests.keys[entry, 1] == number:
            book.digests.keys[entry, 1] = form[TWIN]
            if form[TWIN] < 0:
                hash_index.remove(book.digests, entry)
        else:
            before = book.digests.keys[entry, 1]
            while book.forms[before, TWIN] != number:
                before = np.int64(book.forms[before, TWIN])
            book.forms[before, TWIN] = form[TWIN]
        blocks.give(book.store, first, class_of(count))
        form[STORE] = book.tops[FREE_FORM]
        form[RECORDS] = -1
        book.tops[FREE_FORM] = number
        book.tops[LIVE_FORMS] -= 1
        book.tops[ASKED_FORMS] -= form[FORM_FLAGS] & ASKED


@kernel
def recall(book: Book, numbers: NDArray[np.int64], begin: int, forms: Expressions) -> int:
    """Write what forms from `begin` on say, as many as there is room for in `forms`; return where it stopped."""
    forms.offsets[0] = 0
    forms.bounds[0] = 0
    clauses, predicates = np.int64(0), np.int64(0)
    for i in range(begin, numbers.shape[0]):
        form = book.forms[numbers[i]]
        count, at = np.int64(form[RECORDS]), np.int64(form[STORE])
        if i - begin == forms.numbers.shape[0] or predicates + count > forms.tags.shape[0]:
            return i
        if clauses + count >= forms.bounds.shape[0]:
            return i
        forms.numbers[i - begin] = numbers[i]
        left = np.int64(1)
        for record in range(at, at + count):
            key, tag = book.store.rows[record, 0], book.store.rows[record, 1]
            op = tag >> FIELD_BITS
            if op == HIGH:
                forms.highs[predicates - 1] = key
            elif op == WEIGHT_RECORD:
                forms.weights[predicates - 1] = np.int64(key).view(np.float64)
            elif op == CLAUSE:
                left = key
            else:
                forms.tags[predicates] = tag
                forms.lows[predicates] = key
                forms.highs[predicates] = key
                forms.weights[predicates] = 1.0
                predicates += 1
                left -= 1
                if left == 0 or not form[FORM_FLAGS] & IN_CLAUSES:
                    clauses += 1
                    forms.bounds[clauses] = predicates
        forms.offsets[i - begin + 1] = clauses
    return numbers.shape[0]
