"""Predicates of expressions, as several matchers read them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.structures.jit import helper

_FIELD: Final = (1 << FIELD_BITS) - 1
_IN, _RESIDUAL, _ANY = int(Op.IN), int(Op.RESIDUAL), int(Field.ANY)


@helper
def has_residual(batch: Expressions, begin: int, end: int) -> bool:
    """Tell whether any of the predicates from `begin` to `end` is residual."""
    found = False
    for q in range(begin, end):
        found |= batch.tags[q] >> FIELD_BITS == _RESIDUAL
    return found


@helper
def required_field(batch: Expressions, q: int) -> int:
    """Return the field that a value must have to satisfy a predicate: for a list, the one that its members share.

    A list whose members have several kinds requires the attribute only, as its tag says.
    """
    field = batch.tags[q] & _FIELD
    if batch.tags[q] >> FIELD_BITS != _IN:
        return field
    begin, end = batch.starts[batch.which[q]], batch.starts[batch.which[q] + 1]
    for m in range(begin + 1, end):
        if batch.fields[m] != batch.fields[begin]:
            return field
    return batch.fields[begin] if begin < end else field


@helper
def is_mixed(batch: Expressions, q: int) -> bool:
    """Tell whether a predicate is `in` a list whose members have several kinds."""
    return batch.tags[q] >> FIELD_BITS == _IN and required_field(batch, q) % FIELDS == _ANY


@helper
def count_uses(uses: NDArray[np.int32], batch: Expressions, change: int) -> None:
    """Add to the number of predicates on each attribute."""
    for q in range(batch.tags.shape[0]):
        if batch.tags[q] >> FIELD_BITS != _RESIDUAL:
            uses[(batch.tags[q] & _FIELD) // FIELDS] += change
