"""Numbers of expressions, in a chain for each subscription's id: the newest comes first."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.conjunction_store.state import ConjunctionStore, StoreColumn, StoreCounter
from tocsin.structures import free_lists, hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_FREE, _TOP = int(StoreCounter.FREE), int(StoreCounter.TOP)
_SIBLING: Final = int(StoreColumn.SIBLING)


@helper
def has_room(store: ConjunctionStore) -> bool:
    """Tell whether there is room for one more expression, and its id."""
    return (
        hash_index.has_room(store.ids, 1)
        and store.ids.counters[1] + 1 < store.newest.shape[0]
        and (store.counters[_FREE] >= 0 or store.counters[_TOP] < store.owner.shape[0])
    )


@helper
def add_number(store: ConjunctionStore, id_: int) -> int:
    """Return a number for a new expression of an id; there must be room. The matcher's own columns are -1."""
    number = free_lists.take(store.rows[:, _SIBLING], store.counters, _FREE, _TOP)
    entry = hash_index.find(store.ids, id_, 0, 0)
    if entry < 0:
        entry = hash_index.insert(store.ids, id_, 0, 0)
        store.newest[entry] = -1
    store.rows[number, StoreColumn.SIBLING] = store.newest[entry]
    for column in range(1, store.rows.shape[1]):
        store.rows[number, column] = -1
    store.owner[number] = entry
    store.newest[entry] = number
    store.counters[StoreCounter.LIVE] += 1
    return number


@helper
def free_number(store: ConjunctionStore, number: int) -> None:
    """Give back the number of an expression that its id no longer leads to."""
    store.owner[number] = -1
    free_lists.give(store.rows[:, _SIBLING], store.counters, _FREE, number)
    store.counters[StoreCounter.LIVE] -= 1


@kernel
def add_numbers(store: ConjunctionStore, ids: Int64s, numbers: Int64s) -> None:
    """Give a new expression of each id a number; there must be room."""
    for i in range(ids.shape[0]):
        numbers[i] = add_number(store, ids[i])


@kernel
def free_numbers(store: ConjunctionStore, numbers: Int64s) -> None:
    """Give back numbers of expressions that their ids no longer lead to."""
    for i in range(numbers.shape[0]):
        free_number(store, numbers[i])


@kernel
def take_from(store: ConjunctionStore, ids: Int64s, start: int, numbers: Int64s) -> tuple[int, int]:
    """Take the ids from `start` on out of the index, and write the numbers of their expressions.

    As many as there is room for; return the ids and the numbers done. An id that comes twice has none the second time.
    """
    count = np.int64(0)
    for i in range(start, ids.shape[0]):
        entry = hash_index.find(store.ids, ids[i], 0, 0)
        if entry < 0:
            continue
        size, number = np.int64(0), np.int64(store.newest[entry])
        while number >= 0:
            size += 1
            number = np.int64(store.rows[number, StoreColumn.SIBLING])
        if count + size > numbers.shape[0]:
            return np.int64(i), count
        number = np.int64(store.newest[entry])
        while number >= 0:
            numbers[count] = number
            count += 1
            number = np.int64(store.rows[number, StoreColumn.SIBLING])
        hash_index.remove(store.ids, entry)
    return ids.shape[0], count


@kernel
def unlink(store: ConjunctionStore, numbers: Int64s) -> None:
    """Take expressions out of the chains of their ids, and ids that have no other out of the index."""
    for i in range(numbers.shape[0] - 1, -1, -1):  # the newest first: they are in front
        entry = np.int64(store.owner[numbers[i]])
        before, number = np.int64(-1), np.int64(store.newest[entry])
        while number != numbers[i]:
            before = number
            number = np.int64(store.rows[number, StoreColumn.SIBLING])
        following = store.rows[number, StoreColumn.SIBLING]
        if before >= 0:
            store.rows[before, StoreColumn.SIBLING] = following
        else:
            store.newest[entry] = following
            if following < 0:
                hash_index.remove(store.ids, entry)
