"""The expressions that a matcher holds: a number for each, under its subscription's id, and a record of what it says.

An expression is a conjunction, or a CNF: clauses of which each must hold. The store knows no index. A matcher keeps its
own columns beside an expression's number, and places the expression by what `Expressions` say.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.structures import hash_index
from tocsin.structures.array_types import Float64s, Int32s, Int64s
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

# Operators of a record's rows that are no predicate; `Op` ends below them.
WEIGHT_ROW: Final = 13  # the weight of the predicate before, as the bits of a float
HIGH_ROW: Final = 14  # the upper bound of the predicate before
CLAUSE_ROW: Final = 15  # the number of predicates that follow and are one clause

_NONE: Final = np.empty(0, dtype=np.int64)
_NO_WEIGHTS: Final = np.empty(0, dtype=np.float64)


class StoreColumn(IntEnum):
    """Columns of `ConjunctionStore.rows`; a matcher that keeps no records begins its own at 1."""

    SIBLING = 0  # the next older expression of the same id, or -1; of a free number, the next free one
    RECORD = 1  # the first row of its record


class StoreCounter(IntEnum):
    """Places in `ConjunctionStore.counters`."""

    TOP = 0  # numbers ever in use
    FREE = 1  # the first free number, or -1
    LIVE = 2  # expressions
    PREDICATES = 3  # of all of them


class ConjunctionStore(NamedTuple):
    """Expressions by number, and the chain of each subscription's expressions, the newest first."""

    ids: HashIndex  # keys: a subscription's id
    newest: Int32s  # by entry of `ids`: its newest expression
    owner: Int32s  # by number: the entry of its subscription's id, or -1 if the number is free
    rows: Int32s  # [numbers, columns] SIBLING, then what the matcher keeps
    counters: Int64s  # [4]


class Expressions(NamedTuple):
    """Expressions as arrays. A conjunction is clauses of one predicate each.

    The clauses of expression i are those from `offsets[i]` to `offsets[i + 1]`, the predicates of clause c those from
    `bounds[c]` to `bounds[c + 1]`, and the members of list `which[q]` those from `starts[which[q]]` on.
    """

    numbers: Keys  # int64[expressions], -1 until the store gives one
    offsets: Keys  # int64[expressions + 1]
    bounds: Keys  # int64[clauses + 1]
    tags: Keys  # int64[predicates]
    lows: Keys  # int64[predicates]
    highs: Keys  # int64[predicates]
    weights: Float64s = _NO_WEIGHTS  # [predicates], or none if all are 1
    which: Keys = _NONE  # int64[predicates] the list of an `in` or `not in`, else -1
    starts: Keys = _NONE  # int64[lists + 1]
    fields: Keys = _NONE  # int64[members]
    keys: Keys = _NONE  # int64[members]


def new_store(columns: int) -> ConjunctionStore:
    """Return an empty store with so many columns, SIBLING among them."""
    return ConjunctionStore(
        hash_index.new_hash_index(1),
        np.zeros(64, dtype=np.int32),
        np.full(64, -1, dtype=np.int32),
        np.zeros((64, columns), dtype=np.int32),
        np.array([0, -1, 0, 0], dtype=np.int64),
    )


def with_room(store: ConjunctionStore, expressions: int) -> ConjunctionStore:
    """Return the store with room for so many more expressions, each of an id of its own."""
    ids = hash_index.with_room(store.ids, expressions)
    store = grown(store._replace(ids=ids), ("newest",), len(ids.chain))
    return grown(store, ("owner", "rows"), int(store.counters[StoreCounter.TOP]) + expressions)


def numbers_in_use(store: ConjunctionStore) -> Keys:
    """Return the numbers of all expressions, ascending."""
    return np.flatnonzero(store.owner[: store.counters[StoreCounter.TOP]] >= 0)


def chain_of(store: ConjunctionStore, entry: int) -> list[int]:
    """Return the expressions of an id's entry, in the order in which they were added."""
    found, number = [], int(store.newest[entry])
    while number >= 0:
        found.append(number)
        number = int(store.rows[number, StoreColumn.SIBLING])
    return found[::-1]


def record_rows(expressions: Expressions) -> int:
    """Return how many rows the blocks of expressions' records have at most, whatever class each block is of."""
    ops = expressions.tags >> FIELD_BITS
    extra = np.zeros(len(ops) + 1, dtype=np.int64)
    np.cumsum((ops == Op.BETWEEN) | (ops == Op.NOT_BETWEEN), out=extra[1:])
    if len(expressions.weights):
        extra[1:] += np.cumsum(expressions.weights != 1.0)
    ends = expressions.bounds[expressions.offsets]
    predicates, clauses = np.diff(ends), np.diff(expressions.offsets)
    marks = np.where(predicates == clauses, 0, clauses)
    rows = predicates + np.diff(extra[ends]) + marks + 1
    return int((rows + rows // 2 + 1).sum())


def blank_expressions(count: int, predicates: int, *, weighted: bool = False) -> Expressions:
    """Return room to recall up to `count` expressions of so many predicates in all, and as many clauses."""
    bounds = np.empty(predicates + 1, dtype=np.int64)
    tags, lows, highs = np.empty((3, predicates), dtype=np.int64)
    weights = np.empty(predicates if weighted else 0, dtype=np.float64)
    numbers, offsets = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    return Expressions(numbers, offsets, bounds, tags, lows, highs, weights)


def first_expressions(expressions: Expressions, count: int) -> Expressions:
    """Return the first `count` expressions of those that have no lists."""
    offsets = expressions.offsets[: count + 1]
    bounds = expressions.bounds[: offsets[-1] + 1]
    end = int(bounds[-1])
    return expressions._replace(
        numbers=expressions.numbers[:count],
        offsets=offsets,
        bounds=bounds,
        tags=expressions.tags[:end],
        lows=expressions.lows[:end],
        highs=expressions.highs[:end],
        weights=expressions.weights[:end],
    )
