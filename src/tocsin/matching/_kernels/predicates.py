"""Predicates of expressions, as several matchers read them."""

from __future__ import annotations

from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.structures.array_types import Int32s
from tocsin.structures.jit import helper


@helper
def has_residual(batch: Expressions, begin: int, end: int) -> bool:
    """Tell whether any of the predicates from `begin` to `end` is residual."""
    found = False
    for q in range(begin, end):
        found |= batch.tags[q] >> FIELD_BITS == Op.RESIDUAL
    return found


@helper
def required_field(batch: Expressions, q: int) -> int:
    """Return the field that a value must have to satisfy a predicate: for a list, the one that its members share.

    A list whose members have several kinds requires the attribute only, as its tag says.
    """
    field = batch.tags[q] & FIELD_MASK
    if batch.tags[q] >> FIELD_BITS != Op.IN:
        return field
    begin, end = batch.starts[batch.which[q]], batch.starts[batch.which[q] + 1]
    for m in range(begin + 1, end):
        if batch.fields[m] != batch.fields[begin]:
            return field
    return batch.fields[begin] if begin < end else field


@helper
def is_mixed(batch: Expressions, q: int) -> bool:
    """Tell whether a predicate is `in` a list whose members have several kinds."""
    return batch.tags[q] >> FIELD_BITS == Op.IN and required_field(batch, q) % FIELDS == Field.ANY


@helper
def is_in_order(op: int, low: int, high: int, first: int, second: int) -> bool:
    """Tell whether a value that lies at or between `low` and `high` satisfies an ordered predicate on these constants."""
    if op == Op.LE:
        return high <= first
    if op == Op.GE:
        return low >= first
    if op == Op.LT:
        return low < first
    if op == Op.GT:
        return high > first
    if op == Op.BETWEEN:
        return low >= first and high <= second
    return low < first or high > second


@helper
def count_uses(uses: Int32s, batch: Expressions, change: int) -> None:
    """Add to the number of predicates on each attribute."""
    for q in range(batch.tags.shape[0]):
        if batch.tags[q] >> FIELD_BITS != Op.RESIDUAL:
            uses[(batch.tags[q] & FIELD_MASK) // FIELDS] += change
