from __future__ import annotations

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tocsin.structures import linked_lists


@numba.njit(nogil=True)
def _run(steps: NDArray[np.int64], rows: NDArray[np.int32], heads: NDArray[np.int64]) -> None:
    """Push each item into its list, or remove it if it is in there."""
    for i in range(steps.shape[0]):
        list_, item = steps[i, 0], steps[i, 1]
        if rows[item, 2]:
            linked_lists.unlink(rows[:, 0], rows[:, 1], heads, rows[item, 2] - 1, item)
            rows[item, 2] = 0
        else:
            linked_lists.push(rows[:, 0], rows[:, 1], heads, list_, item)
            rows[item, 2] = list_ + 1


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7)), max_size=60))
def test_lists_contain_the_pushed_and_not_removed_items_newest_first(steps: list[tuple[int, int]]) -> None:
    rows = np.zeros((8, 3), dtype=np.int32)
    heads = np.full(2, -1, dtype=np.int64)
    _run(np.array(steps, dtype=np.int64).reshape(-1, 2), rows, heads)
    expected: list[list[int]] = [[], []]
    for list_, item in steps:
        holder = next((one for one in expected if item in one), None)
        if holder is None:
            expected[list_].insert(0, item)
        else:
            holder.remove(item)
    for list_, items in enumerate(expected):
        found, item = [], int(heads[list_])
        while item >= 0:
            found.append(item)
            item = int(rows[item, 0])
        assert found == items
        assert [int(rows[item, 1]) for item in items] == [-1, *items[:-1]][: len(items)]
