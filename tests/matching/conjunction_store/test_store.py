"""The conjunction store: numbers under ids, and records that are recalled as they were stored."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.conjunction_store._kernels.numbers import add_numbers, free_numbers, take_from, unlink
from tocsin.matching.conjunction_store._kernels.records import free_all, recall, store_all
from tocsin.matching.conjunction_store.state import (
    ConjunctionStore,
    Expressions,
    StoreColumn,
    StoreCounter,
    blank_expressions,
    chain_of,
    first_expressions,
    new_store,
    numbers_in_use,
    record_rows,
    with_room,
)
from tocsin.matching.encoding.codes import FIELD_BITS, Op
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import Blocks

_OPS = [Op.EQ, Op.LT, Op.BETWEEN, Op.NOT_BETWEEN, Op.IN, Op.RESIDUAL]
_predicates = st.tuples(
    st.sampled_from(_OPS), st.integers(0, 5), st.integers(-9, 9), st.sampled_from([1.0, 2.5])
)
_clauses = st.lists(st.lists(_predicates, min_size=1, max_size=3), max_size=4)


def encoded(cnfs: list[list[list[tuple[Op, int, int, float]]]]) -> Expressions:
    """Return CNFs as arrays; the upper bound of a range lies one above the lower."""
    clauses = [clause for cnf in cnfs for clause in cnf]
    rows = [predicate for clause in clauses for predicate in clause]
    lows = np.array([low for _, _, low, _ in rows], dtype=np.int64)
    ranged = np.array([op in (Op.BETWEEN, Op.NOT_BETWEEN) for op, _, _, _ in rows], dtype=np.int64)
    return Expressions(
        np.full(len(cnfs), -1, dtype=np.int64),
        np.cumsum([0, *map(len, cnfs)], dtype=np.int64),
        np.cumsum([0, *map(len, clauses)], dtype=np.int64),
        np.array([(int(op) << FIELD_BITS) | field for op, field, _, _ in rows], dtype=np.int64),
        lows,
        lows + ranged,
        np.array([weight for _, _, _, weight in rows], dtype=np.float64),
    )


def recalled(store: ConjunctionStore, records: Blocks, numbers: Int64s, into: Expressions) -> int:
    """Read expressions as a matcher does; return how many there was room for."""
    at = store.rows[numbers, StoreColumn.RECORD].astype(np.int64)
    return recall(records.rows, at + 1, records.rows[at, 1], numbers, into)


@given(first=st.lists(_clauses, min_size=1, max_size=6), second=st.lists(_clauses, min_size=1, max_size=6))
def test_expressions_are_recalled_as_they_were_stored(
    first: list[list[list[tuple[Op, int, int, float]]]], second: list[list[list[tuple[Op, int, int, float]]]]
) -> None:
    store, records = new_store(2), blocks.new_blocks(2)
    for cnfs, gone in ((first, True), (second, False)):
        batch = encoded(cnfs)
        store, records = with_room(store, len(cnfs)), blocks.with_room(records, record_rows(batch))
        store_all(store, records, np.arange(len(cnfs)), batch)
        into = blank_expressions(len(cnfs), 3 * len(batch.tags) + len(batch.bounds), weighted=True)
        assert recalled(store, records, batch.numbers, into) == len(cnfs)
        for found, wanted in zip(first_expressions(into, len(cnfs))[:7], batch[:7], strict=True):
            assert found.tolist() == wanted.tolist()
        headings = records.rows[store.rows[batch.numbers, StoreColumn.RECORD], 0]
        residual = [any(op is Op.RESIDUAL for c in cnf for op, _, _, _ in c) for cnf in cnfs]
        assert headings.tolist() == (batch.numbers + np.where(residual, NEEDS_RESIDUAL, 0)).tolist()
        assert store.counters[StoreCounter.PREDICATES] == len(batch.tags)
        assert records.top[0] <= len(records.rows)
        if gone:
            unlink(store, batch.numbers)
            free_all(store, records, batch)
            assert (hash_index.live_entries(store.ids), len(numbers_in_use(store))) == (0, 0)
            assert store.counters[StoreCounter.PREDICATES] == 0


def test_recall_stops_where_there_is_no_room() -> None:
    batch = encoded([[[(Op.EQ, 0, 1, 1.0)]] * 3] * 4)
    store, records = with_room(new_store(2), 4), blocks.with_room(blocks.new_blocks(2), record_rows(batch))
    store_all(store, records, np.zeros(4, dtype=np.int64), batch)
    assert recalled(store, records, batch.numbers[1:], blank_expressions(4, 7)) == 2
    assert recalled(store, records, batch.numbers, blank_expressions(1, 99)) == 1
    assert chain_of(store, 0) == batch.numbers.tolist()


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 4), max_size=5)), max_size=12))
def test_chains_follow_additions_and_removals(steps: list[tuple[bool, list[int]]]) -> None:
    store, held = new_store(3), dict[int, list[int]]()
    for is_added, ids in steps:
        wanted = np.array(ids, dtype=np.int64)
        if is_added:
            store = with_room(store, len(ids))
            numbers = np.empty(len(ids), dtype=np.int64)
            add_numbers(store, wanted, numbers)
            assert (store.rows[numbers, 1:] == -1).all()
            for id_, number in zip(ids, numbers.tolist(), strict=True):
                held.setdefault(id_, []).append(number)
        else:
            numbers = np.full(99, -1, dtype=np.int64)
            done, found = take_from(store, wanted, 0, numbers)
            assert done == len(ids)
            assert sorted(numbers[:found].tolist()) == sorted(n for i in set(ids) for n in held.pop(i, []))
            free_numbers(store, numbers[:found])
        entries = {id_: hash_index.find(store.ids, id_, 0, 0) for id_ in range(5)}
        assert {id_: chain_of(store, entry) for id_, entry in entries.items() if entry >= 0} == held
        assert numbers_in_use(store).tolist() == sorted(n for numbers_ in held.values() for n in numbers_)
        assert store.counters[StoreCounter.LIVE] == len(numbers_in_use(store))
