"""Records of what expressions say, from which they are recalled.

A record is a heading, the expression's number and how many rows follow, and a row for each predicate: its low constant
and its tag. The number has NEEDS_RESIDUAL added where Python decides some predicate; the count is negative for a CNF.
"""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.conjunction_store import state as arrays
from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number
from tocsin.matching.conjunction_store.state import ConjunctionStore, Expressions, StoreColumn, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.structures import blocks
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import Blocks, class_of
from tocsin.structures.jit import helper, kernel


@helper
def is_cnf(expressions: Expressions, i: int) -> bool:
    """Tell whether an expression has a clause of other than one predicate."""
    first, last = expressions.offsets[i], expressions.offsets[i + 1]
    return expressions.bounds[last] - expressions.bounds[first] != last - first


@helper
def count_rows(expressions: Expressions, i: int) -> int:
    """Return how many rows an expression takes, without the heading."""
    first, last = expressions.offsets[i], expressions.offsets[i + 1]
    begin, end = expressions.bounds[first], expressions.bounds[last]
    count = end - begin
    if count != last - first:
        count += last - first
    for q in range(begin, end):
        op = expressions.tags[q] >> FIELD_BITS
        count += op in (Op.BETWEEN, Op.NOT_BETWEEN)
        count += expressions.weights.shape[0] > 0 and expressions.weights[q] != 1.0
    return count


@helper
def write_rows(rows: Int64s, at: int, expressions: Expressions, i: int) -> bool:
    """Write the rows of an expression from `at` on; return whether it has residual predicates."""
    in_clauses, is_residual = is_cnf(expressions, i), False
    for clause in range(expressions.offsets[i], expressions.offsets[i + 1]):
        begin, end = expressions.bounds[clause], expressions.bounds[clause + 1]
        if in_clauses:
            rows[at, 0], rows[at, 1] = end - begin, np.int64(arrays.CLAUSE_ROW) << FIELD_BITS
            at += 1
        for q in range(begin, end):
            op = expressions.tags[q] >> FIELD_BITS
            rows[at, 0], rows[at, 1] = expressions.lows[q], expressions.tags[q]
            at += 1
            if op in (Op.BETWEEN, Op.NOT_BETWEEN):
                rows[at, 0], rows[at, 1] = expressions.highs[q], np.int64(arrays.HIGH_ROW) << FIELD_BITS
                at += 1
            if expressions.weights.shape[0] > 0 and expressions.weights[q] != 1.0:
                rows[at, 0] = np.float64(expressions.weights[q]).view(np.int64)
                rows[at, 1] = np.int64(arrays.WEIGHT_ROW) << FIELD_BITS
                at += 1
            is_residual |= op == Op.RESIDUAL
    return is_residual


@helper
def _read_rows(
    rows: Int64s, at: int, count: int, into: Expressions, clauses: int, predicates: int
) -> tuple[int, int]:
    """Append an expression of which `count` rows begin at `at`, a negative number for a CNF, to what was read.

    Return how many clauses and predicates there are then.
    """
    left = np.int64(1)
    for row in range(at, at + abs(count)):
        key, tag = rows[row, 0], rows[row, 1]
        op = tag >> FIELD_BITS
        if op == arrays.HIGH_ROW:
            into.highs[predicates - 1] = key
        elif op == arrays.WEIGHT_ROW:
            if into.weights.shape[0] > 0:
                into.weights[predicates - 1] = np.int64(key).view(np.float64)
        elif op == arrays.CLAUSE_ROW:
            left = key
        else:
            into.tags[predicates], into.lows[predicates], into.highs[predicates] = tag, key, key
            if into.weights.shape[0] > 0:
                into.weights[predicates] = 1.0
            predicates += 1
            left -= 1
            if left == 0 or count > 0:
                clauses += 1
                into.bounds[clauses] = predicates
    return clauses, predicates


@kernel
def store_all(store: ConjunctionStore, records: Blocks, ids: Int64s, expressions: Expressions) -> None:
    """Give expressions numbers under their subscriptions' ids, and keep their records; there must be room."""
    for i in range(ids.shape[0]):
        number = add_number(store, ids[i])
        count = count_rows(expressions, i)
        at = blocks.take(records, class_of(count + 1))
        store.rows[number, StoreColumn.RECORD] = at
        is_residual = write_rows(records.rows, at + 1, expressions, i)
        records.rows[at, 0] = number + (NEEDS_RESIDUAL if is_residual else 0)
        records.rows[at, 1] = -count if is_cnf(expressions, i) else count
        first, last = expressions.offsets[i], expressions.offsets[i + 1]
        store.counters[StoreCounter.PREDICATES] += expressions.bounds[last] - expressions.bounds[first]
        expressions.numbers[i] = number


@kernel
def free_all(store: ConjunctionStore, records: Blocks, expressions: Expressions) -> None:
    """Give back the numbers and the records of expressions that their ids no longer lead to."""
    for i in range(expressions.numbers.shape[0]):
        number = expressions.numbers[i]
        at = np.int64(store.rows[number, StoreColumn.RECORD])
        blocks.give(records, at, class_of(abs(records.rows[at, 1]) + 1))
        free_number(store, number)
    store.counters[StoreCounter.PREDICATES] -= expressions.tags.shape[0]


@kernel
def recall(rows: Int64s, starts: Int64s, counts: Int64s, numbers: Int64s, into: Expressions) -> int:
    """Read expressions, of which each has `counts` rows from `starts` on; return how many there was room for."""
    into.offsets[0] = into.bounds[0] = 0
    clauses, predicates = np.int64(0), np.int64(0)
    for i in range(numbers.shape[0]):
        if i == into.numbers.shape[0] or predicates + abs(counts[i]) > into.tags.shape[0]:
            return i
        into.numbers[i] = numbers[i]
        clauses, predicates = _read_rows(rows, starts[i], counts[i], into, clauses, predicates)
        into.offsets[i + 1] = clauses
    return numbers.shape[0]
