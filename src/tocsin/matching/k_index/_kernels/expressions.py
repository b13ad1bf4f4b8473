"""Expressions, interned: one that several subscriptions have is stored once, with a chain of its members."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number
from tocsin.matching.conjunction_store._kernels.records import count_rows, is_cnf, write_rows
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions, StoreCounter
from tocsin.matching.k_index.state import HAS_RESIDUAL, WEIGHED, Expression, ExpressionTable, Member, TableTop
from tocsin.structures import blocks, free_lists, hash_index, linked_lists
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, kernel, wrapping_helper

_FREE, _TOP = int(TableTop.FREE_EXPRESSION), int(TableTop.EXPRESSIONS)
_FIRST_MEMBER: Final = int(Expression.FIRST_MEMBER)
_LARGEST: Final = 0x7FFFFFFFFFFFFFFF


@kernel
def intern(
    table: ExpressionTable, store: ConjunctionStore, ids: Int64s, batch: Expressions, members: Int64s
) -> None:
    """Give subscriptions their expressions, and write the members; there must be room.

    `batch.numbers` becomes the number of a new expression, or -1 if it was stored before.
    """
    for i in range(ids.shape[0]):
        length = count_rows(batch, i)
        is_residual = write_rows(table.scratch, np.int64(0), batch, i)
        digest = _hash_record(table.scratch, np.int64(0), length)
        number = _find(table, digest, length)
        batch.numbers[i] = -1
        if number < 0:
            number = _new_expression(table, digest, length)
            row = table.rows[number]
            begin, end = batch.bounds[batch.offsets[i]], batch.bounds[batch.offsets[i + 1]]
            row[Expression.LENGTH] = -length if is_cnf(batch, i) else length
            row[Expression.PREDICATES] = end - begin
            row[Expression.FLAGS] = (HAS_RESIDUAL if is_residual else 0) | _weighed(batch, begin, end)
            table.tops[TableTop.RESIDUAL_EXPRESSIONS] += is_residual
            batch.numbers[i] = number
        members[i] = _new_member(table, store, ids[i], number)


@helper
def _weighed(batch: Expressions, begin: int, end: int) -> int:
    """Return the flag WEIGHED if some predicate has a weight other than 1."""
    found = False
    if batch.weights.shape[0] > 0:
        for q in range(begin, end):
            found |= batch.weights[q] != 1.0
    return WEIGHED if found else 0


@wrapping_helper
def _hash_record(rows: Int64s, first: int, count: int) -> int:
    """Return a hash of a record's rows, without the sign bit, so that it can be a key."""
    mixed = np.uint64(count)
    for at in range(first, first + count):
        mixed = (mixed ^ np.uint64(rows[at, 0])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed = (mixed ^ np.uint64(rows[at, 1])) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(_LARGEST))


@helper
def _find(table: ExpressionTable, digest: int, length: int) -> int:
    """Return the expression whose record is in `scratch`, or -1."""
    entry = hash_index.find(table.digests, digest, 0, 0)
    number = table.digests.keys[entry, 1] if entry >= 0 else np.int64(-1)
    while number >= 0:
        row = table.rows[number]
        if abs(row[Expression.LENGTH]) == length:
            same, first = True, np.int64(row[Expression.RECORD])
            for at in range(length):
                same &= table.records.rows[first + at, 0] == table.scratch[at, 0]
                same &= table.records.rows[first + at, 1] == table.scratch[at, 1]
            if same:
                return number
        number = np.int64(row[Expression.TWIN])
    return np.int64(-1)


@helper
def _new_expression(table: ExpressionTable, digest: int, length: int) -> int:
    """Return the number of a new expression with the record in `scratch`."""
    number = free_lists.take(table.rows[:, Expression.RECORD], table.tops, _FREE, _TOP)
    table.tops[TableTop.LIVE_EXPRESSIONS] += 1
    row = table.rows[number]
    entry = hash_index.find(table.digests, digest, 0, 0)
    row[Expression.TWIN] = -1
    if entry < 0:
        entry = hash_index.insert(table.digests, digest, 0, 0)
    else:
        row[Expression.TWIN] = table.digests.keys[entry, 1]
    table.digests.keys[entry, 1] = number
    first = blocks.take(table.records, class_of(length))
    for at in range(length):
        table.records.rows[first + at, 0] = table.scratch[at, 0]
        table.records.rows[first + at, 1] = table.scratch[at, 1]
    row[Expression.RECORD], row[Expression.FIRST_MEMBER], row[Expression.CLAUSES] = first, -1, 0
    return number


@helper
def _new_member(table: ExpressionTable, store: ConjunctionStore, id_: int, number: int) -> int:
    member = add_number(store, id_)
    store.rows[member, Member.EXPRESSION] = number
    nexts, previous = store.rows[:, Member.NEXT], store.rows[:, Member.PREVIOUS]
    linked_lists.push(nexts, previous, table.rows[number], _FIRST_MEMBER, member)
    store.counters[StoreCounter.PREDICATES] += table.rows[number, Expression.PREDICATES]
    return member


@kernel
def drop_members(table: ExpressionTable, store: ConjunctionStore, members: Int64s, gone: Int64s) -> int:
    """Free members; write the expressions that have none any more into `gone`, and return how many.

    The caller withdraws these, and then frees them with `free_expressions`.
    """
    count, nexts, previous = np.int64(0), store.rows[:, Member.NEXT], store.rows[:, Member.PREVIOUS]
    for i in range(members.shape[0]):
        number = store.rows[members[i], Member.EXPRESSION]
        row = table.rows[number]
        linked_lists.unlink(nexts, previous, row, _FIRST_MEMBER, members[i])
        if row[Expression.FIRST_MEMBER] < 0:
            gone[count] = number
            count += 1
        free_number(store, members[i])
        store.counters[StoreCounter.PREDICATES] -= row[Expression.PREDICATES]
    return count


@kernel
def free_expressions(table: ExpressionTable, numbers: Int64s) -> None:
    """Free expressions that have no members, and their records."""
    for i in range(numbers.shape[0]):
        number = numbers[i]
        row = table.rows[number]
        first, length = np.int64(row[Expression.RECORD]), abs(np.int64(row[Expression.LENGTH]))
        entry = hash_index.find(table.digests, _hash_record(table.records.rows, first, length), 0, 0)
        if table.digests.keys[entry, 1] == number:
            table.digests.keys[entry, 1] = row[Expression.TWIN]
            if row[Expression.TWIN] < 0:
                hash_index.remove(table.digests, entry)
        else:
            before = table.digests.keys[entry, 1]
            while table.rows[before, Expression.TWIN] != number:
                before = np.int64(table.rows[before, Expression.TWIN])
            table.rows[before, Expression.TWIN] = row[Expression.TWIN]
        blocks.give(table.records, first, class_of(length))
        table.tops[TableTop.LIVE_EXPRESSIONS] -= 1
        table.tops[TableTop.RESIDUAL_EXPRESSIONS] -= row[Expression.FLAGS] & HAS_RESIDUAL
        free_lists.give(table.rows[:, Expression.RECORD], table.tops, _FREE, number)
