"""Brute force by the column: each predicate is evaluated for all rows of a batch at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language.semantics import truth
from tocsin.matching.batches import Clauses, EventBatch, IdArray, Matches
from tocsin.matching.oracle import Oracle
from tocsin.matching.word_truths import WordTruths
from tocsin.model.conditions import NEGATED, Operator, Predicate, alternatives_of

ROWS_A_COLUMN: Final = 16  # rows of a column that are tested in the time that Python takes to read one row
_TEXT_TESTS: Final = frozenset(
    one
    for operator in (
        Operator.LIKE,
        Operator.STARTS_WITH,
        Operator.ENDS_WITH,
        Operator.CONTAINS,
        Operator.REGEX,
    )
    for one in (operator, NEGATED[operator])
)


def scan(oracle: Oracle, events: EventBatch, words: WordTruths | None = None) -> Matches:
    """Return what the oracle would: per event, the ids of the subscriptions it satisfies."""
    usable = np.ones(len(events), dtype=np.bool_)
    usable[list(events.faults)] = False
    all_rows = np.flatnonzero(usable)
    found: dict[int, list[IdArray]] = {}
    for ids, conjunction in oracle.conjunctions():
        alone = tuple(map(alternatives_of, conjunction))
        found.setdefault(int(ids[0]), []).append(satisfying(alone, all_rows, events, words))
    for ids, clauses in oracle.clauses():
        found.setdefault(int(ids[0]), []).append(satisfying(clauses, all_rows, events, words))
    parts = [
        (id_, np.unique(np.concatenate(rows)) if len(rows) > 1 else rows[0]) for id_, rows in found.items()
    ]
    rows = np.concatenate([part for _, part in parts]) if parts else all_rows[:0]
    numbers = np.repeat([id_ for id_, _ in parts], [len(part) for _, part in parts]).astype(np.int64)
    order = np.lexsort((numbers, rows))
    offsets = np.zeros(len(events) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(events)), out=offsets[1:])
    return Matches(offsets, numbers[order])


def satisfying(
    clauses: Clauses, rows: IdArray, events: EventBatch, words: WordTruths | None = None
) -> IdArray:
    """Return those of these rows that satisfy all clauses."""
    unread: list[tuple[Predicate, ...]] = []
    for clause in clauses:
        if not len(rows):
            return rows
        masks = [_column(predicate, len(rows), events, words) for predicate in clause]
        known = [mask for mask in masks if mask is not None]
        if len(known) < len(clause):
            unread.append(clause)
        else:
            rows = rows[known[0][rows] if len(known) == 1 else np.logical_or.reduce(known)[rows]]
    for clause in unread:
        kept = [_holds(clause, events, row) for row in rows.tolist()]
        rows = rows[np.array(kept, dtype=np.bool_)]
    return rows


def _column(
    predicate: Predicate, rows: int, events: EventBatch, words: WordTruths | None
) -> NDArray[np.bool_] | None:
    """Return which rows of the whole batch satisfy a predicate; None if those in question are better read."""
    # Every distinct string of the column would be tested, where a few rows are left.
    if predicate.operator in _TEXT_TESTS and rows * ROWS_A_COLUMN < len(events):
        return None
    return events.holds(predicate, words)


def _holds(clause: Iterable[Predicate], events: EventBatch, row: int) -> bool:
    attributes = events.attributes(row)
    return any(truth(predicate, attributes) is True for predicate in clause)
